import { cut } from "../core/errors.js";
import { malformed } from "./entry.js";

/** A string, a number, or punctuation of JSON. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?[\d.][\d.eE+-]*|[{}[\],:]/g;

/** Throws for half of a surrogate pair, which is not a character: UTF-8 cannot have it. */
export function checkText(text: string, what: string): void {
  if (!/\p{Surrogate}/u.test(text)) return;
  const shown = JSON.stringify(text.slice(0, 100));
  throw malformed(what, `${shown} has half of a surrogate pair, which is not a character`, text);
}

/**
 * Parses an object of unambiguous JSON into its pairs, in the text's order: no duplicate keys, of
 * which readers take the first or the last, and `numbers` of one form, by default plain integers, as
 * readers round others differently.
 */
export function strictJSON(
  text: string,
  what: string,
  numbers = /^\d{1,19}$/,
): [string, unknown][] {
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw malformed(what, `its header is not JSON (${cut((error as Error).message, 300)})`);
  }
  const objects: (Set<string> | null)[] = []; // null: an array
  const outer: string[] = []; // `value` has names such as "7" in another order
  let key = true; // whether a string here is a key
  for (const [token] of text.matchAll(TOKEN)) {
    const keys = objects.at(-1);
    if (token === "{") objects.push(new Set());
    else if (token === "[") objects.push(null);
    else if (token === "}" || token === "]") objects.pop();
    else if (token[0] === '"') {
      const named = key && keys;
      if (!named && !token.includes("\\u")) continue;
      const name = JSON.parse(token) as string;
      checkText(name, what);
      if (!named) continue;
      if (keys.has(name))
        throw malformed(what, `its header has ${token.slice(0, 100)} twice`, name);
      keys.add(name);
      if (objects.length === 1) outer.push(name);
    } else if (token !== "," && token !== ":" && !numbers.test(token)) {
      throw malformed(what, `its header has ${token.slice(0, 100)} where a size is needed`, token);
    }
    key = token === "{" || token === ",";
  }
  return outer.map((name) => [name, value[name]]);
}

// The search: MiniSearch over search.json (_tools/search_index.py has written it).
import { MiniSearch } from "../../libraries/minisearch.mjs";

/** They say nothing about a page. */
const FILLERS = new Set(
  "a an and are as at be by can do does for from how i in into is it my of on or the to use using what when where why with".split(
    " ",
  ),
);
/** Pages that mention everything: below others. */
const LISTS = /^reference\/(changelog|interop|arrays|benchmarks|typescript\/|exchange)/;

/** Words as they are, and parts of names: `fromTypedArray` has "fromtypedarray", "from", "typed", "array". */
function tokenize(text) {
  const names = text.match(/[\p{L}\p{N}]+(?:[._-]+[\p{L}\p{N}]+)*/gu) ?? [];
  return names.flatMap((name) => {
    const parts = name.replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2").match(/[\p{L}\p{N}]+/gu);
    return parts.length === 1 ? parts : [name.replace(/[._-]+/g, ""), ...parts];
  });
}

/** Without the endings that words share: "released", "releases" and "releasing" are one. */
function stem(token) {
  const word = token.toLowerCase();
  if (FILLERS.has(word)) return null;
  return word.replace(/(?<=\p{L}{3})(ing|ed|es|s|e)$/u, "");
}

const index = new MiniSearch({
  fields: ["title", "text"],
  storeFields: ["page", "anchor", "title", "text"],
  tokenize,
  processTerm: stem,
  searchOptions: {
    boost: { title: 3 },
    prefix: (word) => word.length > 2,
    fuzzy: (word) => (word.length > 4 ? 0.2 : false),
    weights: { prefix: 0.4, fuzzy: 0.2 },
    boostDocument: (_, __, { page, text }) => {
      if (text === undefined) return 1.2; // readers' words
      if (LISTS.test(page)) return 0.3;
      return /^(reference|packages)\//.test(page) ? 0.8 : 1;
    },
  },
});

let loading;
const pages = new Map(); // their first entries, which have the pages' titles

async function load() {
  const response = await fetch(new URL("../search.json", import.meta.url));
  const entries = await response.json();
  for (const entry of entries) if (!pages.has(entry.page)) pages.set(entry.page, entry);
  index.addAll(entries.map((entry, id) => ({ id, ...entry })));
}

/** The pages that answer, best first, each with its best section or name: { page, title, link, text }. */
export async function find(query) {
  loading ??= load();
  await loading;
  const found = new Map();
  for (const { page, anchor, title, text } of index.search(query)) {
    if (found.has(page)) continue;
    const whole = pages.get(page);
    const part = text !== undefined && title !== whole.title;
    found.set(page, {
      page,
      title: part ? `${whole.title}: ${title}` : whole.title,
      link: part ? `${page}.html#${anchor}` : `${page}.html`,
      text: text ?? whole.text,
    });
  }
  return [...found.values()];
}

async function show(query, status, list) {
  document.querySelector("input[name=q]").value = query;
  const found = query.trim() ? await find(query) : [];
  const none = "Nothing was found. Try fewer or other words, or look at the index of errors.";
  const best = found.slice(0, 20);
  status.textContent = best.length ? `The best ${best.length} of ${found.length} pages` : none;
  for (const { title, link, text } of best) {
    const item = list.appendChild(document.createElement("li"));
    const heading = item.appendChild(document.createElement("a"));
    heading.href = link;
    heading.textContent = title;
    item.appendChild(document.createElement("p")).textContent = `${text.slice(0, 200)}…`;
  }
}

const list = globalThis.document?.querySelector("#search-results");
if (list) {
  const query = new URLSearchParams(location.search).get("q") ?? "";
  show(query, document.querySelector("#search-status"), list);
}

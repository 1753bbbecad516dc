/** One `@group(0) @binding(n) var<…>` of a shader. */
export interface Binding {
  readonly index: number;
  readonly name: string;
  readonly type: GPUBufferBindingType;
  /** The type of its value where that is one word, such as "f32". */
  readonly value: string | undefined;
}

/** WGSL without its comments; block comments nest. Strings do not exist in WGSL. */
export function stripComments(wgsl: string): string {
  let depth = 0;
  return wgsl.replace(/\/\*|\*\/|\/\/[^\n]*|[^/*]+|[/*]/g, (token) => {
    if (token === "/*") depth++;
    else if (depth === 0) return token.startsWith("//") ? " " : token;
    else if (token === "*/") depth--;
    return "";
  });
}

const ATTRIBUTE = /@(group|binding)\s*\(\s*(\w+)\s*,?\s*\)/g;
const VARIABLE =
  /((?:@\s*\w+\s*\([^)]*\)\s*)+)var\s*(?:<\s*(\w+)\s*(?:,\s*(\w+)\s*,?\s*)?>)?\s*([\w\p{L}]+)\s*(?::\s*(\w+)\s*;)?/gu;

/**
 * The buffers that a shader declares, ordered by binding; null where they are not plain buffers
 * in group 0 numbered 0, 1, 2, … by literals, so that only the browser can make the layout.
 */
export function parseBindings(wgsl: string): Binding[] | null {
  const bindings: Binding[] = [];
  const source = stripComments(wgsl);
  for (const [, attributes = "", space, access, name = "", value] of source.matchAll(VARIABLE)) {
    const found = new Map<string, number>();
    for (const [, key = "", value = ""] of attributes.matchAll(ATTRIBUTE)) {
      found.set(key, Number(value.replace(/[iu]$/, "")));
    }
    const index = found.get("binding") ?? Number.NaN;
    const type = bindingType(space, access);
    if (found.get("group") !== 0 || !Number.isInteger(index) || type === null) return null;
    bindings.push({ index, name, type, value });
  }
  bindings.sort((a, b) => a.index - b.index);
  return bindings.every(({ index }, i) => index === i) ? bindings : null;
}

function bindingType(space?: string, access?: string): GPUBufferBindingType | null {
  if (space === "uniform") return "uniform";
  if (space !== "storage") return null;
  return access === "read_write" ? "storage" : "read-only-storage";
}

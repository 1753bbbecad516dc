/**
 * Parses a shader's source for its bindings, and the size of its workgroups
 * (py/dlpack_web/_backends/model/kernels/wgsl.py does the same; tests/fuzz/twins compares).
 */

import * as messages from "../messages.js";

/** The dtype of a tensor for each scalar type. */
export const DTYPES = { f32: "float32", i32: "int32", u32: "uint32", f16: "float16" } as const;

/** The scalar type of a buffer, if it has only one. */
export type Scalar = keyof typeof DTYPES;

/** One `@group(0) @binding(n) var<…>` of a shader. */
export interface Binding {
  readonly index: number;
  readonly name: string;
  readonly type: "uniform" | "storage" | "read-only-storage";
  /** The type of its value as it is written, such as "array<vec4f>". */
  readonly value: string;
  /** null: unknown, or a structure of several kinds. */
  readonly scalar: Scalar | null;
  readonly atomic: boolean;
  /** The fewest bytes that it takes: all, or those with one element of a runtime-sized array; 0: unknown. */
  readonly stride: number;
  /** Bytes from an element of its array, or a column of its matrix, to the next; 0: it has none. */
  readonly element: number;
  /** The alignment of these; 0: they are flat, numbers without padding. */
  readonly align: number;
  /** Whether it is an array whose length is that of the buffer. */
  readonly runtime: boolean;
}

/** What {@link parseShader} finds. */
export interface Shader {
  /**
   * By binding; null unless they are plain buffers in group 0 numbered 0, 1, 2, … by literals: then
   * only the browser can make the layout.
   */
  readonly bindings: Binding[] | null;
  /** @workgroup_size of the entry point; null if it is not made of literals. */
  readonly workgroup: readonly [number, number, number] | null;
}

/** WGSL with "\n" for each of its line breaks: not every compiler counts the others. */
export function withLines(wgsl: string): string {
  return wgsl.replace(/\r\n|[\v\f\r\u0085\u2028\u2029]/g, "\n");
}

/** WGSL's blanks (3.2: Blankspace and Line Breaks), for a class of characters. */
export const BLANKS = " \\t\\n\\v\\f\\r\\u0085\\u200e\\u200f\\u2028\\u2029";
const TOKEN = new RegExp(
  `//.*|/\\*|[\\p{XID_Start}_]\\p{XID_Continue}*|\\.?\\d(?:[eEpP][+-]|[\\w.])*|[^${BLANKS}]`,
  "gu",
);

/** The tokens of a source, and those that begin with `//` if `comments`. */
export function tokensOf(wgsl: string, comments = false): string[] {
  const text = withLines(wgsl);
  const found: string[] = [];
  const token = new RegExp(TOKEN);
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    if (match[0] === "/*") token.lastIndex = afterComment(text, token.lastIndex);
    else if (comments || !match[0].startsWith("//")) found.push(match[0]);
  }
  return found;
}

/** Where a block comment ends, of which the text is at `at`; block comments nest. */
function afterComment(text: string, at: number): number {
  const edge = /\/\*|\*\//g;
  edge.lastIndex = at;
  for (let depth = 1; depth > 0; ) {
    const found = edge.exec(text);
    if (found === null) return text.length;
    depth += found[0] === "/*" ? 1 : -1;
  }
  return edge.lastIndex;
}

/** In types "<" opens a template; in expressions it compares. */
const OPEN = "({[<";
const CLOSED = ")}]>";

/** The tokens in the parentheses of each attribute, by its name. */
type Attributes = ReadonlyMap<string, readonly string[]>;

class Tokens {
  #at = 0;

  constructor(readonly list: readonly string[]) {}

  get next(): string | undefined {
    return this.list[this.#at];
  }

  take(): string {
    return this.list[this.#at++] ?? "";
  }

  accept(token: string): boolean {
    if (this.next !== token) return false;
    this.#at++;
    return true;
  }

  /** `@name(args)`, any number of them. */
  attributes(): Attributes {
    const found = new Map<string, readonly string[]>();
    while (this.accept("@")) {
      const name = this.take();
      found.set(name, this.next === "(" ? this.group() : []);
    }
    return found;
  }

  /** The tokens between a bracket, which is next, and its partner. */
  group(): string[] {
    const close = [CLOSED[OPEN.indexOf(this.take())]];
    const inside: string[] = [];
    while (this.next !== undefined) {
      const token = this.take();
      if (token === close.at(-1)) {
        close.pop();
        if (close.length === 0) break;
      } else if ("({[".includes(token)) close.push(CLOSED[OPEN.indexOf(token)]);
      inside.push(token);
    }
    return inside;
  }

  /** Everything up to a semicolon, which is consumed. */
  statement(): string[] {
    const found: string[] = [];
    while (this.next !== undefined && this.next !== ";") found.push(this.take());
    this.take();
    return found;
  }

  rest(): readonly string[] {
    return this.list.slice(this.#at);
  }
}

/** The entries of a list, which may end in a comma; brackets keep their commas. */
function listOf(tokens: readonly string[]): string[][] {
  const parts: string[][] = [[]];
  let depth = 0;
  for (const token of tokens) {
    if (OPEN.includes(token)) depth++;
    else if (CLOSED.includes(token)) depth--;
    if (token === "," && depth === 0) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  if (parts.at(-1)?.length === 0) parts.pop();
  return parts;
}

/** The memory layout of a type (WGSL 14.4: Memory Layout). */
interface Layout {
  readonly scalar: Scalar | null;
  readonly atomic: boolean;
  readonly align: number;
  readonly size: number;
  /** Whether arrays of it are numbers without padding; not of structures and matrices. */
  readonly flat: boolean;
  /** Of an array, also at the end of a structure, its element's; of a matrix its column's. */
  readonly element?: Layout;
  /** Whether it is a runtime-sized array, of which the size has one element. */
  readonly runtime?: boolean;
}

/** The largest number and size that are read; others are left to the compiler. */
const MOST = 2 ** 32 - 1;
const DEEPEST = 20; // WGSL allows 15 levels

const align = (n: number, to: number) => Math.ceil(n / to) * to;

/** Bytes from an element of an array of these to the next. */
const strideOf = ({ size, align: to }: Layout) => align(size, to);

function vector(scalar: Scalar, count: number): Layout {
  const bytes = scalar === "f16" ? 2 : 4;
  const size = bytes * count;
  const flat = count !== 3;
  return { scalar, atomic: false, align: flat ? size : 4 * bytes, size, flat };
}

const SCALARS: ReadonlyMap<string, Layout> = new Map(
  (Object.keys(DTYPES) as Scalar[]).map((name) => [name, vector(name, 1)]),
);

/** The layout of "vec3" or "mat4x3" of a scalar. */
function shaped(name: string, scalar: Scalar): Layout | null {
  const [, lanes, columns, rows] = /^(?:vec([234])|mat([234])x([234]))$/.exec(name) ?? [];
  if (lanes !== undefined) return vector(scalar, Number(lanes));
  if (columns === undefined || !scalar.startsWith("f")) return null;
  const column = vector(scalar, Number(rows));
  return { ...column, size: Number(columns) * strideOf(column), flat: false, element: column };
}

class Source {
  readonly aliases = new Map<string, readonly string[]>();
  readonly structs = new Map<string, readonly string[]>();
  readonly numbers = new Map<string, number>();
  /** Of aliases and structures; null, too, while one is looked at: none contains itself. */
  readonly #layouts = new Map<string, Layout | null>();

  /** The layout of a type; null if unknown. */
  layout(type: readonly string[], depth = 0): Layout | null {
    const [name = "", open, ...rest] = type;
    if (depth > DEEPEST) return null;
    if (open === undefined) return this.#named(name, depth);
    if (open !== "<" || rest.pop() !== ">") return null;
    const [first = [], ...more] = listOf(rest);
    const inner = this.layout(first, depth + 1);
    if (inner === null || inner.runtime) return null;
    if (name === "array" && more.length < 2) return this.#array(inner, more[0]);
    if (more.length > 0 || inner !== SCALARS.get(`${inner.scalar}`)) return null;
    const scalar = inner.scalar as Scalar;
    if (name !== "atomic") return shaped(name, scalar);
    return scalar.startsWith("f") ? null : { ...inner, atomic: true };
  }

  /** The integer that an expression is: a literal, or the name of one. */
  number(tokens: readonly string[] | undefined): number | null {
    if (tokens?.length !== 1) return null;
    const [token = ""] = tokens;
    const literal = /^(0|[1-9]\d{0,9}|0[xX]0*[\da-fA-F]{1,8})[iu]?$/.exec(token);
    const value = literal ? Number(literal[1]) : this.numbers.get(token);
    return value === undefined || value > MOST ? null : value;
  }

  /** The one number of an attribute, which may be absent; null if that is not known. */
  numberOf(attributes: Attributes, name: string, otherwise: number | null = null): number | null {
    const given = attributes.get(name);
    if (given === undefined) return otherwise;
    const [only, ...more] = listOf(given);
    return more.length > 0 ? null : this.number(only);
  }

  #named(name: string, depth: number): Layout | null {
    const cached = this.#layouts.get(name);
    if (cached !== undefined) return cached;
    const [alias, members] = [this.aliases.get(name), this.structs.get(name)];
    if (alias === undefined && members === undefined) {
      const [, shape = "", letter = ""] = /^(.+)([fhiu])$/.exec(name) ?? [];
      const scalar = letter === "h" ? "f16" : `${letter}32`;
      return SCALARS.get(name) ?? shaped(shape, scalar as Scalar);
    }
    this.#layouts.set(name, null);
    const found = alias ? this.layout(alias, depth + 1) : this.#struct(members ?? [], depth + 1);
    this.#layouts.set(name, found);
    return found;
  }

  #array(element: Layout, length: readonly string[] | undefined): Layout | null {
    const stride = strideOf(element);
    if (length === undefined) return { ...element, size: stride, element, runtime: true };
    const size = (this.number(length) ?? 0) * stride;
    return size === 0 || size > MOST ? null : { ...element, size, element };
  }

  #struct(members: readonly string[], depth: number): Layout | null {
    let [end, most] = [0, 1];
    const scalars = new Set<Scalar | null>();
    let last: Layout | undefined;
    for (const member of listOf(members)) {
      const tokens = new Tokens(member);
      const attributes = tokens.attributes();
      const [, colon, ...type] = tokens.rest();
      const layout = colon === ":" ? this.layout(type, depth) : null;
      if (layout === null || last?.runtime) return null;
      const own = this.numberOf(attributes, "align", layout.align);
      const least = layout.runtime ? 0 : layout.size;
      const size = this.numberOf(attributes, "size", least);
      if (own === null || size === null || own < layout.align || size < least) return null;
      end = align(end, own) + size;
      most = Math.max(most, own);
      scalars.add(layout.scalar);
      last = layout;
    }
    if (last === undefined || end > MOST) return null;
    // With a runtime-sized array at its end, the whole is not an array of equal elements.
    const { runtime, element } = last;
    const scalar = scalars.size === 1 && !runtime ? last.scalar : null;
    const size = runtime ? end + last.size : align(end, most);
    const layout = { scalar, atomic: false, align: most, size, flat: false };
    return runtime && element ? { ...layout, element } : layout;
  }
}

/** A declaration of the module's scope. */
interface Declaration {
  readonly attributes: Attributes;
  readonly kind: string;
  readonly tokens: readonly string[];
}

function* declarations(wgsl: string): Generator<Declaration> {
  const tokens = new Tokens(tokensOf(wgsl));
  while (tokens.next !== undefined) {
    const attributes = tokens.attributes();
    const kind = tokens.take();
    if (kind === "fn") {
      const name = tokens.take();
      while (tokens.next !== undefined && tokens.next !== "{") tokens.take();
      if (tokens.next === "{") tokens.group();
      yield { attributes, kind, tokens: [name] };
    } else if (kind === "struct") {
      const name = tokens.take();
      yield { attributes, kind, tokens: [name, ...(tokens.next === "{" ? tokens.group() : [])] };
    } else if (kind !== ";") yield { attributes, kind, tokens: tokens.statement() };
  }
}

/**
 * The bindings of a shader, and the workgroup size of an entry point; throws TypeError for immediates,
 * which not all browsers have.
 */
export function parseShader(wgsl: string, entry: string): Shader {
  const source = new Source();
  const variables: Declaration[] = [];
  let size: readonly string[] | undefined;
  for (const declaration of declarations(wgsl)) {
    const { kind, tokens, attributes } = declaration;
    const [name = "", ...rest] = tokens;
    const equals = rest.indexOf("=") + 1;
    if (kind === "struct") source.structs.set(name, rest);
    else if (kind === "alias") source.aliases.set(name, rest.slice(equals));
    else if (kind === "const" && equals > 0) {
      const value = source.number(rest.slice(equals));
      if (value !== null) source.numbers.set(name, value);
    } else if (kind === "fn" && name === entry) {
      // Without a size it does not compile: that error says more than one about workgroups.
      size = attributes.get("workgroup_size") ?? ["1"];
    } else if (kind === "var" && attributes.size > 0) variables.push(declaration);
    else if (rest[0] === "immediate") throw new TypeError(messages.noNumber(rest[2] as string));
  }
  return { bindings: bindingsOf(source, variables), workgroup: workgroupOf(source, size) };
}

function workgroupOf(source: Source, size: readonly string[] = []): Shader["workgroup"] {
  const [x, y = 1, z = 1, ...more] = listOf(size).map((part) => source.number(part));
  return x && y && z && more.length === 0 ? [x, y, z] : null; // none of them is 0
}

function bindingsOf(source: Source, variables: readonly Declaration[]): Binding[] | null {
  const bindings: Binding[] = [];
  for (const { attributes, tokens } of variables) {
    const index = source.numberOf(attributes, "binding");
    const found = bindingOf(source, tokens);
    if (index === null || source.numberOf(attributes, "group") !== 0 || found === null) return null;
    bindings.push({ index, ...found });
  }
  bindings.sort((a, b) => a.index - b.index);
  return bindings.every(({ index }, i) => index === i) ? bindings : null;
}

/** `<storage, read> name: type`. */
function bindingOf(source: Source, tokens: readonly string[]): Omit<Binding, "index"> | null {
  const close = tokens.indexOf(">"); // of var<…>, whose list has no templates
  const words = listOf(tokens.slice(1, close)).map((part) => part.join(" "));
  const type = tokens[0] === "<" ? TYPES.get(words.join()) : undefined;
  const [name = "", colon, ...value] = tokens.slice(close + 1);
  if (type === undefined || colon !== ":") return null;
  const layout = source.layout(value);
  const element = layout?.element;
  return {
    name,
    type,
    value: value.join("").replace(/,/g, ", "),
    scalar: layout?.scalar ?? null,
    atomic: layout?.atomic ?? false,
    stride: layout?.size ?? 0,
    element: element ? strideOf(element) : 0,
    align: element && !element.flat ? element.align : 0,
    runtime: layout?.runtime ?? false,
  };
}

const TYPES: ReadonlyMap<string, Binding["type"]> = new Map([
  ["uniform", "uniform"],
  ["uniform,read", "uniform"],
  ["storage", "read-only-storage"],
  ["storage,read", "read-only-storage"],
  ["storage,read_write", "storage"],
]);

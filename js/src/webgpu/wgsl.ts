/** Parses a shader's source for its bindings, and the size of its workgroups. */

/** The scalar type of a buffer, if it has only one. */
export type Scalar = "f32" | "f16" | "i32" | "u32";

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
  /** Bytes from an element of the array to the next, or of the whole value; 0: unknown. */
  readonly stride: number;
  /** Bytes of an element itself: fewer than `stride` for vec3. */
  readonly size: number;
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

/** WGSL without its comments, which become blanks; block comments nest, line ends stay. */
export function stripComments(wgsl: string): string {
  let out = "";
  let depth = 0;
  for (let i = 0; i < wgsl.length; i++) {
    const two = wgsl.slice(i, i + 2);
    if (two === "/*") {
      depth++;
      i++;
    } else if (depth > 0 && two === "*/") {
      depth--;
      i++;
      if (depth === 0) out += " ";
    } else if (depth > 0) {
      if (wgsl[i] === "\n") out += "\n";
    } else if (two === "//") {
      const end = /[\n\v\f\r\u0085\u2028\u2029]/g;
      end.lastIndex = i;
      i = (end.exec(wgsl)?.index ?? wgsl.length) - 1;
    } else out += wgsl[i];
  }
  return out;
}

const TOKEN = /[\p{XID_Start}_][\p{XID_Continue}]*|\d[\w.]*|[^\s]/gu;

const BRACKETS: Record<string, string> = { "(": ")", "{": "}", "[": "]" };
/** In types "<" opens a template; in expressions it compares. */
const OPEN: Record<string, string> = { ...BRACKETS, "<": ">" };

class Tokens {
  readonly #list: readonly string[];
  #at = 0;

  constructor(text: string) {
    this.#list = text.match(TOKEN) ?? [];
  }

  get next(): string | undefined {
    return this.#list[this.#at];
  }

  take(): string {
    return this.#list[this.#at++] ?? "";
  }

  accept(token: string): boolean {
    if (this.next !== token) return false;
    this.#at++;
    return true;
  }

  /** The tokens between a bracket, which is next, and its partner. */
  group(): string[] {
    const close = [BRACKETS[this.take()]];
    const inside: string[] = [];
    while (this.next !== undefined) {
      const token = this.take();
      if (token === close.at(-1)) {
        close.pop();
        if (close.length === 0) return inside;
      } else if (token in BRACKETS) close.push(BRACKETS[token]);
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
}

/** The memory layout of a type (WGSL 14.4: Memory Layout). */
interface Layout {
  readonly scalar: Scalar | null;
  readonly atomic: boolean;
  readonly align: number;
  readonly size: number;
  /** Of a runtime-sized array, its element's. */
  readonly element?: Layout;
}

interface Attribute {
  readonly name: string;
  readonly args: string;
}

const SCALARS: Record<string, Scalar> = { f32: "f32", f16: "f16", i32: "i32", u32: "u32" };
const LETTERS: Record<string, Scalar> = { f: "f32", h: "f16", i: "i32", u: "u32" };

const align = (n: number, to: number) => Math.ceil(n / to) * to;

class Source {
  readonly aliases = new Map<string, string[]>();
  readonly structs = new Map<string, string[]>();
  readonly numbers = new Map<string, number>();

  /** The layout of a type; null if unknown. */
  layout(type: readonly string[], depth = 0): Layout | null {
    const [name = "", ...rest] = type;
    if (depth > 20) return null;
    const scalar = SCALARS[name];
    if (scalar) return plain(scalar, 1);
    const short = /^(vec|mat)([234])(?:x([234]))?([fhiu])$/.exec(name);
    if (short) {
      const [, kind, a, b, letter] = short;
      const of = LETTERS[letter as string] as Scalar;
      return kind === "vec" ? plain(of, Number(a)) : matrix(of, Number(a), Number(b));
    }
    const alias = this.aliases.get(name);
    if (alias && rest.length === 0) return this.layout(alias, depth + 1);
    const members = this.structs.get(name);
    if (members && rest.length === 0) return this.#struct(members, depth);
    if (rest[0] !== "<" || rest.at(-1) !== ">") return null;
    const args = splitBy(rest.slice(1, -1), ",");
    const inner = this.layout(args[0] ?? [], depth + 1);
    if (inner === null) return null;
    if (name === "atomic") return { ...inner, atomic: true };
    if (name === "array") return this.#array(inner, args[1]);
    const long = /^(vec|mat)([234])(?:x([234]))?$/.exec(name);
    if (!long || inner.scalar === null) return null;
    return long[1] === "vec"
      ? plain(inner.scalar, Number(long[2]))
      : matrix(inner.scalar, Number(long[2]), Number(long[3]));
  }

  /** The integer that an expression is: a literal, or the name of one. */
  number(tokens: readonly string[] | undefined): number | null {
    if (tokens?.length !== 1) return null;
    const [token = ""] = tokens;
    const literal = /^(0[xX][\da-fA-F]+|\d+)[iu]?$/.exec(token);
    return literal ? Number(literal[1]) : (this.numbers.get(token) ?? null);
  }

  #array(element: Layout, length: readonly string[] | undefined): Layout | null {
    const stride = align(element.size, element.align);
    if (length === undefined || length.length === 0) return { ...element, size: stride, element };
    const count = this.number(length);
    return count === null ? null : { ...element, size: count * stride };
  }

  #struct(members: readonly string[], depth: number): Layout | null {
    let [offset, most] = [0, 1];
    let scalar: Scalar | null | undefined;
    let last: Layout | undefined;
    for (const member of splitBy(members, ",")) {
      if (member.length === 0) continue;
      const { attributes, rest } = attributesOf(member);
      const colon = rest.indexOf(":");
      const layout = colon > 0 ? this.layout(rest.slice(colon + 1), depth + 1) : null;
      if (layout === null || last?.element) return null;
      const given = (name: string, otherwise: number) => {
        const found = attributes.find((attribute) => attribute.name === name);
        return found ? this.number([found.args]) : otherwise;
      };
      const [own, size] = [given("align", layout.align), given("size", layout.size)];
      if (own === null || size === null) return null;
      offset = align(offset, own) + (layout.element ? 0 : size);
      most = Math.max(most, own);
      scalar = scalar === undefined || scalar === layout.scalar ? layout.scalar : null;
      last = layout;
    }
    if (last === undefined) return null;
    const size = align(offset, most);
    // With a runtime-sized array at its end, the whole is not an array of equal elements.
    return { scalar: last.element ? null : (scalar ?? null), atomic: false, align: most, size };
  }
}

function plain(scalar: Scalar, count: number): Layout {
  const bytes = scalar === "f16" ? 2 : 4;
  const size = bytes * count;
  return { scalar, atomic: false, align: count === 3 ? 4 * bytes : size, size };
}

function matrix(scalar: Scalar, columns: number, rows: number): Layout {
  const column = plain(scalar, rows);
  return { ...column, size: columns * align(column.size, column.align) };
}

/** Splits at a token outside of brackets. */
function splitBy(tokens: readonly string[], separator: string): string[][] {
  const parts: string[][] = [[]];
  let depth = 0;
  for (const token of tokens) {
    if (token in OPEN) depth++;
    else if (Object.values(OPEN).includes(token)) depth--;
    if (token === separator && depth === 0) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts;
}

/** `@name(args)` in front of a declaration, and what follows. */
function attributesOf(tokens: readonly string[]): { attributes: Attribute[]; rest: string[] } {
  const attributes: Attribute[] = [];
  let at = 0;
  while (tokens[at] === "@") {
    const name = tokens[at + 1] ?? "";
    at += 2;
    let args = "";
    if (tokens[at] === "(") {
      const end = tokens.indexOf(")", at);
      args = tokens.slice(at + 1, end).join("");
      at = end + 1;
    }
    attributes.push({ name, args });
  }
  return { attributes, rest: tokens.slice(at) };
}

/** A declaration of the module's scope. */
interface Declaration {
  readonly attributes: Attribute[];
  readonly kind: string;
  readonly tokens: readonly string[];
}

function* declarations(wgsl: string): Generator<Declaration> {
  const tokens = new Tokens(stripComments(wgsl));
  while (tokens.next !== undefined) {
    const attributes: Attribute[] = [];
    while (tokens.accept("@")) {
      const name = tokens.take();
      attributes.push({ name, args: tokens.next === "(" ? tokens.group().join("") : "" });
    }
    const kind = tokens.take();
    if (kind === "fn") {
      const name = tokens.take();
      while (tokens.next !== undefined && tokens.next !== "{") {
        if (tokens.next === "(") tokens.group();
        else tokens.take();
      }
      if (tokens.next === "{") tokens.group();
      yield { attributes, kind, tokens: [name] };
    } else if (kind === "struct") {
      const name = tokens.take();
      yield { attributes, kind, tokens: [name, ...(tokens.next === "{" ? tokens.group() : [])] };
    } else if (kind !== ";") yield { attributes, kind, tokens: tokens.statement() };
  }
}

/** The bindings of a shader, and the workgroup size of an entry point. */
export function parseShader(wgsl: string, entry: string): Shader {
  const source = new Source();
  const variables: Declaration[] = [];
  let size: string | undefined;
  for (const declaration of declarations(wgsl)) {
    const { kind, tokens, attributes } = declaration;
    const [name = "", ...rest] = tokens;
    if (kind === "struct") source.structs.set(name, rest);
    else if (kind === "alias") source.aliases.set(name, rest.slice(1));
    else if (kind === "const" || kind === "override") {
      const value = source.number(rest.slice(rest.indexOf("=") + 1));
      if (kind === "const" && value !== null) source.numbers.set(name, value);
    } else if (kind === "fn" && name === entry) {
      size = attributes.find((attribute) => attribute.name === "workgroup_size")?.args;
    } else if (kind === "var" && attributes.length > 0) variables.push(declaration);
  }
  return { bindings: bindingsOf(source, variables), workgroup: workgroupOf(source, size) };
}

function workgroupOf(source: Source, size: string | undefined): Shader["workgroup"] {
  if (size === undefined) return null;
  const given = size.split(",").filter((part) => part !== "");
  const [x, y = 1, z = 1] = given.map((part) => source.number([part]));
  return x == null || y === null || z === null ? null : [x, y, z];
}

function bindingsOf(source: Source, variables: readonly Declaration[]): Binding[] | null {
  const bindings: Binding[] = [];
  for (const { attributes, tokens } of variables) {
    const number = (name: string) => {
      const found = attributes.find((attribute) => attribute.name === name);
      return found ? source.number([found.args.replace(/,$/, "")]) : null;
    };
    const index = number("binding");
    const found = bindingOf(source, tokens);
    if (index === null || number("group") !== 0 || found === null) return null;
    bindings.push({ index, ...found });
  }
  bindings.sort((a, b) => a.index - b.index);
  return bindings.every(({ index }, i) => index === i) ? bindings : null;
}

/** `<storage, read> name: type`. */
function bindingOf(source: Source, tokens: readonly string[]): Omit<Binding, "index"> | null {
  const close = tokens.indexOf(">"); // of var<…>, whose list has no templates
  const [space, access] = splitBy(tokens.slice(1, close), ",").map(([token]) => token);
  const type = tokens[0] === "<" ? bindingType(space, access) : null;
  const [name = "", colon, ...value] = tokens.slice(close + 1);
  if (type === null || colon !== ":") return null;
  const layout = source.layout(value);
  const element = layout?.element ?? layout;
  return {
    name,
    type,
    value: value.join("").replace(/,/g, ", "),
    scalar: element?.scalar ?? null,
    atomic: element?.atomic ?? false,
    stride: layout ? align(layout.size, layout.element ? layout.align : 1) : 0,
    size: element?.size ?? 0,
    runtime: layout?.element !== undefined,
  };
}

function bindingType(
  space?: string,
  access?: string,
): "uniform" | "storage" | "read-only-storage" | null {
  if (space === "uniform") return "uniform";
  if (space !== "storage") return null;
  return access === "read_write" ? "storage" : "read-only-storage";
}

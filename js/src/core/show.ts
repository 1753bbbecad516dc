import type { Element } from "./elements.js";

/** Of tensors with more elements, consoles show only the ends of each axis. */
const MOST = 1000;

interface Shown {
  readonly shape: readonly number[];
  readonly size: number;
  readonly nbytes: number;
  readonly released: boolean;
  readonly device: { readonly gpu: unknown };
  readonly data: { readonly BYTES_PER_ELEMENT: number };
  at(...index: number[]): Element;
  copy(): unknown;
  toString(): string;
}

/** A tensor as consoles show it; `inspect` gives the console's own text of an array. */
export function shown(tensor: Shown, inspect: (value: unknown) => string | undefined): string {
  const name = tensor.toString();
  if (tensor.released) return `${name} (released)`;
  if (tensor.device.gpu) return `${name} (await its read() for the elements)`;
  try {
    return `${name} ${elementsOf(tensor, name.length + 1)}`;
  } catch {} // not aligned, or a dtype that JavaScript lacks: its bytes
  let bytes: string | undefined;
  try {
    if (tensor.nbytes < 8192) bytes = inspect(tensor.copy());
  } catch {} // the memory is gone
  return `${name} ${bytes ?? "(see its copy())"}`;
}

/**
 * The elements of a CPU tensor as NumPy prints them: rows below each other, indented by `width`, and of
 * a large tensor `edge` elements of both ends of each axis. Throws where `at()` does.
 */
function elementsOf(tensor: Shown, width: number): string {
  const { shape, size } = tensor;
  if (size === 0) return "[]";
  const { BYTES_PER_ELEMENT } = tensor.data;
  const edge = size <= MOST ? size : [3, 3, 3, 3, 2][shape.length];
  if (edge === undefined) throw new RangeError("too many axes to show");
  // Digits that tell floats of that width apart: 0.1, not 0.10000000149011612.
  const digits = BYTES_PER_ELEMENT < 4 ? 5 : BYTES_PER_ELEMENT < 8 ? 9 : 17;
  const name = (x: unknown): string => {
    if (typeof x !== "number" || Number.isInteger(x) || digits === 17) return String(x);
    for (let few = 1; ; few++) {
      const short = Number(x.toPrecision(few));
      if (few === digits || (digits === 9 && Math.fround(short) === x)) return String(short);
    }
  };

  const write = (index: readonly number[]): string => {
    const axis = index.length;
    if (axis === shape.length) {
      const x = tensor.at(...index);
      if (!Array.isArray(x)) return name(x);
      return `${name(x[0])}${x[1] < 0 ? "" : "+"}${name(x[1])}i`;
    }
    const extent = shape[axis] as number;
    const parts: string[] = [];
    for (let i = 0; i < extent; i++) {
      if (extent > 2 * edge && i === edge) {
        parts.push("...");
        i = extent - edge;
      }
      parts.push(write([...index, i]));
    }
    const rest = shape.length - axis - 1;
    const gap = rest === 0 ? " " : "\n".repeat(rest) + " ".repeat(width + axis + 1);
    return `[${parts.join(`,${gap}`)}]`;
  };
  return write([]);
}

/**
 * Using a tensor as an array, a number, a string or another library's tensor throws an error that says
 * what to do instead. Without it `array.set(tensor)` copies nothing, `tensor + 1` is a string, and `new Blob([tensor])`
 * holds a name.
 */
import { CPU } from "./dlpack.js";

interface Tensorlike {
  readonly device?: { readonly type: number };
  toString(): string;
}

/** The type of `tensor.length`, which TypeScript shows where an array is needed. */
export type NotArray = "a Tensor is not an array: use tensor.data or tensor.copy()";

/** The properties that code reads first of an array. */
const ARRAYS = /^(length|byteLength|0|[1-9]\d*)$/;

/** Throws an error that says what to use instead of the tensor. */
function refuse(tensor: Tensorlike, what: string): void {
  const way = tensor.device?.type === CPU ? "Use .data or .copy()" : "Use await .read() or .buffer";
  const error = new TypeError(`${tensor.toString()} ${what}. ${way}`);
  // Pyodide's bool() of a JsProxy reads `length`, and treats an error as false.
  if (!/JsProxy_Bool/.test(`${error.stack}`)) throw error;
}

/** Implements `tensor[Symbol.toPrimitive]`. */
export function toPrimitive(tensor: Tensorlike, hint: string): never {
  const what = hint === "string" ? "is not a string; .toString() describes it" : "is not a number";
  return refuse(tensor, what) as never;
}

/**
 * The prototype of `Tensor.prototype`. JavaScript asks it for properties that tensors do not have. A
 * getter `length` would not do: Pyodide would take a tensor for a sequence, and end with `tensor + 1`; code
 * that copies or prints objects with all their getters would throw.
 */
export const notArray: object = new Proxy(
  {},
  {
    get(target, key, tensor) {
      if (typeof key === "string" && ARRAYS.test(key) && tensor.device) {
        refuse(tensor, `is not an array and has no ${key}`);
      }
      return Reflect.get(target, key, tensor);
    },
    set(target, key, value, tensor) {
      if (typeof key === "string" && ARRAYS.test(key)) {
        refuse(tensor, `is not an array and has no ${key}`);
      }
      return Reflect.set(target, key, value, tensor);
    },
  },
);

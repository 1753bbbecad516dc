import { WEBGPU } from "../core/dlpack.js";
import { cut, textOf } from "../core/errors.js";
import type { AbortSignal, Blob } from "../core/globals.js";
import { checkOptions } from "../core/options.js";
import { keeping } from "../core/releasing.js";
import { sizeOf } from "../core/shape.js";
import { isTensor, Tensor } from "../core/tensor.js";
import { abortable } from "../exchange/produce.js";
import { malformed } from "./entry.js";
import { npyHeader } from "./npy.js";
import { safetensorsHeader } from "./safetensors.js";
import { type SaveTarget, writerFor } from "./targets.js";

/** Several tensors by their names, in the order in which they are written. */
export type NamedTensors = Readonly<Record<string, Tensor>> | Iterable<readonly [string, Tensor]>;

/** Options of `save`. */
export interface SaveOptions {
  /** Where to; default: a new `Blob`. */
  to?: SaveTarget | undefined;
  /** Default: from the name of a file handle; otherwise npy for one tensor, safetensors for several. */
  format?: "npy" | "safetensors" | undefined;
  /** Metadata of a safetensors file. */
  metadata?: Readonly<Record<string, string>> | undefined;
  /** Aborts: `save` throws the signal's reason, and discards the bytes that were written. */
  signal?: AbortSignal | undefined;
}

/** Bytes that are read back and written at once. */
const PIECE = 8 << 20;

/**
 * Writes a tensor as a `.npy` file, or several as safetensors.
 *
 * ```js
 * const blob = await save(tensor);                           // a Blob
 * await save({ weight, bias }, { to: await folder.getFileHandle("model", { create: true }) });
 * ```
 *
 * GPU tensors are read back in pieces of at most 8 MiB, never as a whole. The tensors stay yours:
 * keep them until this resolves. A file handle's file is replaced completely or not at all; a
 * stream is closed, or aborted on errors.
 *
 * @param tensors - one, or several by their names
 * @param options - the target, the format and the metadata
 * @returns a Blob, unless `to` says where it goes
 * @throws UnsupportedError for a dtype that the format lacks; the target's errors
 */
export async function save(
  tensors: Tensor | NamedTensors,
  options: SaveOptions & { to: SaveTarget },
): Promise<undefined>;
export async function save(
  tensors: Tensor | NamedTensors,
  options?: SaveOptions & { to?: undefined },
): Promise<Blob>;
export async function save(
  tensors: Tensor | NamedTensors,
  options: SaveOptions = {},
): Promise<Blob | undefined> {
  const names = { to: 1, format: 1, metadata: 1, signal: 1 } as const;
  checkOptions<SaveOptions>(options, "save()", names, 'format: "npy"');
  const { to, format, metadata, signal } = options;
  const single = isTensor(tensors);
  const wanted = format ?? formatNamed(to) ?? (single ? "npy" : "safetensors");
  if (wanted !== "npy" && wanted !== "safetensors") {
    throw new TypeError(`format "${textOf(wanted)}" is not "npy" or "safetensors"`);
  }
  if (single !== (wanted === "npy")) {
    throw new TypeError(
      single
        ? "a safetensors file has names: pass an object of tensors by their names"
        : "a .npy file has one tensor: pass it alone, or save as safetensors",
    );
  }
  if (single && metadata) throw new TypeError("a .npy file has no metadata: save as safetensors");
  const { header, held } = single ? npyOf(tensors) : safetensorsOf(tensors, metadata ?? {});
  try {
    return await write(to, header, held, signal);
  } finally {
    for (const tensor of held) tensor.release();
  }
}

/** The format that the name of a file handle asks for. */
function formatNamed(to: SaveTarget | undefined): SaveOptions["format"] {
  const { name } = Object(to) as { name?: unknown };
  const [, suffix] = /[^.].*\.(\w+)$/.exec(String(name ?? "")) ?? [];
  const known = suffix?.toLowerCase();
  if (known === undefined || known === "npy" || known === "safetensors") return known;
  throw new TypeError(
    `save() does not write .${cut(suffix as string, 20)} files: name it .npy or .safetensors, or give the format`,
  );
}

async function write(
  to: SaveTarget | undefined,
  header: Uint8Array,
  held: readonly Tensor[],
  signal: AbortSignal | undefined,
): Promise<Blob | undefined> {
  signal?.throwIfAborted();
  const making = writerFor(to);
  try {
    const writer = await abortable(making, signal);
    await abortable(writer.write(header), signal);
    for (const tensor of held) {
      for (const part of partsOf(tensor)) {
        const bytes = await abortable(bytesIn(part), signal);
        await abortable(writer.write(bytes), signal);
      }
    }
    return await abortable(writer.close(), signal);
  } catch (error) {
    const aborting = making.then(
      (writer) => writer.abort(error),
      () => {},
    );
    // A target that does not answer is not waited for once more.
    if (!signal?.aborted) await aborting;
    throw error;
  }
}

/** A header, and the tensors to write: holds of our own. */
function npyOf(tensor: Tensor) {
  checkWhole(tensor);
  const axes = tensor.shape.map((_, axis) => -1 - axis);
  const turned = tensor.permute(axes);
  const columns = turned._managed.strides === null && tensor._managed.strides !== null;
  const held = columns ? turned : new Tensor(tensor._managed.share());
  if (!columns) turned.release();
  return keeping(held, () => {
    const { shape } = tensor;
    const { dtype: type } = tensor._managed;
    return { header: npyHeader({ type, shape, columns }, "the file"), held: [held] };
  });
}

function safetensorsOf(named: NamedTensors, metadata: Readonly<Record<string, string>>) {
  const pairs: (readonly [string, Tensor])[] =
    Symbol.iterator in named ? [...named] : Object.entries(named);
  const facts = pairs.map(([name, tensor]) => {
    if (typeof name !== "string") throw new TypeError(`the name ${textOf(name)} is not a string`);
    if (!isTensor(tensor)) throw new TypeError(`"${cut(name)}" is not a tensor of this library`);
    checkWhole(tensor);
    return { name, tensor, type: tensor._managed.dtype, shape: tensor.shape, columns: false };
  });
  if (new Set(facts.map(({ name }) => name)).size < facts.length) {
    throw new TypeError("two tensors have the same name");
  }
  const isPlain = typeof metadata === "object" && !(Symbol.iterator in metadata);
  const entries = isPlain ? Object.entries(metadata) : [];
  if (!isPlain || entries.some(([, value]) => typeof value !== "string")) {
    throw new TypeError(
      "metadata must be an object of strings: Object.fromEntries() makes one of pairs",
    );
  }
  const header = safetensorsHeader(facts, Object.fromEntries(entries), "the file");
  const held: Tensor[] = [];
  try {
    for (const { tensor } of facts) held.push(new Tensor(tensor._managed.share()));
  } catch (error) {
    for (const tensor of held) tensor.release();
    throw error;
  }
  return { header, held };
}

function checkWhole(tensor: Tensor): void {
  tensor._managed.check();
  if (tensor.padded || tensor._managed.dtype.step % 1 !== 0) {
    throw malformed(
      "the file",
      `no format supports elements of less than a byte: ${tensor.toString()}`,
    );
  }
}

/** Consecutive views of at most so many bytes; each is the caller's. */
function* partsOf(tensor: Tensor): Generator<Tensor, void, undefined> {
  const { size, itemsize, shape } = tensor;
  if (size === 0) return;
  if (tensor._managed.strides === null) {
    const flat = tensor.reshape([-1]);
    const count = Math.max(Math.floor(PIECE / itemsize), 1);
    try {
      for (let first = 0; first < size; first += count) yield flat.slice([first, first + count]);
    } finally {
      flat.release();
    }
    return;
  }
  const length = shape[0] as number;
  const rows = Math.floor(PIECE / (sizeOf(shape.slice(1)) * itemsize));
  for (let first = 0; first < length; first += Math.max(rows, 1)) {
    if (rows > 0) {
      yield tensor.slice([first, first + rows]);
      continue;
    }
    const row = tensor.slice(first);
    try {
      yield* partsOf(row);
    } finally {
      row.release();
    }
  }
}

/** A copy of the elements; releases the view. */
async function bytesIn(part: Tensor): Promise<Uint8Array> {
  try {
    // CPU tensors are copied now: writing to a stream may wait meanwhile.
    const array = part.device.type === WEBGPU ? await part.read() : part.copy();
    return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  } finally {
    part.release();
  }
}

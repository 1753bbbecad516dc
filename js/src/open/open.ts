import { concat } from "../core/bytes.js";
import { type DTypeName, dtypeNamed } from "../core/dtype.js";
import { cut, textOf, UnsupportedError } from "../core/errors.js";
import type { AbortSignal } from "../core/globals.js";
import { checkOptions } from "../core/options.js";
import type { Tensor } from "../core/tensor.js";
import { Cursor } from "./cursor.js";
import { dtypeOfDescr, isRaw } from "./dtypes.js";
import {
  type Described,
  detectWrongFile,
  faultOf,
  HEAD_BYTES,
  malformed,
  nbytesOf,
  shapeOf,
} from "./entry.js";
import { TensorFile } from "./file.js";
import { load } from "./load.js";
import { NPY_MAGIC, type NpyHeader, npyPreamble, parseNpy } from "./npy.js";
import { type Format, OPEN_NAMES, type OpenOptions } from "./options.js";
import { type Held, Reader } from "./reader.js";
import { looksLikeSafetensors, parseSafetensors, safetensorsLength } from "./safetensors.js";
import { checkShards, indexFrom, opened } from "./shards.js";
import type { Source } from "./source.js";
import { type OpenSource, sourceOf, spooled } from "./sources.js";
import { crc32, type Member, unpacked, zipMembers } from "./zip.js";

/** Files of which only some bytes are read at first. */
const SEVERAL = /\.(npz|safetensors|json)$/i;
const FORMATS: readonly string[] = ["npy", "npz", "safetensors", "raw"];

/**
 * Opens a file of tensors: `.npy`, `.npz`, safetensors, or raw elements; and a model of several
 * safetensors files by its index, `model.safetensors.index.json`.
 *
 * ```js
 * import { open } from "dlpack-web/open";
 *
 * const image = await open("image.npy", { device });      // a Tensor on the GPU
 * const host = await open(file.files[0]);                 // or on the CPU, of a File
 * using weights = await open("model.safetensors", { device });
 * const bias = await weights.get("bias");
 * ```
 *
 * Elements go to the GPU chunk by chunk, with at most 32 MiB pending: neither JavaScript's memory
 * nor Python's grows with the file. A file's header is checked before anything is allocated for it.
 *
 * @param source - a URL (requested in ranges if the server has them, and resumed if the connection
 * breaks), `File`, `Blob`, file handle of the origin's file system, `Response`, `ReadableStream`,
 * `ArrayBuffer` or typed array. Streams and responses are consumed. Of a sharded model: the URL of
 * its index, beside which the shards are, the `File`s of a directory picker, or a directory handle
 * @param options - the device, a part, the dtype and shape of raw elements, headers of requests
 * @returns a Tensor, which the caller releases; for npz and safetensors a {@link TensorFile}, which
 * the caller closes
 * @throws UnsupportedError for files that are truncated, damaged or malformed, for dtypes that
 * DLPack lacks, and for tensors larger than a GPUBuffer; DLPackError for errors of a server;
 * DeviceLostError; the reason of an aborted `signal`
 */
export async function open<D extends DTypeName = DTypeName>(
  source: OpenSource,
  options: OpenOptions<D> & { format: "npy" | "raw" },
): Promise<Tensor<D>>;
export async function open(
  source: OpenSource,
  options: OpenOptions & { format: "npz" | "safetensors" },
): Promise<TensorFile>;
export async function open<D extends DTypeName = DTypeName>(
  source: OpenSource,
  options?: OpenOptions<D>,
): Promise<Tensor<D> | TensorFile>;
export async function open(
  given: OpenSource,
  options: OpenOptions = {},
): Promise<Tensor | TensorFile> {
  checkOptions<OpenOptions>(options, "open()", OPEN_NAMES, 'format: "npy"');
  const { signal, format, retries = 0 } = options;
  if (format !== undefined && !FORMATS.includes(format)) {
    throw new TypeError(`format "${textOf(format)}" is not one of ${FORMATS.join(", ")}`);
  }
  if (typeof retries !== "number" || !(retries >= 0)) {
    throw new RangeError(`retries must be a number of 0 or more, not ${textOf(retries)}`);
  }
  if (options.dtype !== undefined) dtypeNamed(options.dtype); // an unknown one throws at once
  signal?.throwIfAborted();
  const isPart = (name: string) =>
    options.part !== undefined ||
    (format === undefined ? SEVERAL.test(name) : format === "npz" || format === "safetensors");
  const source = await sourceOf(given, options, isPart, signal);
  const cursor = Cursor.at(source, 0, undefined, signal);
  let kept: Source | null = null;
  try {
    const opened = await read(source, cursor, options);
    if (opened instanceof TensorFile) kept = source;
    return opened;
  } finally {
    // A file that is read from its start continues with the cursor.
    if (kept === null || source.way === "any") await cursor.close();
    if (kept === null) source.close();
  }
}

async function read(
  source: Source,
  cursor: Cursor,
  options: OpenOptions,
): Promise<Tensor | TensorFile> {
  const format: Format | "index" = await formatOf(source, cursor, options);
  if (format !== "raw" && options.shape !== undefined) {
    throw new TypeError(
      `${source.name} is a file of format ${format}, which has its own shape; for its bytes as ` +
        'they are, use format: "raw"',
    );
  }
  if (options.part !== undefined && format !== "npy" && format !== "raw") {
    throw new TypeError(
      `${source.name} has several tensors: open it without part, then file.load(name, { part })`,
    );
  }
  switch (format) {
    case "npy":
      return openNpy(source, cursor, options);
    case "raw":
      return openRaw(source, cursor, options);
    case "safetensors":
      return openSafetensors(source, cursor, options);
    case "npz":
      return openNpz(source, cursor, options);
    case "index":
      return openIndex(source, cursor, options);
  }
  return format satisfies never;
}

async function formatOf(
  source: Source,
  cursor: Cursor,
  { format, dtype, shape }: OpenOptions,
): Promise<Format | "index"> {
  if (format === "raw") return format;
  const head = await cursor.peek(HEAD_BYTES);
  const begins = (...magic: readonly number[]) => magic.every((byte, i) => head[i] === byte);
  if (format === undefined) {
    if (begins(...NPY_MAGIC)) return "npy";
    if (begins(0x50, 0x4b, 3, 4) || begins(0x50, 0x4b, 5, 6)) return "npz";
    if (begins(0x7b) && /\.json$/i.test(source.name)) return "index";
    if (looksLikeSafetensors(head) && shape === undefined) return "safetensors";
  }
  const wrong = detectWrongFile(head, format === undefined ? source.contentType : null);
  if (wrong !== undefined) throw malformed(source.name, wrong);
  if (format !== undefined) return format;
  const suffix = /\.(npy|npz|safetensors)$/i.exec(source.name)?.[1]?.toLowerCase();
  if (suffix === undefined && dtype !== undefined) return "raw";
  throw malformed(
    source.name,
    suffix === undefined
      ? "it does not begin like a .npy, .npz or safetensors file: raw elements need dtype"
      : `it does not begin like a .${suffix} file; a server may have sent something else`,
    String.fromCharCode(...head.slice(0, 8)),
  );
}

/** The header of a `.npy` file at the cursor, and its length. */
async function headerOf(cursor: Cursor): Promise<NpyHeader & { bytes: number }> {
  const { name, position } = cursor;
  const what = "the header of a .npy file";
  const head = await cursor.peek(12);
  if (!NPY_MAGIC.every((byte, i) => head[i] === byte)) {
    throw malformed(name, "it does not begin like a .npy file");
  }
  if (head.length < 12) await cursor.take(12, what); // throws that it ends here
  const { major, before, header } = npyPreamble(head, name);
  await cursor.take(before, what);
  const described = parseNpy(await cursor.take(header, what), major, name);
  return { ...described, bytes: cursor.position - position };
}

async function openNpy(source: Source, cursor: Cursor, options: OpenOptions): Promise<Tensor> {
  const { name } = source;
  const { descr, shape, columns, bytes } = await headerOf(cursor);
  const found = dtypeOfDescr(descr);
  let type = options.dtype && dtypeNamed(options.dtype);
  if ("type" in found) type = found.type;
  else if (type === undefined || !isRaw(descr, type)) {
    throw malformed(name, `it ${found.why}`, descr);
  }
  return loadRest(source, cursor, bytes, { type, shape, columns }, options);
}

/** The tensor whose elements are the rest of a file, after a header of so many bytes. */
function loadRest(
  source: Source,
  cursor: Cursor,
  header: number,
  described: Described,
  options: OpenOptions,
): Promise<Tensor> {
  const { name, size } = source;
  const nbytes = nbytesOf(described);
  checkSize(source, header, nbytes, `shape [${described.shape}] of ${described.type.name}`);
  if (options.part !== undefined) {
    const reader = new Reader(source, source.way === "any" ? null : cursor);
    return reader.load({ name, ...described, start: header, nbytes }, name, options);
  }
  const total = size === undefined ? undefined : nbytes;
  const chunks = exactly(cursor, nbytes, "its elements");
  return load({ what: name, ...described, total }, chunks, options);
}

/** Throws unless exactly so many bytes of elements follow the header. */
function checkSize(
  { name, size, doubt }: Pick<Source, "name" | "size" | "doubt">,
  header: number,
  nbytes: number,
  what: string,
): void {
  if (size === undefined || size === header + nbytes) return;
  const there = size - header;
  const why =
    there < nbytes
      ? `it is cut off: ${what} takes ${nbytes} bytes, and ${Math.max(there, 0)} are there`
      : `${there - nbytes} bytes follow the elements, which ${what} does not account for`;
  throw malformed(name, why + (doubt ? `; or ${doubt}` : ""), size);
}

/** So many bytes, which must be the last. */
async function* exactly(cursor: Cursor, nbytes: number, what: string) {
  yield* cursor.chunks(nbytes, what);
  if (await cursor.atEnd()) return;
  throw malformed(cursor.name, `more bytes follow ${what}`);
}

async function openRaw(source: Source, cursor: Cursor, options: OpenOptions): Promise<Tensor> {
  const { name } = source;
  const { dtype, ...others } = options;
  const { signal } = options;
  if (dtype === undefined) throw new TypeError("raw elements need their dtype");
  const type = dtypeNamed(dtype);
  if (options.shape === undefined) await source.confirmSize?.(signal);
  const shape = rawShape(options.shape, type.step, source);
  if (shape === null) {
    if (options.part !== undefined) {
      throw new UnsupportedError(`the length of ${name} is unknown: a part of it needs shape`);
    }
    if (options.device) {
      throw new UnsupportedError(`the length of ${name} is unknown: a GPUBuffer needs shape`);
    }
    const coming = { what: name, type, shape, columns: false, total: undefined };
    return load(coming, cursor.rest(), others);
  }
  return loadRest(source, cursor, 0, { type, shape, columns: false }, others);
}

function rawShape(
  given: ArrayLike<number> | undefined,
  step: number,
  { name, size, confirmSize }: Source,
): number[] | null {
  if (given !== undefined) return shapeOf(given, name);
  if (size === undefined) return null;
  if ((size / step) % 1 === 0) return [size / step];
  const said = confirmSize
    ? "; the server announced them, and announces fewer where it compresses the file: open the body " +
      "of a plain fetch() then"
    : "";
  throw malformed(
    name,
    `its ${size} bytes are not a whole number of elements of ${step} bytes${said}`,
    size,
  );
}

async function openSafetensors(
  source: Source,
  cursor: Cursor,
  options: OpenOptions,
): Promise<TensorFile> {
  const { metadata, ...contents } = await contentsOf(source, cursor, options);
  return new TensorFile(source.name, [contents], metadata, options);
}

/** A model in several files, whose headers are read side by side. */
async function openIndex(
  source: Source,
  cursor: Cursor,
  options: OpenOptions,
): Promise<TensorFile> {
  const { name } = source;
  const index = await indexFrom(source, cursor);
  const shards = await opened(index.shards, async (shard) => {
    const found = await index.siblingOf(shard, options.signal);
    const start = Cursor.at(found, 0, undefined, options.signal);
    try {
      await formatOf(found, start, { format: "safetensors" });
      return { shard, source: found, ...(await contentsOf(found, start, options)) };
    } catch (error) {
      found.close();
      throw error;
    } finally {
      if (found.way === "any") await start.close();
    }
  });
  try {
    checkShards(index, shards, name);
    return new TensorFile(name, shards, index.metadata, options);
  } catch (error) {
    for (const { reader } of shards) reader.close();
    throw error;
  }
}

/** What reads the tensors of a safetensors file, and its metadata. */
async function contentsOf(source: Source, cursor: Cursor, options: OpenOptions) {
  const { name, size } = source;
  const what = "the header of a safetensors file";
  const first = (await cursor.take(8, what)).slice();
  const length = safetensorsLength(first, name);
  if (size !== undefined && 8 + length > size) {
    throw malformed(
      name,
      `it is cut off: its header has ${length} bytes, the file ${size}`,
      length,
    );
  }
  // Beyond the first answer exactly the rest is asked for.
  const begun = Math.min(source.begun ?? Infinity, 8 + length);
  let header = await cursor.take(begun - 8, what);
  if (begun < 8 + length) {
    const more = Cursor.at(source, begun, 8 + length, options.signal);
    header = concat([header, await more.take(8 + length - begun, what)]);
    await more.close();
  }
  const { entries, metadata, end } = parseSafetensors(header, name);
  checkSize(source, 8 + length, end - 8 - length, "its list of tensors");
  if (source.way === "any") return { reader: new Reader(source), entries, metadata };
  const head = { bytes: 8 + length, sum: crc32(header, crc32(first)) };
  return { reader: new Reader(source, cursor, head), entries, metadata };
}

async function openNpz(given: Source, cursor: Cursor, options: OpenOptions): Promise<TensorFile> {
  const { signal } = options;
  // Its directory is at the end: the browser buffers sources that cannot be read from there.
  const source = given.way === "any" ? given : await spooled(given, cursor.rest());
  if (source.size === undefined) {
    throw malformed(source.name, "the server does not report its length: open its Blob");
  }
  const members = await zipMembers(source, source.size, signal);
  const held: Held[] = [];
  for (const member of members) {
    if (!member.name.endsWith(".npy")) continue; // not an array
    held.push(await heldIn(source, member, signal));
  }
  if (held.length === 0 && members.length > 0) {
    const isTorch = members.some(({ name }) => name.endsWith("data.pkl"));
    throw malformed(
      source.name,
      isTorch
        ? "it is a file of PyTorch: torch.load() it, and save its tensors as safetensors"
        : `it is a zip without a .npy file among its ${members.length}: save arrays with np.savez()`,
    );
  }
  const contents = [{ reader: new Reader(source), entries: held }];
  return new TensorFile(source.name, contents, {}, options);
}

/** Most headers are within so many bytes of an entry, compressed or not. */
const HEAD = 4096;

/** The description of an array in an entry of a zip file; of one that cannot be read, the reason. */
async function heldIn(source: Source, member: Member, signal?: AbortSignal): Promise<Held> {
  const { name: file, size: nbytes, why } = member;
  const name = file.slice(0, -".npy".length);
  const refused = { name, type: "unreadable", shape: [], columns: false, start: 0, nbytes };
  if (why !== undefined) return { ...refused, why: `cannot be loaded: ${why}` };
  try {
    return await describedIn(source, member, name, signal);
  } catch (error) {
    if (!faultOf(error)) throw error;
    return { ...refused, why: `cannot be loaded: ${(error as Error).message}` };
  }
}

async function describedIn(source: Source, member: Member, name: string, signal?: AbortSignal) {
  const what = `"${cut(member.name)}"`;
  const few = Math.min(member.limit, member.header + 30 + 2 * member.name.length + HEAD);
  const header = await headerIn(source, member, few, what, signal).catch((error: unknown) => {
    if (few === member.limit || !faultOf(error)?.ended) throw error;
    return headerIn(source, member, member.limit, what, signal);
  });
  const { descr, shape, columns, bytes: start } = header;
  const found = dtypeOfDescr(descr);
  if ("why" in found) {
    const nbytes = Math.max(member.size - start, 0);
    return { name, type: cut(descr), shape, columns, start, nbytes, why: found.why, member };
  }
  const { type } = found;
  const nbytes = nbytesOf({ type, shape });
  const inside = { name: what, size: member.size };
  checkSize(inside, start, nbytes, `shape [${shape}] of ${type.name}`);
  return { name, type, shape, columns, start, nbytes, member };
}

/** The header of an array in an entry, of which the bytes up to `end` are read. */
async function headerIn(
  source: Source,
  member: Member,
  end: number,
  what: string,
  signal?: AbortSignal,
) {
  const cursor = Cursor.at(source, member.header, end, signal);
  const inner = new Cursor(what, 0, unpacked(cursor, member, signal));
  try {
    return await headerOf(inner);
  } finally {
    await inner.close();
    await cursor.close();
  }
}

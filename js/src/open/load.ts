import { checkConversion } from "../core/convert.js";
import { type DType, dtypeNamed } from "../core/dtype.js";
import { releasing } from "../core/releasing.js";
import type { Tensor } from "../core/tensor.js";
import { abortable } from "../exchange/produce.js";
import type { Described } from "./entry.js";
import { gpuSink } from "./gpu.js";
import type { LoadOptions, OpenOptions } from "./options.js";
import { convertingSink, growingSink, memorySink, type Sink } from "./sink.js";

/** Progress is reported after every so many bytes, and at the end. */
const STEP = 1 << 20;

/** A tensor to load. */
export interface Coming extends Omit<Described, "shape"> {
  /** Names it in messages. */
  readonly what: string;
  /** null: all elements, along one axis. */
  readonly shape: readonly number[] | null;
  /** Bytes of all elements if known; undefined otherwise. */
  readonly total: number | undefined;
}

/**
 * Moves all chunks to the sink and returns the tensor, which is the caller's. Errors leave nothing
 * behind.
 */
export async function load(
  coming: Coming,
  chunks: AsyncIterable<Uint8Array>,
  options: LoadOptions & Pick<OpenOptions, "place">,
): Promise<Tensor> {
  const making = sinkFor(coming, options);
  const { signal } = options;
  try {
    const sink = await abortable(making, signal);
    await pour(chunks, sink, coming.total, options);
    return turned(await sink.finish(), coming);
  } catch (error) {
    making.then(
      (sink) => sink.drop(),
      () => {},
    );
    throw error;
  }
}

async function pour(
  chunks: AsyncIterable<Uint8Array>,
  sink: Sink,
  total: number | undefined,
  { progress, signal }: LoadOptions,
): Promise<void> {
  let [loaded, told] = [0, 0];
  for await (const chunk of chunks) {
    const putting = sink.put(chunk);
    if (putting !== undefined) await abortable(putting, signal);
    loaded += chunk.length;
    signal?.throwIfAborted();
    if (progress && loaded - told >= STEP) {
      told = loaded;
      progress(loaded, total);
    }
  }
  if (progress && (told < loaded || loaded === 0)) progress(loaded, total);
  signal?.throwIfAborted();
}

async function sinkFor(
  { what, type, shape, columns, total }: Coming,
  { device, dtype, place }: LoadOptions & Pick<OpenOptions, "place">,
): Promise<Sink> {
  const to: DType = dtype === undefined ? type : dtypeNamed(dtype);
  if (to !== type) checkConversion(type, to, what);
  const gpu = device && "gpu" in device ? device.gpu : device;
  const dims = columns && shape ? [...shape].reverse() : shape;
  let sink: Sink;
  if (gpu && dims) sink = await gpuSink(gpu, dims, to);
  else if (total === undefined || dims === null) sink = growingSink(dims, to, place);
  else sink = memorySink(dims, to, place);
  return to === type ? sink : convertingSink(sink, type, to, what);
}

/** If the first index varies fastest, the axes are reversed: a view. */
function turned(tensor: Tensor, { columns }: Coming): Tensor {
  if (!columns) return tensor;
  return releasing(tensor, () => tensor.permute(tensor.shape.map((_, axis) => -1 - axis)));
}

import { Tensor } from "../core/tensor.js";
import type { Range } from "../core/views.js";
import type { Address, DeviceId } from "../pyodide/numbers.js";
import { deviceOf, type Python, resultOf } from "../pyodide/python.js";
import type {
  LoadOptions,
  OpenOptions,
  OpenSource,
  SaveOptions,
  SaveTarget,
  TensorFile,
} from "./index.js";
import type { Place } from "./sink.js";

const files = () => import("./library.js");

/** Python's calls about files that JavaScript opens and writes. */
export class Files {
  constructor(private readonly python: Python) {}

  /**
   * Opens a file to a device, or with -1 to Python's memory: `promise` resolves to a Tensor or a
   * TensorFile; release() releases it, then or later; before, it ends the loading.
   */
  open(source: OpenSource, deviceId: DeviceId, options: OpenOptions, progress?: Progress) {
    return resultOf((signal) =>
      files().then(({ open }) => open(source, this.#loading(deviceId, options, progress, signal))),
    );
  }

  /** The same for a tensor of such a file. */
  load(
    file: TensorFile,
    name: string,
    deviceId: DeviceId,
    options: LoadOptions,
    progress?: Progress,
  ) {
    return resultOf((signal) =>
      file.get(name, this.#loading(deviceId, options, progress, signal) as LoadOptions),
    );
  }

  #loading(
    deviceId: DeviceId,
    options: OpenOptions,
    progress: Progress | undefined,
    signal: AbortSignal,
  ): OpenOptions {
    const device = deviceId < 0 ? undefined : deviceOf(deviceId);
    const place: Place = (shape, type) => new Tensor(this.python.heap.empty(shape, type));
    const { format, dtype, shape, whole, ...others } = options;
    const { part, ellipsis } = others as PythonPart;
    // Some Pyodides convert None to null.
    const given = Object.entries({ format, dtype, shape, whole, progress });
    return {
      ...Object.fromEntries(given.filter(([, value]) => value != null)),
      // How many axes an ellipsis stands for is known with the header.
      ...(part && {
        part: ((ndim: number) => [
          ...part.slice(0, ellipsis),
          ...new Array<null>(Math.max(ndim - part.length, 0)).fill(null),
          ...part.slice(ellipsis),
        ]) as unknown as readonly Range[],
      }),
      device,
      place,
      signal,
    };
  }

  /** Writes tensors to a stream or file handle; release() ends it. No name: a single one. */
  save(
    target: SaveTarget,
    names: readonly string[],
    options: SaveOptions,
    ...addresses: Address[]
  ) {
    const tensors = this.python.tensorsAt(addresses);
    const { format, metadata } = options;
    const named = new Map(names.map((name, i) => [name, tensors[i] as Tensor]));
    const what = format === "npy" ? (tensors[0] as Tensor) : named;
    const wanted = format === "npy" ? { format } : { format, metadata };
    return resultOf((signal) =>
      files()
        .then(({ save }) => save(what, { ...wanted, to: target, signal }))
        .finally(() => {
          for (const tensor of tensors) tensor.release();
        }),
    );
  }

  /** A file's descriptions of its tensors: [name, dtype, shape, bytes, why it is refused] of each. */
  factsOf(file: TensorFile) {
    const infos = file.names.map((name) => {
      const { dtype, shape, nbytes } = file.info(name);
      return [name, dtype, [...shape], nbytes, file._why(name)];
    });
    return { name: file.name, shards: file._shards, metadata: { ...file.metadata }, infos };
  }
}

/** A part as Python gives it: ranges, and before which of them `...` stands. */
interface PythonPart {
  readonly part?: readonly Range[];
  readonly ellipsis?: number;
}

type Progress = NonNullable<LoadOptions["progress"]>;

// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
// More than 500 lines: one class, whose methods share its private state.
/**
 * Sessions of onnxruntime-web for Python's `dlpack_web_onnxruntime`: feeds are addresses of
 * tensors, and results are new holds or go into existing tensors.
 *
 * Everything in one copy of the library runs in sequence: its WebAssembly can neither begin a
 * second call while one waits for the GPU, nor mount two sessions' files at once.
 */

import type { Tensor } from "dlpack-web";
import {
  bufferOf,
  CopyError,
  checkAlive,
  checkWrite,
  fromOrt,
  type GPUDevice,
  type Handle,
  inTurn,
  isOfRun,
  isUsable,
  nameSession,
  ON_CPU,
  ON_GPU,
  type Ort,
  type Python,
  ReleasedError,
  readInto,
  realDevice,
  shareDevice,
  toOrt,
  unseen,
  type Wait,
  type Work,
} from "dlpack-web/internal";
import { type GraphFacts, graphFacts } from "./graph.js";
import { externalFiles, type ModelFacts, modelFacts } from "./onnx.js";
import { type Labels, withoutValues, withoutZipMaps } from "./rewrite.js";

/** An input or output; `shape` has names, numbers and, for unknown extents, 2 ** 32 - 1. */
interface Slot {
  name: string;
  isTensor: boolean;
  type?: string;
  shape?: (number | string)[];
}

/** Feeds of strings, by the numbers of their inputs. */
type StringFeeds = Record<number, { data: string[]; dims: number[] }>;

/** Elements of at least this size go to the GPU directly from Python's memory. */
const UPLOADED_BYTES = 1 << 14;
/**
 * Dtypes that a GPU computes with: others are mostly shapes and indices, which ORT needs on the
 * CPU.
 */
const UPLOADED = ["float32", "float16", "uint8"];

/**
 * Where an output goes: to Python's memory, or it stays on the device; other values are addresses.
 */
const IN_MEMORY = 0;
const ON_DEVICE = 1;

/** One copy of onnxruntime-web. */
export class Library {
  constructor(
    readonly ort: Ort,
    private readonly python: Python,
  ) {}

  /** The version of onnxruntime-web. */
  get version(): string {
    return (this.ort.env as any).versions?.web ?? "";
  }

  /** The library's log levels, from 0 (all) to 4 (fatal). */
  logFrom(severity: number): void {
    Reflect.set(this.ort.env, "logLevel", LEVELS[severity]);
  }

  /** Names of the external data files of a model in memory. */
  filesOf(model: Uint8Array): string[] {
    return externalFiles(model);
  }

  /**
   * Begins to load a model.
   *
   * @param model - a copy of its bytes, which is kept, or its URL
   * @param files - contents of its external data files, by their names in the model; missing ones
   * are fetched beside a URL
   * @param usual - the device to use if `options` has the provider "webgpu" and the library has no
   * device yet; default: a new one
   * @param device - the one to use in any case
   */
  open(
    model: Uint8Array | string,
    files: Record<string, Uint8Array>,
    options: object,
    usual?: GPUDevice,
    device?: GPUDevice,
  ): Session {
    // All sessions that are made of it are of the same file.
    let fetching: Promise<Loaded> | undefined;
    const load = async () => {
      if (typeof model !== "string") return { model, files };
      fetching ??= fetchModel(model, files);
      return fetching;
    };
    return new Session(this.ort, this.python, { load, options, usual, device });
  }
}

const LEVELS = ["verbose", "info", "warning", "error", "fatal"];

/** A model, and its external data files by their names. */
interface Loaded {
  model: Uint8Array;
  files: Record<string, Uint8Array>;
}

interface Source {
  load: () => Promise<Loaded>;
  options: { executionProviders?: unknown[] };
  usual: GPUDevice | undefined;
  device: GPUDevice | undefined;
}

/** A session, and the means to make it again after a failed run; see {@link Session.renew}. */
export class Session {
  /** Resolves when the model is loaded. */
  readonly ready: Promise<void>;
  /** @internal Required inputs, then those with a default value in the model. */
  inputs: readonly Slot[] = [];
  /** How many are required. */
  #required = 0;
  /** @internal */
  outputs: readonly Slot[] = [];
  /** Sessions in which default values are fed, by their names. */
  readonly #overriding = new Map<string, Session>();
  #session: Promise<any> | undefined;
  #current: any;
  #facts: ModelFacts | undefined;
  #graph: GraphFacts | undefined;
  /** The labels of outputs that are lists of dicts, and come as a tensor. */
  #zipped = new Map<string, Labels>();
  #gpu: GPUDevice | undefined;
  #released = false;
  /** Runs that compute with it and have not ended. */
  readonly #computing = new Set<Promise<void>>();
  /** Runs of Python, by number: a JavaScript object costs Python more than the run. */
  readonly #runs = new Map<number, Run>();

  constructor(
    readonly ort: Ort,
    /** @internal */
    readonly python: Python,
    private readonly source: Source,
  ) {
    this.#session = this.#begin();
    this.ready = this.#session.then(() => {});
  }

  /** The device that it runs on; undefined on the CPU. */
  get device(): GPUDevice | undefined {
    return this.#gpu;
  }

  /** Facts about the model. */
  get facts() {
    return {
      inputs: this.inputs.slice(0, this.#required),
      outputs: this.outputs,
      model: this.#facts,
      graph: this.#graph,
      zipped: this.#zipped,
    };
  }

  /** Opens it; where that fails, the next run tries again. */
  #begin(): Promise<any> {
    const opening = this.#open();
    opening.catch(() => {
      if (this.#session === opening) this.#session = undefined;
    });
    return opening;
  }

  async #open(): Promise<any> {
    const { options } = this.source;
    const onGPU = options.executionProviders?.includes("webgpu");
    if (onGPU) this.#gpu = await this.#device();
    const { model: written, files } = await this.source.load();
    this.#facts = modelFacts(written);
    this.#graph = graphFacts(written);
    const { refused } = this.#graph;
    if (refused) {
      const { name, type } = refused;
      throw unsupported(
        `onnxruntime-web has no ${type}, the type of ${name}: export the model in float32 or float16`,
      );
    }
    const { model, zipped } = withoutZipMaps(written);
    this.#zipped = zipped;
    const externalData = Object.entries(files).map(([path, data]) => ({ path, data }));
    const create = (locations: object) =>
      inTurn(this.ort, async () => {
        const wanted = { ...options, ...locations, ...(externalData.length && { externalData }) };
        return (this.ort as any).InferenceSession.create(model, wanted);
      }).catch((error) => {
        throw asError(error);
      });
    let made = await create(onGPU ? { preferredOutputLocation: "gpu-buffer" } : {});
    try {
      if (onGPU) {
        const stays = (slot: Slot) => slot.isTensor && ON_GPU.includes(slot.type as string);
        const outputs: Slot[] = made.outputMetadata;
        // Only now it is known whether a GPU has no room for some of them.
        if (!outputs.every(stays)) {
          const on = outputs.filter(stays).map(({ name }) => [name, "gpu-buffer"]);
          const before = made;
          made = undefined;
          await inTurn(this.ort, () => before.release());
          made = await create({ preferredOutputLocation: Object.fromEntries(on) });
        }
      }
      const { overridable, wrongName } = this.#graph;
      if (wrongName !== undefined) throw unsupported(wrongName);
      const replaced = overridable.map(({ name }) => ({ name, isTensor: true }));
      this.inputs = [...made.inputMetadata, ...replaced];
      this.#required = made.inputMetadata.length;
      this.outputs = made.outputMetadata.map((slot: Slot) =>
        zipped.has(slot.name) ? { ...slot, isTensor: false } : slot,
      );
    } catch (error) {
      if (made) await inTurn(this.ort, () => made.release());
      throw error;
    }
    const { graph_name } = this.#facts;
    if (graph_name) nameSession(made, graph_name);
    this.#current = made;
    return made;
  }

  async #device(): Promise<GPUDevice> {
    const { ort } = this;
    const { usual, device } = this.source;
    const started = realDevice<GPUDevice | undefined>(await ort.env.webgpu?.device);
    const runs = started !== undefined && (await isUsable(started));
    return shareDevice({ ort }, { device: device ?? (runs ? undefined : usual) });
  }

  /** @internal The session of the library. */
  async opened(): Promise<any> {
    if (this.#released) throw new ReleasedError("this session was released");
    this.#session ??= this.#begin();
    return this.#session;
  }

  /** @internal Whether this session of the library is still current: no run in between has failed. */
  isCurrent(own: unknown): boolean {
    return own === this.#current;
  }

  /**
   * @internal Makes the next run use a new session: after a failed run, onnxruntime-web reuses the inputs of
   * that run if outputs stay on the GPU.
   */
  renew(): void {
    if (this.#gpu === undefined) return;
    const before = this.#session;
    this.#session = undefined;
    this.#current = undefined;
    this.#dispose(before);
  }

  /**
   * The session for a run, by the numbers of the inputs fed: another one if default values are fed.
   */
  #engineFor(strings: object, feeds: readonly number[]): Session {
    const names = [...Object.keys(strings).map(Number), ...feeds.filter((_, i) => i % 2 === 0)]
      .filter((i) => i >= this.#required)
      .map((i) => (this.inputs[i] as Slot).name)
      .sort();
    if (names.length === 0 || this.#released) return this;
    const key = JSON.stringify(names);
    let found = this.#overriding.get(key);
    if (found === undefined) {
      const load = async () => {
        const { model, files } = await this.source.load();
        return { model: withoutValues(model, names), files };
      };
      const source = { ...this.source, load, device: this.#gpu };
      found = new Session(this.ort, this.python, source);
      found.ready.catch(() => this.#overriding.delete(key)); // the run raises it
      this.#overriding.set(key, found);
    }
    return found;
  }

  /**
   * Begins a run, which holds the tensors itself.
   *
   * @param number - Python's number for the run, until {@link end}
   * @param options - of the run, if any
   * @param strings - `{data, dims}` of inputs of strings, by their numbers
   * @param count - number of the other feeds
   * @param numbers - for each of those the number of the input and the address of the tensor, then
   * for each output its number and where it goes: 0 Python's memory, 1 stays on the device, or
   * the address of a tensor to overwrite
   */
  start(
    number: Work,
    options: object | undefined,
    strings: StringFeeds | undefined,
    count: number,
    ...numbers: number[]
  ): void {
    const [feeds, outputs] = [numbers.slice(0, 2 * count), numbers.slice(2 * count)];
    const engine = this.#graph?.overridable.length ? this.#engineFor(strings ?? {}, feeds) : this;
    const run = new Run(this, engine, options, strings, feeds, outputs);
    this.#runs.set(number, run);
    engine.#computing.add(run.done);
    const forget = () => engine.#computing.delete(run.done);
    run.done.then(forget, forget);
  }

  /** The same; returns the number with which Python waits for the first result. */
  startToWait(number: Work, ...given: any[]): Wait {
    this.start(number, ...(given as [object | undefined, any, number, ...number[]]));
    return this.python.waits.add(this.#run(number).done, () => this.take(number, 0));
  }

  /** Number of runs that were begun and have not ended. */
  get running(): number {
    return this.#runs.size;
  }

  #run(number: Work): Run {
    return this.#runs.get(number) as Run;
  }

  /** Resolves when a run has its results. */
  done(number: Work): Promise<void> {
    return this.#run(number).done;
  }

  /** The number with which Python waits for that. */
  wait(number: Work): Wait {
    return this.python.waits.add(this.#run(number).done);
  }

  /** The hold of a result for Python to take over; with the last result the run ends. */
  take(number: Work, i: number): Handle {
    const run = this.#run(number);
    const handle = this.python.give(run.values[i] as Tensor);
    if (run.countTaken()) this.#runs.delete(number);
    return handle;
  }

  /** A result of strings, likewise. */
  strings(number: Work, i: number): unknown {
    const run = this.#run(number);
    if (run.countTaken()) this.#runs.delete(number);
    return run.values[i];
  }

  /** Gives up a run: it writes to no target any more, and the results that were not taken are released. */
  end(number: Work): void {
    this.#runs.get(number)?.release();
    this.#runs.delete(number);
  }

  /** Ends it once its runs are done. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    const before = this.#session;
    this.#session = undefined;
    Promise.allSettled(this.#computing).then(() => this.#dispose(before));
    for (const session of this.#overriding.values()) session.release();
    this.#overriding.clear();
  }

  #dispose(session: Promise<any> | undefined): void {
    session?.then((made) => inTurn(this.ort, () => made.release())).catch(() => {}); // raised by the run
  }
}

/** A run of a session, from its start until all results are taken or released. */
class Run {
  /** Resolves with the results. */
  readonly done: Promise<void>;
  readonly #outputs: { slot: Slot; to: number; target: Tensor | undefined }[] = [];
  // Names are the model's, "__proto__" among them.
  readonly #feeds: Record<string, any> = Object.create(null);
  readonly #fetches: Record<string, any> = Object.create(null);
  readonly #uploaded: Tensor[] = [];
  /** The results: tensors, and strings. */
  readonly values: (Tensor | { data: string[]; dims: number[] })[] = [];
  #taken = 0;
  #released = false;
  #reading: AbortController | undefined;

  constructor(
    private readonly session: Session,
    /** The session that computes: another one if default values are fed. */
    private readonly engine: Session,
    options: object | undefined,
    strings: StringFeeds | undefined,
    feeds: number[],
    outputs: number[],
  ) {
    if (session.device) checkAlive(session.device);
    try {
      for (const [i, { data, dims }] of Object.entries(strings ?? {})) {
        const { name } = session.inputs[+i] as Slot;
        this.#feeds[name] = new session.ort.Tensor("string", data, dims);
      }
      for (let i = 0; i < feeds.length; i += 2)
        this.#feed(feeds[i] as number, feeds[i + 1] as number);
      for (let i = 0; i < outputs.length; i += 2) {
        this.#fetch(outputs[i] as number, outputs[i + 1] as number);
      }
    } catch (error) {
      this.#releaseAll();
      throw error;
    }
    this.done = this.#wait(options);
  }

  #feed(index: number, address: number): void {
    const { ort, python, device, inputs } = this.session;
    const tensor = python.tensorAt(address);
    const { name } = inputs[index] as Slot;
    try {
      this.#feeds[name] =
        device && !tensor.device.gpu && isUploaded(tensor)
          ? this.#upload(tensor.to(device))
          : isSmall(tensor)
            ? new ort.Tensor(tensor.dtype, tensor.copy(), [...tensor.shape])
            : toOrt(ort, tensor);
    } finally {
      tensor.release();
    }
  }

  /** Over a buffer that is reused after this run: a fresh one costs more than the upload. */
  #upload(tensor: Tensor): any {
    this.#uploaded.push(tensor);
    return this.session.ort.Tensor.fromGpuBuffer(bufferOf(tensor), {
      dataType: tensor.dtype,
      dims: [...tensor.shape],
    });
  }

  /** Code that may still use one of those buffers keeps it. */
  #giveUp(isKept: (buffer: ReturnType<typeof bufferOf>) => boolean): void {
    for (const tensor of this.#uploaded) if (isKept(bufferOf(tensor))) void tensor.buffer;
  }

  #fetch(index: number, to: number): void {
    const { ort, python, outputs } = this.session;
    const slot = outputs[index] as Slot;
    const target = to > ON_DEVICE ? python.tensorAt(to) : undefined;
    this.#outputs.push({ slot, to, target });
    this.#fetches[slot.name] = null;
    // Its buffer cannot be read and written at once.
    const isFed = Object.values(this.#feeds).some(
      (feed) => feed.location === "gpu-buffer" && feed.gpuBuffer === target?.buffer,
    );
    if (!target?.device.gpu || isFed) return;
    try {
      this.#fetches[slot.name] = toOrt(ort, target, { copy: false });
    } catch (error) {
      if (!(error instanceof CopyError)) throw error; // overwritten afterwards
    }
  }

  /** Runs in its turn, with the session that is current then. */
  async #wait(options: object | undefined): Promise<void> {
    const session = this.engine;
    try {
      for (let done = false; !done && !this.#released; ) {
        const own = await session.opened();
        done = await inTurn(session.ort, async () => {
          if (!session.isCurrent(own)) return false;
          if (!this.#released) await this.#run(own, options);
          return true;
        });
      }
    } catch (error) {
      if (!this.#released) throw error;
      unseen(error); // nobody waits for it
    } finally {
      this.#releaseAll();
    }
  }

  async #run(own: any, options: object | undefined): Promise<void> {
    const session = this.session;
    let results: Record<string, any>;
    try {
      results = await own.run(this.#feeds, this.#fetches, { ...options });
    } catch (error) {
      this.#giveUp(() => true);
      this.engine.renew();
      if (session.device) checkAlive(session.device);
      throw isOfRun(error) ? failed(error) : asError(error);
    }
    const given = Object.values(results).filter(({ location }) => location === "gpu-buffer");
    this.#giveUp((buffer) => given.some(({ gpuBuffer }) => gpuBuffer === buffer));
    try {
      if (this.#released) return;
      await this.#take(results).catch((error) => {
        throw isOfRun(error) ? failed(error) : error;
      });
      if (session.device) checkAlive(session.device);
    } finally {
      for (const value of Object.values(results)) value.dispose();
      if (this.#released) this.release();
    }
  }

  /** Moves the results to their targets. */
  async #take(results: Record<string, any>): Promise<void> {
    const { ort, python } = this.session;
    const sources: Tensor[] = [];
    const targets: Tensor[] = [];
    const passing: Tensor[] = [];
    try {
      for (const { slot, to, target } of this.#outputs) {
        const value = results[slot.name];
        if (value.type === "string") {
          this.values.push({ data: value.data, dims: [...value.dims] });
          continue;
        }
        if (value === this.#fetches[slot.name]) {
          this.values.push((target as Tensor).reshape((target as Tensor).shape));
          continue;
        }
        if (to === IN_MEMORY && value.location === "cpu" && ON_CPU.includes(value.type)) {
          this.values.push(python.filled(value.dims, value.type, value.data));
          continue;
        }
        const tensor = fromOrt(ort, value);
        if (target && (target.device.gpu || !tensor.device.gpu)) {
          passing.push(tensor);
          target.write(tensor);
          this.values.push(target.reshape(target.shape));
        } else if (tensor.device.gpu && to !== ON_DEVICE) {
          passing.push(tensor);
          if (target) checkWrite(target, tensor);
          const host =
            target?.reshape(target.shape) ?? python.bridge.empty(tensor.shape, tensor.dtype);
          this.values.push(host);
          sources.push(tensor);
          targets.push(host);
        } else {
          this.values.push(tensor);
        }
      }
      if (sources.length > 0) {
        this.#reading = new AbortController();
        await readInto(sources, targets, this.#reading.signal);
      }
    } finally {
      for (const tensor of passing) tensor.release();
    }
  }

  /** Counts a result that Python has taken, each once; whether it was the last one. */
  countTaken(): boolean {
    this.#taken++;
    return this.#taken === this.#outputs.length;
  }

  /** Releases the results that were not taken. What comes later is written to no target. */
  release(): void {
    this.#released = true;
    this.#reading?.abort();
    for (const value of this.values) if ("release" in value) value.release();
  }

  /** Releases what the run needed. */
  #releaseAll(): void {
    for (const each of [...Object.values(this.#feeds), ...Object.values(this.#fetches)])
      each?.dispose();
    for (const tensor of this.#uploaded) tensor.release();
    for (const { target } of this.#outputs) target?.release();
  }
}

/** In the words of onnxruntime-web: NOT_IMPLEMENTED. */
function unsupported(message: string): Error {
  return new Error(`failed to load the model. ERROR_CODE: 9, ERROR_MESSAGE: ${message}`);
}

/** A device's error of a run, in the words of onnxruntime-web: EP_FAIL. */
function failed(cause: Error): Error {
  const message = `failed to call OrtRun(). ERROR_CODE: 11, ERROR_MESSAGE: ${cause.message}`;
  return new Error(message, { cause });
}

/** C++ throws numbers. */
function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** Copying it costs less than sharing it with the library. */
function isSmall({ device, dtype, nbytes, padded }: Tensor): boolean {
  return device.gpu === null && !padded && nbytes < UPLOADED_BYTES && ON_CPU.includes(dtype);
}

function isUploaded({ dtype, nbytes }: Tensor): boolean {
  return nbytes >= UPLOADED_BYTES && UPLOADED.includes(dtype);
}

/** A model, and its external data files; those that are not known are fetched beside it. */
async function fetchModel(url: string, known: Loaded["files"]): Promise<Loaded> {
  const model = await fetched(url);
  const files: Record<string, Uint8Array> = Object.assign(Object.create(null), known);
  await Promise.all(
    externalFiles(model).map(async (name) => {
      files[name] ??= await fetched(new URL(name, new URL(url, location.href)).href);
    }),
  );
  return { model, files };
}

async function fetched(url: string): Promise<Uint8Array> {
  const response = await fetch(url).catch((cause) => {
    throw new Error(`NO_SUCHFILE: ${url} cannot be fetched: ${cause.message}`, { cause });
  });
  if (!response.ok) throw new Error(`NO_SUCHFILE: ${url} gives ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

import { DLPackError, ReleasedError, UnsupportedError } from "../../core/errors.js";
import type { GPUBuffer, GPUDevice } from "../../core/globals.js";
import type { ManagedTensor } from "../../core/managed.js";
import { checkOptions } from "../../core/options.js";
import { dispose } from "../../core/symbols.js";
import { managedOf } from "../../core/tensor.js";
import { recording } from "../buffers/checks.js";
import { encodeCopy } from "../buffers/copies.js";
import { extentIn, type LiveSlot, roundUp } from "../buffers/slot.js";
import { checkAlive, type DeviceRecord, nameOf, workingDevice } from "../device/device.js";
import { calledAt, currentSite, operate, Settling } from "../errors/errors.js";
import { explanations } from "../errors/explanations.js";
import {
  type BufferRecord,
  type Extent,
  isOpen,
  isPrivate,
  markWritten,
  type Outcome,
  openOutcomes,
  setOutcome,
} from "../errors/record.js";
import * as messages from "../messages.js";
import { type Bound, type Prepared, prepare, releaseBound } from "./arguments.js";
import {
  type Argument,
  byPosition,
  checkParam,
  checkWorkgroups,
  type Given,
  packNumber,
  type RunOptions,
  readCounts,
} from "./checks.js";
import { copyBack, Kernel } from "./kernels.js";

/** The changes of {@link Batch.update} to a recorded call. */
export interface BatchChanges {
  /** New arguments by position; the others stay. */
  args?: Readonly<Record<number, Argument>> | undefined;
  /** New counts; default those that were recorded. */
  workgroups?: RunOptions["workgroups"];
}

/** @internal A recorded call: everything that WebGPU needs to run it. */
export interface Call extends Prepared {
  readonly kernel: Kernel;
  /** Tensors that the batch references, and numbers. */
  readonly args: readonly (ManagedTensor | number)[];
  readonly workgroups: RunOptions["workgroups"];
  readonly group: GPUBindGroup;
  /** Arguments that are copied before the pass, and those that are copied back after it. */
  readonly copiesIn: readonly { readonly source: GPUBuffer; readonly bound: Bound }[];
  readonly copiesOut: readonly Bound[];
  readonly reads: readonly Extent[];
  readonly writes: readonly Extent[];
  /** The outcome of compiling the kernel and making the bind group. */
  readonly prepared: Outcome;
  /** The number that Python gave the call. */
  readonly site: number | undefined;
}

/**
 * Calls of kernels that are recorded once and run many times, in one submit each; made by
 * `webgpu.batch`.
 */
export class Batch {
  readonly #device: DeviceRecord;
  #calls: readonly Call[] = [];
  #recorded = false;
  #released = false;
  /** Outcomes of preparing the calls that are not known to be good. */
  #preparing: readonly Outcome[] = [];
  /** Names it in the faults of its results. */
  readonly #identity = {};
  /** The outcome of the last run. */
  #last: Outcome | null = null;
  /** The buffers of all calls; null: not known yet. */
  #touched: readonly Touched[] | null = null;

  /** @internal */
  constructor(device: GPUDevice) {
    this.#device = workingDevice(device);
  }

  /**
   * Records the kernels that `block` runs, instead of running them, and holds their tensors. All
   * else in the block happens at once; reading what a recorded kernel writes, or writing what it
   * uses, throws. Reading the results that kernels return throws until `run()`. If the block throws,
   * nothing stays recorded, and the batch is released.
   *
   * @param block - returns before the recording ends, so it is not async
   * @returns this batch
   */
  record(block: () => unknown): this {
    this.#check();
    if (this.#recorded) {
      throw new DLPackError("a batch is recorded once: record another one, webgpu.batch(device)");
    }
    if (recording.batch !== null) {
      throw new DLPackError("a batch is being recorded already: batches do not nest");
    }
    let returned: unknown = Promise.resolve();
    recording.batch = this;
    this.#recorded = true;
    let done = false;
    try {
      returned = block();
      done = typeof Object(returned).then !== "function";
    } finally {
      recording.batch = null;
      if (!done) this.release();
    }
    if (done) return this;
    throw new TypeError("record() takes no async function: await before it");
  }

  /** Number of recorded calls. */
  get length(): number {
    return this.#calls.length;
  }

  /** Whether it was released. */
  get released(): boolean {
    return this.#released;
  }

  /**
   * Runs all recorded kernels in order: one command buffer, one submit. Each run reads what the
   * tensors contain when it comes in the queue.
   *
   * A kernel that the GPU refuses keeps the whole batch from running: reading any tensor that the
   * batch writes throws the error of that kernel.
   *
   * @throws ReleasedError, DeviceLostError
   */
  run(): void {
    this.#check();
    if (recording.batch !== null) {
      throw new DLPackError("a batch is being recorded: run() one after record()");
    }
    const calls = this.#calls;
    if (calls.length === 0) {
      if (this.#recorded) return;
      throw new DLPackError("nothing was recorded: batch.record(() => { kernel.run(…); }) first");
    }
    const device = this.#device;
    checkAlive(device);
    this.#preparing = this.#preparing.filter(isOpen);
    const last = this.#last;
    const submit = () => device.gpu.queue.submit([encode(device, calls)]);
    // An error scope costs as much as encoding ten kernels.
    if (last && !last.fault && this.#touched && isAgain(this.#touched, last)) {
      const mayFail = this.#preparing.length > 0 || !calls.every(({ kernel }) => kernel._isChecked);
      if (last.fault === null || !mayFail) {
        submit();
        return;
      }
    }
    const pending = last?.fault === undefined ? last : null;
    const { outcome } = operate(
      device,
      {
        what: "a batch",
        after: [...this.#preparing, pending],
        filters: ["validation"],
        explain: async (cause) =>
          (await explanations()).batchError(device, this.#released ? [] : calls, cause),
      },
      submit,
    );
    const own = outcome as Outcome;
    this.#last = own;
    this.#touched ??= touchedBy(calls);
    for (const call of calls) storeOutcome(this.#identity, call, own, pending);
  }

  /**
   * Changes a recorded call, from the next run on. Changing only numbers or workgroups is cheap;
   * for a tensor the call is prepared again. If it throws, nothing changes.
   *
   * ```js
   * batch.update(0, { args: { 0: nextFrame, 2: 0.5 } });
   * ```
   *
   * @param index - of the call, in the order of recording; negative from the end
   * @param changes - `args` by position, `workgroups`
   * @throws RangeError for no such call or argument, an input of a formula that is an output, too, or a
   * tensor of another shape than the one that a kernel of formulas was recorded with (raw inputs may
   * have any); what `run` of the kernel throws
   */
  update(index: number, changes: BatchChanges): void {
    const names = { args: 1, workgroups: 1 } as const;
    checkOptions<BatchChanges>(changes, "update()", names, "args: { 0: tensor }");
    const given = byPosition(changes.args ?? {});
    const counts = readCounts(changes.workgroups);
    const number = Number(index);
    this.#check(); // a getter in `changes` may have released it
    const at = number < 0 ? number + this.#calls.length : number;
    const old = this.#calls[at];
    if (old === undefined) {
      throw new RangeError(`the batch has ${this.#calls.length} calls, and no number ${number}`);
    }
    checkAlive(this.#device);
    const args: Given[] = [...old.args];
    const { _params: params, _label: label } = old.kernel;
    if (params && counts !== undefined) {
      throw new RangeError(messages.ownWorkgroups(label));
    }
    const count = params?.filter(Boolean).length ?? args.length;
    const changed: [number, Given][] = given.map(([i, value]) => {
      const param = params?.[i];
      if (params ? !param : !(i in args)) {
        throw new RangeError(messages.noArgument(label, count, i));
      }
      const at = i - (params?.slice(0, i).filter((one) => one === false).length ?? 0);
      const shapeOf = (x: unknown) => `${managedOf(x)?.shape}`;
      if (param) {
        checkParam(this.#device, value, param);
        if (!param.raw && shapeOf(value) !== shapeOf(args[at])) {
          throw new RangeError(messages.otherShape(label));
        }
      }
      args[at] = value;
      return [at, value];
    });
    const workgroups = counts ?? old.workgroups;
    const simple = changed.every(
      ([i, x]) => typeof x === "number" && typeof old.args[i] === "number",
    );
    const call = simple
      ? this.#rewrite(old, args as number[], changed as [number, number][], workgroups)
      : calledAt(old.site, () => this.#prepare(old.kernel, args, workgroups));
    this.#calls = this.#calls.map((one) => (one === old ? call : one));
    if (simple) return;
    this.#touched = null;
    this.#disown(old.writes, this.#calls.slice(0, at + 1));
    release(old);
  }

  /** Results that no call up to the changed one computes any more: a run does not end their errors. */
  #disown(writes: readonly Extent[], calls: readonly Call[]): void {
    for (const extent of writes) {
      if (calls.some((call) => call.writes.some((one) => meets(one, extent)))) continue;
      for (const { fault } of openOutcomes(extent)) {
        if (fault?.batch === this.#identity && fault.buffer === extent.buffer) fault.batch = {};
      }
    }
  }

  /** Writes numbers into the uniforms that the call has. */
  #rewrite(
    old: Call,
    args: Call["args"],
    given: readonly [number, number][],
    workgroups: RunOptions["workgroups"],
  ): Call {
    const groups =
      workgroups === old.workgroups ? old.groups : checkWorkgroups(this.#device, workgroups);
    const packed = given.map(([i, x]) => packNumber(x, i, old.kernel._shader.bindings?.[i]));
    const { queue } = this.#device.gpu;
    given.forEach(([i], at) => {
      const { buffer } = (old.bound[i] as Bound).resource;
      queue.writeBuffer(buffer, 0, packed[at] as Float32Array<ArrayBuffer>);
    });
    return { ...old, args, groups, workgroups };
  }

  /** Gives up all tensors; you may call it again. Runs that were submitted are not affected. */
  release(): void {
    const calls = this.#calls;
    this.#calls = [];
    this.#preparing = [];
    this.#last = null;
    this.#touched = null;
    this.#released = true;
    calls.forEach(release);
  }

  [dispose](): void {
    this.release();
  }

  /** @internal */
  _record(kernel: object, args: readonly Given[], options: RunOptions = {}): void {
    this.#check();
    if (!(kernel instanceof Kernel)) {
      throw new TypeError("a batch records kernels of its own copy of dlpack-web: load one only");
    }
    if (options.timestampWrites) {
      throw new UnsupportedError(
        `kernel "${kernel._label}" cannot be timed in a batch: time it outside`,
      );
    }
    if (kernel._device !== this.#device) {
      throw new UnsupportedError(
        `kernel "${kernel._label}" is compiled for ${nameOf(kernel._device)}, and the batch is on ` +
          `${nameOf(this.#device)}: record a batch for each device`,
        { device: this.#device.named },
      );
    }
    checkAlive(this.#device);
    // Preparing copies some arguments, which does not depend on what was recorded.
    const outer = recording.batch;
    recording.batch = null;
    try {
      this.#calls = [...this.#calls, this.#prepare(kernel, args, options.workgroups)];
      this.#touched = null;
    } finally {
      recording.batch = outer;
    }
  }

  /** @internal */
  _uses(extent: Extent, writing: boolean): boolean {
    const isMet = (one: Extent) => meets(one, extent);
    return this.#calls.some(
      ({ reads, writes }) => writes.some(isMet) || (writing && reads.some(isMet)),
    );
  }

  #check(): void {
    if (!this.#released) return;
    throw new ReleasedError("the batch was released: record another one, webgpu.batch(device)");
  }

  #prepare(kernel: Kernel, given: readonly Given[], workgroups: RunOptions["workgroups"]): Call {
    const args: (ManagedTensor | number)[] = [];
    let bound: readonly Bound[] = [];
    try {
      for (const x of given) args.push(managedOf(x)?.share() ?? (x as number));
      const prepared = prepare(kernel, args, workgroups);
      bound = prepared.bound;
      const { result: group, outcome } = operate(this.#device, kernel._operation(), () =>
        kernel._group(bound),
      );
      this.#preparing = [...this.#preparing, outcome as Outcome];
      const about = { kernel, args, workgroups, group, prepared: outcome as Outcome };
      const extents = extentsOf(bound);
      for (const { fault } of extents.writes.flatMap(openOutcomes)) {
        if (fault?.batch === null) fault.batch = this.#identity;
      }
      return { ...prepared, ...about, ...extents, site: currentSite() };
    } catch (error) {
      releaseBound(bound);
      for (const x of args) managedOf(x)?.release();
      throw error;
    }
  }
}

/** What a call reads and writes, and copies for that. */
function extentsOf(bound: readonly Bound[]) {
  const reads: Extent[] = [];
  const writes: Extent[] = [];
  const copiesIn: { source: GPUBuffer; bound: Bound }[] = [];
  for (const one of bound) {
    const { extent, temporary, written, resource, tensor, slot } = one;
    let own = extent;
    if (temporary !== 0) {
      // Of a buffer that only this call uses, only its creation can have failed.
      reads.push({ buffer: extent.buffer, start: 0, end: 0 });
      if (tensor === null || slot === null) continue;
      copiesIn.push({ source: slot.buffer.gpu, bound: one });
      own = extentIn(slot, tensor);
      if (written) markWritten(own.buffer, tensor.start + roundUp(tensor.nbytes, 4));
    }
    (written ? writes : reads).push(own);
    if (written) markWritten(extent.buffer, resource.offset + resource.size);
  }
  return {
    reads,
    writes,
    copiesIn,
    copiesOut: bound.filter((one) => one.written && one.temporary),
  };
}

function release({ args, bound }: Call): void {
  releaseBound(bound);
  for (const arg of args) managedOf(arg)?.release();
}

/** The commands of all calls: one pass, which copies interrupt. */
function encode(device: DeviceRecord, calls: readonly Call[]): GPUCommandBuffer {
  const encoder = device.gpu.createCommandEncoder();
  let pass: GPUComputePassEncoder | null = null;
  let pipeline: GPUComputePipeline | null = null;
  for (const { kernel, group, groups, copiesIn, copiesOut } of calls) {
    if (copiesIn.length > 0) {
      pass?.end();
      pass = null;
      for (const { bound } of copiesIn) copyIn(encoder, bound);
    }
    if (pass === null) {
      pass = encoder.beginComputePass();
      pipeline = null;
    }
    if (pipeline !== kernel._pipeline) {
      pipeline = kernel._pipeline;
      pass.setPipeline(pipeline);
    }
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(groups[0], groups[1], groups[2]);
    if (copiesOut.length > 0) {
      pass.end();
      pass = null;
      for (const copy of copiesOut) copyBack(device, encoder, copy);
    }
  }
  pass?.end();
  return encoder.finish();
}

/** What `bindCopy` does before a single run. */
function copyIn(encoder: GPUCommandEncoder, { resource, written, ...source }: Bound): void {
  const tensor = source.tensor as ManagedTensor;
  const { buffer, size } = resource;
  if (tensor.nbytes > 0) encodeCopy(encoder, tensor, source.slot as LiveSlot, buffer, 0);
  const words = roundUp(tensor.nbytes, 4);
  // The shader may have written to the padding in an earlier run.
  if (written && size > words) encoder.clearBuffer(buffer, words, size - words);
}

/** A buffer, and how many of its bytes the batch writes. */
interface Touched {
  readonly buffer: BufferRecord;
  readonly bytes: number;
}

function touchedBy(calls: readonly Call[]): Touched[] {
  const found = new Map<BufferRecord, Extent[]>();
  for (const { reads, writes } of calls) {
    for (const { buffer } of reads) if (!found.has(buffer)) found.set(buffer, []);
    for (const extent of writes) {
      const extents = found.get(extent.buffer);
      if (extents) extents.push(extent);
      else found.set(extent.buffer, [extent]);
    }
  }
  return [...found].map(([buffer, extents]) => ({ buffer, bytes: bytesOf(extents) }));
}

function meets(one: Extent, other: Extent): boolean {
  return (
    one.buffer === other.buffer && Math.max(one.start, other.start) < Math.min(one.end, other.end)
  );
}

/** Bytes of extents that may overlap. */
function bytesOf(extents: Extent[]): number {
  let bytes = 0;
  let at = 0;
  for (const { start, end } of extents.sort((a, b) => a.start - b.start)) {
    bytes += Math.max(0, end - Math.max(start, at));
    at = Math.max(at, end);
  }
  return bytes;
}

/**
 * Whether the GPU has accepted the same commands in the last run, on buffers that no foreign code can
 * have destroyed, and that run is the only one whose outcome matters. While it is pending, its outcome
 * is stored with all bytes that the next run writes.
 */
function isAgain(touched: readonly Touched[], last: Outcome): boolean {
  return touched.every(({ buffer, bytes }) => {
    if (buffer.origin !== "tensors" || !isPrivate(buffer) || isOpen(buffer.creation)) return false;
    let left = bytes;
    for (const { start, end, outcome } of buffer.writes) {
      if (outcome === last) left -= end - start;
      else if (isOpen(outcome)) return false;
    }
    return left === 0 || last.fault === null;
  });
}

/** Stores the outcome of a run with the bytes that a call writes. */
function storeOutcome(
  batch: object,
  { reads, writes }: Call,
  own: Outcome,
  last: Outcome | null,
): void {
  // Others than the run itself, and the one before, which it waits for. This runs for each kernel of each
  // run: no lists are made where there are none.
  let others: Outcome[] | null = null;
  for (const extents of [reads, writes]) {
    for (const extent of extents) {
      for (const open of openOutcomes(extent)) {
        const { fault } = open;
        const isFirst = fault?.batch === batch && fault.buffer === extent.buffer;
        if (
          (isFirst && extents === writes) ||
          open === own ||
          open === last ||
          others?.includes(open)
        )
          continue;
        others ??= [];
        others.push(open);
      }
    }
  }
  const outcome = others === null ? own : new Settling(Promise.resolve(null), [...others, own]);
  for (const extent of writes) setOutcome(extent, outcome);
}

/**
 * Records calls of kernels once, to run them many times: each run is one submit, and does nothing
 * for each kernel but to encode it. Bind groups and uniforms are prepared when they are recorded.
 *
 * ```js
 * const batch = webgpu.batch(device).record(() => {
 *   blur.run([x, y]);
 *   sharpen.run([y, z]);
 * });
 * batch.run(); // as often as you like
 * batch.release();
 * ```
 *
 * @param device - that of the kernels and tensors
 * @returns a batch, which holds the tensors until you call its `release()`
 * @throws DeviceLostError, TypeError for no `GPUDevice`
 */
export function batch(device: GPUDevice): Batch {
  return new Batch(device);
}

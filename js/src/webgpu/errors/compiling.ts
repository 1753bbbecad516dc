import { KernelError } from "../../core/errors.js";
import type { GPUBuffer, GPUError, GPUShaderModule } from "../../core/globals.js";
import { type DeviceRecord, nameOf } from "../device/device.js";
import type { Part } from "../formulas/formulas.js";
import { failure, sites } from "./errors.js";
import { HELP } from "./generated.js";

/** The error for a shader that does not compile, with each message under its line. */
export async function explain(
  device: DeviceRecord,
  label: string,
  wgsl: string,
  parts: readonly Part[],
  module: GPUShaderModule,
  cause: GPUError,
): Promise<KernelError> {
  const source = wgsl.split("\n");
  const errors = (await messagesOf(module)).filter(({ type }) => type === "error");
  const places = errors.map(({ lineNum, linePos }) => placeIn(source, parts, lineNum, linePos));
  const lines = places.map(({ where, line, column }, i) => {
    const row = source[line - 1] ?? "";
    const caret = `${" ".repeat(Math.max(column - 1, 0))}^`;
    const said = `${where}:${column}: ${errors[i]?.message}`;
    return `${said}\n${row}\n${caret}${helpFor(row, said)}`;
  });
  const text = lines.length > 0 ? lines.join("\n") : cause.message;
  return kernelError(device, `compiling kernel "${label}"`, label, text, cause, places[0]?.number);
}

/**
 * Where an error at a line and column of a source is shown: its name, the line and column of the
 * source, and the number of the line for users, who see parts alone (undefined: it is in none). The
 * lines around a part belong to its ends: what fails there, fails because of the part.
 */
export function placeIn(
  source: readonly string[],
  parts: readonly Part[],
  line: number,
  column: number,
) {
  if (parts.length === 0) return { where: `line ${line}`, line, column, number: line };
  for (const [name, first, count] of parts) {
    const last = first + count - 1;
    let [row, position] = [line, column];
    if (row === first - 1) [row, position] = [first, 1];
    else if (row === last + 1) [row, position] = [last, (source[last - 1]?.length ?? 0) + 1];
    if (row < first || row > last) continue;
    const number = row - first + 1;
    return { where: `${name}, line ${number}`, line: row, column: position, number };
  }
  return { where: `generated source, line ${line}`, line, column, number: undefined };
}

/** A line of help for a row that does not compile; "" without any. `said`: where, and the compiler's message. */
export function helpFor(row: string, said = ""): string {
  const text = `${row}\n${said}`;
  const found = Object.entries(HELP).find(([written]) =>
    new RegExp(`^[^\\n]*?(?:${written})`).test(text),
  );
  return found ? `\nhelp: ${found[1]}` : "";
}

/** The compiler's messages; none if WebGPU cannot report them (bun-webgpu 0.1 throws). */
async function messagesOf(module: GPUShaderModule): Promise<readonly GPUCompilationMessage[]> {
  try {
    return (await module.getCompilationInfo()).messages;
  } catch {
    return []; // the device's error has it, without lines
  }
}

/** The error for a run that the GPU refused. */
export function runError(device: DeviceRecord, label: string, cause: GPUError): KernelError {
  return kernelError(device, `kernel "${label}"`, label, cause.message, cause);
}

/** What of a call in a batch finds out whether the GPU refuses it. */
interface Submitted {
  readonly kernel: { readonly _label: string; readonly _pipeline: GPUComputePipeline };
  readonly group: GPUBindGroup;
  readonly copiesIn: readonly {
    readonly source: GPUBuffer;
    readonly bound: { readonly resource: { readonly buffer: GPUBuffer } };
  }[];
  readonly site: number | undefined;
}

/**
 * The error for a batch that the GPU refused, which does not say why: that of the first call that
 * it refuses alone. Commands that dispatch nothing are checked just the same.
 */
export async function batchError(
  device: DeviceRecord,
  calls: readonly Submitted[],
  cause: GPUError,
): Promise<Error> {
  const { gpu } = device;
  const found = await Promise.all(
    calls.map(({ kernel, group, copiesIn }) => {
      gpu.pushErrorScope("validation");
      const encoder = gpu.createCommandEncoder();
      for (const { source, bound } of copiesIn) {
        encoder.copyBufferToBuffer(source, 0, bound.resource.buffer, 0, 0);
      }
      const pass = encoder.beginComputePass();
      pass.setPipeline(kernel._pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(0); // wgpu looks at buffers that a dispatch uses
      pass.end();
      gpu.queue.submit([encoder.finish()]);
      return gpu.popErrorScope().catch(() => null);
    }),
  );
  const at = found.findIndex((error) => error !== null);
  const call = calls[at];
  if (call === undefined) return failure(device, "a batch of kernels", cause);
  const error = runError(device, call.kernel._label, found[at] as GPUError);
  sites.set(error, call.site);
  return error;
}

function kernelError(
  device: DeviceRecord,
  what: string,
  label: string,
  text: string,
  cause: GPUError,
  line?: number,
): KernelError {
  const message = `${what} failed on ${nameOf(device)}: ${text}`;
  return new KernelError(message, { label, line, device: device.named, cause });
}

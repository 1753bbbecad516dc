import { KernelError } from "../core/errors.js";
import type { GPUError, GPUShaderModule } from "../core/globals.js";
import { nameOf } from "./faults.js";
import type { DeviceRecord } from "./state.js";

/** The error for a shader that does not compile, with each message under its line. */
export async function explain(
  record: DeviceRecord,
  label: string,
  wgsl: string,
  module: GPUShaderModule,
  cause: GPUError,
): Promise<KernelError> {
  const source = wgsl.split("\n");
  const errors = (await messagesOf(module)).filter(({ type }) => type === "error");
  const lines = errors.map(({ lineNum, linePos, message }) => {
    const caret = `${" ".repeat(Math.max(linePos - 1, 0))}^`;
    return `line ${lineNum}:${linePos}: ${message}\n${source[lineNum - 1] ?? ""}\n${caret}`;
  });
  const text = lines.length > 0 ? lines.join("\n") : cause.message;
  return kernelError(record, `compiling kernel "${label}"`, label, text, cause, errors[0]?.lineNum);
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
export function runError(record: DeviceRecord, label: string, cause: GPUError): KernelError {
  return kernelError(record, `kernel "${label}"`, label, cause.message, cause);
}

function kernelError(
  record: DeviceRecord,
  what: string,
  label: string,
  text: string,
  cause: GPUError,
  line?: number,
): KernelError {
  const { device } = record;
  const message = `${what} failed on ${nameOf(record)}: ${text}`;
  return new KernelError(message, { label, line, device, cause });
}

import type { DeviceRecord } from "../core/realm.js";
import { failure } from "./device.js";

/** The error for a shader that does not compile, with each message under its line. */
export async function explain(
  record: DeviceRecord,
  entry: string,
  wgsl: string,
  module: GPUShaderModule,
  cause: GPUError,
): Promise<Error | null> {
  const source = wgsl.split("\n");
  try {
    const { messages } = await module.getCompilationInfo();
    const lines = messages
      .filter(({ type }) => type === "error")
      .map(({ lineNum, linePos, message }) => {
        const caret = `${" ".repeat(Math.max(linePos - 1, 0))}^`;
        return `line ${lineNum}:${linePos}: ${message}\n${source[lineNum - 1] ?? ""}\n${caret}`;
      });
    const text = lines.length > 0 ? lines.join("\n") : cause.message;
    return failure(record, `compiling kernel "${entry}"`, text, cause);
  } catch {
    return null; // The device was lost, which record.lost tells.
  }
}

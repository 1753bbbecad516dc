/**
 * Browser types that your TypeScript may lack. It has WebGPU's from 6.0 on, or with
 * `@webgpu/types`; the DOM's are missing in Node and, in part, in workers. Each of these is your
 * own type if there is one. Otherwise WebGPU's objects have only the members declared here, and
 * types of pages are `never`.
 *
 * All declarations of this library use these, so they compile everywhere; WebGPU's dictionaries and
 * enumerations, which cannot be detected in this way, are written out.
 */
type Known<Name extends string, Otherwise> = typeof globalThis extends {
  [name in Name]: { prototype: infer T };
}
  ? T
  : Otherwise;

export type GPUBuffer = Known<
  "GPUBuffer",
  { label: string; readonly size: number; readonly usage: number; destroy(): void }
>;

export type GPUDevice = Known<
  "GPUDevice",
  {
    label: string;
    readonly features: { has(name: string): boolean };
    readonly limits: GPUSupportedLimits;
    readonly queue: { submit(commands: Iterable<never>): void };
    readonly lost: Promise<{ readonly reason: string; readonly message: string }>;
    createBuffer(descriptor: { label?: string; size: number; usage: number }): GPUBuffer;
    destroy(): void;
  }
>;

export type GPUAdapter = Known<"GPUAdapter", { requestDevice(): Promise<GPUDevice> }>;

export type GPUAnyPipeline =
  | Known<"GPUComputePipeline", { label: string }>
  | Known<"GPURenderPipeline", { label: string }>;

export type GPUTexture = Known<
  "GPUTexture",
  {
    label: string;
    readonly width: number;
    readonly height: number;
    readonly format: string;
    destroy(): void;
  }
>;

export type GPUQuerySet = Known<
  "GPUQuerySet",
  { label: string; readonly count: number; destroy(): void }
>;

/** `GPUComputePassTimestampWrites`: where a pass writes when it began and ended. */
export interface TimestampWrites {
  querySet: GPUQuerySet;
  beginningOfPassWriteIndex?: number;
  endOfPassWriteIndex?: number;
}

export type GPUSupportedLimits = Known<"GPUSupportedLimits", { readonly maxBufferSize: number }>;
export type GPUError = Known<"GPUError", { readonly message: string }>;
export type GPUShaderModule = Known<"GPUShaderModule", { label: string }>;
export type GPUCommandEncoder = Known<"GPUCommandEncoder", { label: string }>;

export type HTMLCanvasElement = Known<"HTMLCanvasElement", never>;
export type HTMLElement = Known<"HTMLElement", never>;
export type HTMLImageElement = Known<"HTMLImageElement", never>;
export type HTMLVideoElement = Known<"HTMLVideoElement", never>;
export type ImageBitmap = Known<"ImageBitmap", never>;
export type ImageData = Known<"ImageData", never>;
export type MediaStream = Known<"MediaStream", never>;
export type MediaStreamTrack = Known<"MediaStreamTrack", never>;
export type OffscreenCanvas = Known<"OffscreenCanvas", never>;
export type VideoFrame = Known<"VideoFrame", never>;

export type AbortSignal = Known<
  "AbortSignal",
  { readonly aborted: boolean; readonly reason: unknown }
>;

export type Blob = Known<"Blob", { readonly size: number }>;
export type FileSystemDirectoryHandle = Known<"FileSystemDirectoryHandle", never>;
export type FileSystemFileHandle = Known<"FileSystemFileHandle", never>;
export type ReadableStream = Known<"ReadableStream", never>;
export type Response = Known<"Response", never>;
export type WritableStream = Known<"WritableStream", never>;

export type URL = Known<"URL", { readonly href: string; toString(): string }>;

/** Its elements are numbers; where TypeScript has no such class, their bits. */
export type Float16Array = Known<"Float16Array", Uint16Array>;

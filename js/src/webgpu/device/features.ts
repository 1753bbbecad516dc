/** Features of this page or worker. */
export interface Features {
  /** Whether tensors can be on a GPU here; if not, `reason` says why, and how to change that. */
  readonly webgpu: {
    readonly available: boolean;
    readonly reason?: string;
    /** The adapter's description, e.g. "nvidia ampere". */
    readonly adapter?: string;
    /** Largest tensor that it can hold, in bytes. */
    readonly maxBufferSize?: number;
  };
  /** Whether kernels can compute with float16. */
  readonly shaderF16: boolean;
  /** Whether kernels can be timed: `webgpu.timed`. */
  readonly timestampQuery: boolean;
  /** Whether Python can wait for JavaScript (JSPI), as `np.asarray(gpu)` needs. */
  readonly jspi: boolean;
  /** Whether `tensor.data` of float16 has numbers; otherwise it has bits in a Uint16Array. */
  readonly float16Array: boolean;
  /** Whether `using tensor = …` is supported. */
  readonly using: boolean;
  /** Whether the Content-Security-Policy lets `import dlpack_web` load its JavaScript. */
  readonly unsafeEval: boolean;
  /** Whether the page is cross-origin isolated: SharedArrayBuffer, and a clock of 5 µs. */
  readonly isolated: boolean;
  /** Whether this is a worker. */
  readonly worker: boolean;
}

/** Detects features. It requests an adapter, makes no device and never throws. */
export async function features(): Promise<Features> {
  const found = featuresAtOnce();
  if (!found.webgpu.available) return found;
  let adapter: GPUAdapter | null = null;
  let why = "the driver is missing or blocked (chrome://gpu, about:support)";
  try {
    adapter = await navigator.gpu.requestAdapter();
  } catch (error) {
    why = (error as Error).message;
  }
  if (!adapter) {
    return { ...found, webgpu: { available: false, reason: `WebGPU has no adapter: ${why}` } };
  }
  const { vendor = "", architecture = "", description = "" } = adapter.info ?? {};
  return {
    ...found,
    webgpu: {
      available: true,
      adapter: [vendor, architecture, description].filter(Boolean).join(" "),
      maxBufferSize: adapter.limits.maxBufferSize,
    },
    shaderF16: adapter.features.has("shader-f16"),
    timestampQuery: adapter.features.has("timestamp-query"),
  };
}

/** {@link features} without requesting an adapter, as far as possible. */
export function featuresAtOnce(): Features {
  const scope = globalThis as unknown as {
    navigator?: { gpu?: GPU };
    isSecureContext?: boolean;
    crossOriginIsolated?: boolean;
    WebAssembly: { Suspending?: unknown };
    Float16Array?: unknown;
    WorkerGlobalScope?: unknown;
  };
  const reason =
    scope.isSecureContext === false
      ? "browsers offer WebGPU only over https or on localhost: open the page there"
      : "no navigator.gpu: use a browser with WebGPU, or enable it";
  return {
    webgpu: scope.navigator?.gpu ? { available: true } : { available: false, reason },
    shaderF16: false,
    timestampQuery: false,
    jspi: typeof scope.WebAssembly.Suspending === "function",
    float16Array: typeof scope.Float16Array === "function",
    using: typeof Symbol.dispose === "symbol",
    unsafeEval: mayEval(),
    isolated: scope.crossOriginIsolated === true,
    worker: typeof scope.WorkerGlobalScope === "function",
  };
}

function mayEval(): boolean {
  try {
    return new Function("return true")() === true;
  } catch {
    return false;
  }
}

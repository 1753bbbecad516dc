// Where the tests run.

/** What the compiler of shaders says of no shader: each implementation of WebGPU has its own. */
async function compiler(adapter) {
  const device = await adapter.requestDevice();
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ code: "nonsense" });
  const error = await device.popErrorScope();
  try {
    const { messages } = await module.getCompilationInfo();
    return messages.map(({ message }) => message).join("\n");
  } catch {
    return error.message; // bun-webgpu has no messages of compilers
  } finally {
    device.destroy();
  }
}

/** The runtime and its WebGPU, by their own words. */
export async function where() {
  const adapter = await navigator.gpu?.requestAdapter();
  const { vendor, architecture, device, description, isFallbackAdapter } = adapter?.info ?? {};
  const limits = {};
  for (const name in adapter?.limits) limits[name] = adapter.limits[name];
  return {
    agent: navigator.userAgent,
    webgpu: [vendor, architecture, description].filter(Boolean).join(" "),
    compiler: adapter ? await compiler(adapter) : "",
    features: [...(adapter?.features ?? [])],
    limits,
    adapter: adapter ? { vendor, architecture, device, description, isFallbackAdapter } : null,
  };
}

// Whether vertices draw: one pixel, which a triangle of them covers.

const SHADER = `
@vertex fn place(@location(0) at: vec2f) -> @builtin(position) vec4f { return vec4f(at, 0, 1); }
@fragment fn paint() -> @location(0) vec4f { return vec4f(1, 0, 0, 1); }`;

/** The pixel under a triangle whose corners are in `buffer`, which has to be the tensor's own. */
export async function drawn(device, buffer, tensor, format = "float32x2") {
  if (buffer !== tensor.buffer) throw new Error("the library has another buffer");
  const module = device.createShaderModule({ code: SHADER });
  const attributes = [{ shaderLocation: 0, offset: 0, format }];
  const pipeline = device.createRenderPipeline({
    layout: "auto",
    vertex: { module, buffers: [{ arrayStride: tensor.nbytes / 3, attributes }] },
    fragment: { module, targets: [{ format: "rgba8unorm" }] },
  });
  const texture = device.createTexture({
    size: [1, 1],
    format: "rgba8unorm",
    usage: GPUTextureUsage.RENDER_ATTACHMENT | GPUTextureUsage.COPY_SRC,
  });
  const pixels = device.createBuffer({ size: 256, usage: 1 | 8 });
  const encoder = device.createCommandEncoder();
  const target = { view: texture.createView(), loadOp: "clear", storeOp: "store" };
  const pass = encoder.beginRenderPass({ colorAttachments: [target] });
  pass.setPipeline(pipeline);
  pass.setVertexBuffer(0, buffer);
  pass.draw(3);
  pass.end();
  encoder.copyTextureToBuffer({ texture }, { buffer: pixels, bytesPerRow: 256 }, [1, 1]);
  device.queue.submit([encoder.finish()]);
  await pixels.mapAsync(1);
  return [...new Uint8Array(pixels.getMappedRange(), 0, 4)];
}

// What drawing asks of a canvas and of the GPU. Both are stand-ins that note calls; tests/browser compares pixels.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Tensor, webgpu } from "../../../js/dist/index.js";
import { loggedDevice } from "../fake_device.mjs";

const own = Object.getOwnPropertyDescriptor(globalThis, "navigator");
Object.defineProperty(globalThis, "navigator", {
  value: { gpu: { getPreferredCanvasFormat: () => "bgra8unorm" } },
  configurable: true,
});
after(() => {
  if (own) Object.defineProperty(globalThis, "navigator", own);
  else delete globalThis.navigator;
});

/** What canvases were configured with. */
const configured = [];

function fakeCanvas(now) {
  const canvas = {
    width: 1,
    height: 1,
    getContext(kind) {
      assert.equal(kind, "webgpu");
      return {
        getConfiguration: () => now,
        configure: (it) => configured.push(it),
        getCurrentTexture: () => ({
          width: canvas.width,
          height: canvas.height,
          format: "bgra8unorm",
          createView: () => ({}),
        }),
      };
    },
  };
  return canvas;
}

const image = (gpu, shape = [2, 3, 4], array = Uint8Array) =>
  Tensor.fromTypedArray(new array(shape.reduce((a, b) => a * b)), { shape }).to(gpu);

test("a canvas gets the tensor's size, and a triangle over all of it", async () => {
  const { gpu, log } = loggedDevice();
  const canvas = fakeCanvas(undefined);
  const tensor = image(gpu);
  const scopes = [];
  gpu.pushErrorScope = (filter) => scopes.push(filter);
  await webgpu.toCanvas(tensor, canvas);
  assert.deepEqual(scopes, ["validation", "out-of-memory"]); // of the texture and the pass together
  assert.deepEqual([canvas.width, canvas.height], [3, 2]);
  assert.deepEqual(log.drawn, [[3, 1, 0, 3]]);
  assert.deepEqual(log.formats, ["bgra8unorm"]);
  assert.match(log.sources.at(-1), /words\[i\]\);\s+return vec4f\(p\.rgb \* p\.a, p\.a\);/);
  assert.deepEqual(log.bound, [1]);
  const [{ device, ...rest }] = configured.splice(0);
  assert.equal(device, gpu);
  // RENDER_ATTACHMENT | COPY_SRC
  assert.deepEqual(rest, { format: "bgra8unorm", usage: 16 | 1, alphaMode: "premultiplied" });
});

test("a canvas is configured again where something differs, and else keeps its textures", async () => {
  const { gpu } = loggedDevice();
  const fits = { device: gpu, format: "bgra8unorm", alphaMode: "premultiplied", usage: 16 };
  for (const [now, expected] of [
    [fits, 0],
    [{ ...fits, usage: 16 | 4 }, 0],
    [{ ...fits, device: {} }, 1],
    [{ ...fits, format: "rgba8unorm" }, 1],
    [{ ...fits, alphaMode: "opaque" }, 1],
    [{ ...fits, usage: 4 }, 1],
    [null, 1],
  ]) {
    await webgpu.toCanvas(image(gpu), fakeCanvas(now));
    assert.equal(configured.splice(0).length, expected, JSON.stringify(now));
  }
});

test("a texture may be bound, rendered, stored to and copied", async () => {
  const { gpu, log } = loggedDevice();
  const texture = await webgpu.toTexture(image(gpu, [17, 9, 3], Float32Array));
  const [{ size, format, usage, ...others }] = log.textures.splice(0);
  assert.deepEqual([size, format, usage], [[9, 17], "rgba8unorm", 1 | 2 | 4 | 8 | 16]);
  assert.deepEqual(Object.keys(others), ["width", "height", "destroyed", "createView", "destroy"]);
  assert.deepEqual([texture.width, texture.height], [9, 17]);
  assert.deepEqual(log.drawn, [[3, 1, 0, 9]]);
  assert.deepEqual(log.formats, ["rgba8unorm"]);
  assert.match(log.sources.at(-1), /words\[i \* 3 \+ 2\]\), 1\);\s+return p;/); // not premultiplied
  assert.deepEqual(log.bound, [1]);
});

test("pixels are taken by workgroups of 64 words, in rows that the device has", async () => {
  const { gpu, log } = loggedDevice();
  gpu.limits.maxComputeWorkgroupsPerDimension = 2;
  const picture = (width, height) => ({
    [Symbol.toStringTag]: "ImageData",
    width,
    height,
    data: new Uint8ClampedArray(4 * width * height),
  });
  const half = { ...picture(2, 3), data: { [Symbol.toStringTag]: "Float16Array" } };
  await assert.rejects(webgpu.fromImage(gpu, half), {
    name: "UnsupportedError",
    message: /^fromImage would round this ImageData of float16 .* shape: \[3, 2, 4\]/,
  });
  const first = picture(2, 3);
  (await webgpu.fromImage(gpu, first)).release();
  log.dispatched.length = 0;
  assert.deepEqual(log.written, [[first.data, { bytesPerRow: 8 }, [2, 3]]]);
  for (const [width, height, options, expected] of [
    [8, 8, {}, [1, 1]],
    [13, 5, {}, [2, 1]],
    [16, 9, {}, [2, 2]],
    [8, 8, { dtype: "float32" }, [1, 1]],
    [8, 9, { dtype: "float32", channels: 3 }, [2, 2]],
  ]) {
    const tensor = await webgpu.fromImage(gpu, picture(width, height), options);
    assert.deepEqual(tensor.shape, [height, width, options.channels ?? 4]);
    assert.deepEqual(log.dispatched.splice(0), [expected], `${width} x ${height}`);
    tensor.release();
  }
});

test("where a GPU takes no videos, a bitmap of the picture is taken, and closed", async () => {
  const { gpu, log } = loggedDevice();
  const { createImageBitmap } = globalThis;
  let closed = 0;
  const bitmap = { close: () => closed++ };
  const take = gpu.queue.copyExternalImageToTexture;
  gpu.queue.copyExternalImageToTexture = ({ source }) => {
    if (source !== bitmap) throw new TypeError("Firefox takes no videos");
    take({ source });
  };
  globalThis.createImageBitmap = async () => bitmap;
  try {
    const frame = { [Symbol.toStringTag]: "VideoFrame", displayWidth: 4, displayHeight: 2 };
    const tensor = await webgpu.fromImage(gpu, frame);
    assert.deepEqual(tensor.shape, [2, 4, 4]);
    assert.deepEqual(log.written, [bitmap]);
    assert.equal(closed, 1);
    tensor.release();
    const canvas = { [Symbol.toStringTag]: "HTMLCanvasElement", width: 2, height: 2 };
    await assert.rejects(webgpu.fromImage(gpu, canvas), { message: /takes no videos/ });
    assert.equal(closed, 1);
  } finally {
    globalThis.createImageBitmap = createImageBitmap;
  }
});

// three.js (the real one): memory shared both ways; each function is a test.
import { fromThree, toThree, useDevice } from "/js/adapters/three.js";
import { counted, equal, ok, same, throws } from "../cases/js/expect.mjs";
import { keep, upload } from "../cases/js/gpu.mjs";
import { libraries } from "./libraries.mjs";

const VALUES = Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8);

/** Computes `10 * attribute` into a new attribute. */
async function tenfold({ THREE, renderer }, attribute) {
  const { storage, Fn, instanceIndex } = THREE.TSL;
  const { count } = attribute;
  const result = new THREE.StorageBufferAttribute(count, 1);
  const from = storage(attribute, "float", count);
  const to = storage(result, "float", count);
  const compute = Fn(() => {
    to.element(instanceIndex).assign(from.element(instanceIndex).mul(10));
  })().compute(count);
  await renderer.computeAsync(compute);
  return result;
}

export async function gpu_tensors_go_in_and_come_out_without_a_copy(context) {
  const all = await libraries();
  const { THREE, renderer, device } = all;
  const x = upload(context, VALUES, device);
  const attribute = counted(context, () => toThree(THREE, x, { renderer, copy: false }), {});
  ok(renderer.backend.get(attribute).buffer === x.buffer, "three.js has the tensor's buffer");
  const result = await tenfold(all, attribute);
  const out = keep(counted(context, () => fromThree(THREE, result, { renderer }), {}));
  ok(out.buffer === renderer.backend.get(result).buffer, "the tensor has the buffer of three.js");
  equal(
    await out.read(),
    VALUES.map((v) => 10 * v),
  );
  renderer.backend.destroyAttribute(attribute);
}

export async function a_vertex_buffer_is_made_where_it_is_asked_for(context) {
  const { THREE, renderer, device } = await libraries();
  const x = upload(context, VALUES, device);
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.VERTEX;
  const refused = () => toThree(THREE, x, { renderer, usage, copy: false });
  await throws(refused, "CopyError", /lacks GPUBufferUsage flags/);
  const make = () => toThree(THREE, x, { renderer, usage });
  const attribute = counted(context, make, { gpu_copies: 1 });
  const made = keep(fromThree(THREE, attribute, { renderer }));
  equal([made.buffer.usage & usage, [...(await made.read())]], [usage, [...VALUES]]);
  renderer.backend.destroyAttribute(attribute);
}

export async function destroying_an_attribute_leaves_the_buffer_to_its_owner(context) {
  const { THREE, renderer, device } = await libraries();
  const buffer = device.createBuffer({ size: 32, usage: 128 | 32 | 4 | 8 });
  let given = 0;
  const x = context.library.Tensor.fromGPUBuffer(buffer, {
    device,
    shape: [8],
    dtype: "float32",
    release: () => {
      given++;
    },
  });
  const attribute = toThree(THREE, x, { renderer });
  ok(renderer.backend.get(attribute).buffer === buffer, "shared");
  renderer.backend.destroyAttribute(attribute);
  x.write(VALUES);
  equal([await x.read(), given], [[...VALUES], 0]);
  x.release();
  equal(given, 1);
  buffer.destroy();
  const own = new THREE.StorageBufferAttribute(VALUES.slice(), 1);
  await tenfold(await libraries(), own);
  renderer.backend.destroyAttribute(own);
  ok(renderer.backend.get(own).buffer === undefined, "three.js destroys its own as before");
}

export async function a_destroyed_attribute_does_not_take_its_buffer_away() {
  const all = await libraries();
  const { THREE, renderer } = all;
  const result = await tenfold(all, new THREE.StorageBufferAttribute(VALUES.slice(), 1));
  const kept = fromThree(THREE, result, { renderer });
  const second = fromThree(THREE, result, { renderer });
  let destroyed = 0;
  kept.buffer.destroy = function () {
    destroyed++;
    GPUBuffer.prototype.destroy.call(this);
  };
  second.release();
  renderer.backend.destroyAttribute(result);
  equal([await kept.read(), destroyed], [VALUES.map((v) => 10 * v), 0]);
  kept.release();
  equal(destroyed, 1);
}

export async function cpu_tensors_are_attributes(context) {
  const { THREE } = await libraries();
  const x = context.bridge.empty([2, 3]);
  x.data.set(VALUES.subarray(0, 6));
  const attribute = counted(context, () => toThree(THREE, x), {});
  equal([attribute.count, attribute.itemSize, attribute.getY(1)], [2, 3, 5]);
  ok(same(attribute.array, x.data), "the same memory");
  x.release();
  equal(attribute.getZ(1), 6);
  attribute.array = null;
  const plain = new THREE.BufferAttribute(VALUES, 4);
  const back = keep(counted(context, () => fromThree(THREE, plain), {}));
  equal([back.shape, same(back.data, VALUES)], [[2, 4], true]);
}

export async function mistakes_are_named(context) {
  const { THREE, renderer, device, foreign } = await libraries();
  const x = upload(context, VALUES.subarray(0, 6), device, { shape: [2, 3] });
  await throws(() => toThree(THREE, x, { renderer }), "UnsupportedError", /items of 3.*vec3/);
  await throws(() => toThree(THREE, x), "UnsupportedError", /needs `three\/webgpu`/);
  x.release();
  const other = upload(context, VALUES, foreign);
  await throws(() => toThree(THREE, other, { renderer }), "DeviceError", /another GPUDevice/);
  other.release();
  await throws(() => useDevice(renderer, foreign), "DeviceError", /before its init/);
  const unused = new THREE.StorageBufferAttribute(4, 1);
  const find = () => fromThree(THREE, unused, { renderer });
  await throws(find, "UnsupportedError", /has no GPUBuffer for the attribute/);
}

export async function positions_are_packed_and_storage_items_of_3_are_padded() {
  const { THREE, renderer } = await libraries();
  const values = VALUES.subarray(0, 6);
  for (const [name, items, expected] of [
    ["BufferAttribute", 3, values],
    ["StorageBufferAttribute", 4, Float32Array.of(1, 2, 3, 0, 4, 5, 6, 0)],
  ]) {
    const attribute = new THREE[name](values.slice(), 3);
    const { backend } = renderer;
    if (items === 3) backend.createAttribute(attribute);
    else backend.createStorageAttribute(attribute);
    const tensor = fromThree(THREE, attribute, { renderer, copy: false });
    equal([tensor.shape, await tensor.read()], [[2, items], expected]);
    tensor.release();
    backend.destroyAttribute(attribute);
  }
}

export async function interleaved_attributes_are_strided(context) {
  const { THREE } = await libraries();
  // A position, a size and two coordinates for each of two points.
  const data = Float32Array.of(1, 2, 3, 0.5, 10, 20, 4, 5, 6, 0.25, 30, 40);
  const buffer = new THREE.InterleavedBuffer(data, 6);
  for (const [itemSize, offset, shape, strides, values] of [
    [3, 0, [2, 3], [6, 1], [1, 2, 3, 4, 5, 6]],
    [1, 3, [2], [6], [0.5, 0.25]],
    [2, 4, [2, 2], [6, 1], [10, 20, 30, 40]],
  ]) {
    const attribute = new THREE.InterleavedBufferAttribute(buffer, itemSize, offset);
    const take = () => fromThree(THREE, attribute, { copy: false });
    const tensor = counted(context, take, {});
    equal([tensor.shape, tensor.strides, [...tensor]], [shape, strides, values]);
    ok(tensor.data.buffer === data.buffer, "the same memory");
    const copied = fromThree(THREE, attribute, { copy: true });
    ok(copied.data.buffer !== data.buffer, "a copy");
    equal(copied.data, values);
    for (const each of [tensor, copied]) each.release();
  }
}

export async function interleaved_attributes_are_strided_on_the_gpu(context) {
  const { THREE, renderer } = await libraries();
  const data = Float32Array.of(0, 0, 0, 5, 1, 0, 0, 6, 0, 1, 0, 7);
  const buffer = new THREE.InterleavedBuffer(data, 4);
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.InterleavedBufferAttribute(buffer, 3, 0));
  geometry.setAttribute("weight", new THREE.InterleavedBufferAttribute(buffer, 1, 3));
  const scene = new THREE.Scene();
  const mesh = new THREE.Mesh(geometry, new THREE.MeshBasicNodeMaterial());
  mesh.frustumCulled = false;
  scene.add(mesh);
  await renderer.renderAsync(scene, new THREE.OrthographicCamera());
  const { position, weight } = geometry.attributes;
  const places = keep(fromThree(THREE, position, { renderer }));
  const weights = keep(counted(context, () => fromThree(THREE, weight, { renderer }), {}));
  equal([places.shape, places.strides, weights.strides], [[3, 3], [4, 1], [4]]);
  ok(places.buffer === weights.buffer, "one buffer");
  equal(
    [await places.read(), await weights.read()],
    [
      [0, 0, 0, 1, 0, 0, 0, 1, 0],
      [5, 6, 7],
    ],
  );
  geometry.dispose();
  mesh.material.dispose();
}

export async function what_fails_half_way_keeps_nothing(context) {
  const all = await libraries();
  const { THREE, renderer, device } = all;
  const { liveTensors } = context.library;
  const live = liveTensors();
  const result = await tenfold(all, new THREE.StorageBufferAttribute(VALUES.slice(), 1));
  const { buffer } = renderer.backend.get(result);
  const { count } = result;
  result.count = 1e6;
  await throws(() => fromThree(THREE, result, { renderer }), "RangeError", /reaches from byte 0/);
  result.count = count;
  let destroyed = 0;
  buffer.destroy = function () {
    destroyed++;
    GPUBuffer.prototype.destroy.call(this);
  };
  renderer.backend.destroyAttribute(result);
  equal(destroyed, 1, "it was destroyed at once: nobody holds it");
  const x = upload(context, VALUES, device);
  class StorageBufferAttribute {
    constructor() {
      throw new Error("the library failed");
    }
  }
  const broken = { ...THREE, StorageBufferAttribute };
  await throws(() => toThree(broken, x, { renderer }), "Error", /the library failed/);
  await throws(() => toThree(THREE, x, { renderer, itemSize: 3 }), "RangeError", /items of 3/);
  x.release();
  equal(liveTensors(), live, "tensors that are left");
}

// --- half floats --------------------------------------------------------------------------------

const HALVES = [-1, 0.5, 2 ** -24, 65504, 1.5, -2, 0.25, 3, -0.125, 7, 9, 11];

/** The bytes of an array. */
const bytesOf = ({ buffer, byteOffset, byteLength }) => [
  ...new Uint8Array(buffer, byteOffset, byteLength),
];

/** A CPU tensor of float16, in the middle of an array, from an odd element on. */
function halves({ library }, shape, values = HALVES) {
  const size = shape.reduce((a, b) => a * b, 1);
  const whole = new Float16Array(size + 3).fill(99);
  whole.set(values.slice(0, size), 1);
  return library.Tensor.fromTypedArray(whole, { shape, offset: 1 });
}

/** The pixel that a triangle with these positions covers: red, or nothing. */
async function drawn({ THREE, renderer }, position) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", position);
  geometry.boundingSphere = new THREE.Sphere(); // which items of two do not have
  const material = new THREE.MeshBasicNodeMaterial({ side: THREE.DoubleSide });
  material.colorNode = THREE.TSL.vec3(1, 0, 0);
  const mesh = new THREE.Mesh(geometry, material);
  mesh.frustumCulled = false;
  const target = new THREE.RenderTarget(1, 1);
  renderer.setRenderTarget(target);
  try {
    renderer.render(new THREE.Scene().add(mesh), new THREE.OrthographicCamera(-1, 1, 1, -1, -1));
    return [...(await renderer.readRenderTargetPixelsAsync(target, 0, 0, 1, 1))];
  } finally {
    renderer.setRenderTarget(null);
    target.dispose();
    material.dispose();
  }
}

const RED = [255, 0, 0, 255];
/** Triangles that cover all, with items of 2 to 4 elements. */
const TRIANGLES = {
  2: [-1, -1, 3, -1, -1, 3],
  3: [-1, -1, 0, 3, -1, 0, -1, 3, 0],
  4: [-1, -1, 0, 1, 3, -1, 0, 1, -1, 3, 0, 1],
};

export async function halves_are_drawn_from_the_cpu(context) {
  const all = await libraries();
  const { THREE, renderer } = all;
  for (const [key, values] of Object.entries(TRIANGLES)) {
    const itemSize = Number(key);
    const x = halves(context, [3, itemSize], values);
    const attribute = counted(context, () => toThree(THREE, x, { copy: false }), {});
    ok(same(attribute.array, x.data), "the same memory");
    equal([attribute.getX(1), attribute.isFloat16BufferAttribute], [3, undefined]);
    equal(await drawn(all, attribute), RED, `items of ${itemSize}`);
    const back = fromThree(THREE, attribute);
    equal([back.dtype, back.shape, back.data], ["float16", [3, itemSize], values]);
    // Items of three have a fourth element on the GPU.
    const there = counted(context, () => fromThree(THREE, attribute, { renderer }), {});
    equal([there.dtype, there.shape], ["float16", [3, itemSize]]);
    equal(there.strides, [itemSize === 3 ? 4 : itemSize, 1]);
    equal(await there.read(), values);
    for (const each of [x, back, there]) each.release();
    renderer.backend.destroyAttribute(attribute);
    attribute.array = null;
  }
}

export async function bytes_of_the_gpu_are_refused_padded_or_not() {
  const all = await libraries();
  const { THREE, renderer } = all;
  for (const itemSize of [3, 4]) {
    const bytes = Int8Array.from(TRIANGLES[itemSize], (value) => 42 * value);
    const position = new THREE.BufferAttribute(bytes, itemSize, true); // normalized
    await drawn(all, position);
    const take = () => fromThree(THREE, position, { renderer });
    await throws(take, "UnsupportedError", /three.js on WebGPU has no int8/);
  }
}

export async function halves_are_drawn_from_the_gpu(context) {
  const all = await libraries();
  const { THREE, renderer, device } = all;
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.VERTEX;
  for (const itemSize of [2, 4]) {
    const x = halves(context, [3, itemSize], TRIANGLES[itemSize]);
    const there = x.to(device, { usage: usage | GPUBufferUsage.COPY_SRC });
    const give = () => toThree(THREE, there, { renderer, usage, copy: false });
    const attribute = counted(context, give, {});
    ok(renderer.backend.get(attribute).buffer === there.buffer, "the tensor's buffer");
    equal(await drawn(all, attribute), RED, `items of ${itemSize}`);
    const back = fromThree(THREE, attribute, { renderer });
    equal([back.dtype, await back.read()], ["float16", TRIANGLES[itemSize]]);
    const storage = () => toThree(THREE, there, { renderer });
    await throws(storage, "UnsupportedError", /float16 .* usage: GPUBufferUsage.VERTEX/);
    for (const each of [x, there, back]) each.release();
    renderer.backend.destroyAttribute(attribute);
  }
  const x = upload(context, new Float16Array(9), device, { shape: [3, 3] });
  await throws(() => toThree(THREE, x, { renderer, usage }), "UnsupportedError", /items of 3/);
}

export async function interleaved_halves_are_strided(context) {
  const all = await libraries();
  const { THREE, renderer } = all;
  // A position of 4 and a weight of 1 for each of three points, and one element that is not used.
  const rows = [0, 1, 2].map((i) => [...TRIANGLES[4].slice(4 * i, 4 * i + 4), i + 0.5, 99]);
  const buffer = new THREE.InterleavedBuffer(Float16Array.from(rows.flat()), 6);
  const position = new THREE.InterleavedBufferAttribute(buffer, 4, 0);
  const weight = new THREE.InterleavedBufferAttribute(buffer, 1, 4);
  const odd = new THREE.InterleavedBufferAttribute(buffer, 2, 3); // from an odd element on
  equal(await drawn(all, position), RED);
  for (const options of [{}, { renderer }]) {
    for (const [attribute, values] of [
      [position, TRIANGLES[4]],
      [weight, [0.5, 1.5, 2.5]],
      [odd, [1, 0.5, 1, 1.5, 1, 2.5]],
    ]) {
      const tensor = counted(context, () => fromThree(THREE, attribute, options), {});
      const found = tensor.device.gpu ? await tensor.read() : [...tensor].flat();
      equal([tensor.dtype, tensor.strides[0], [...found]], ["float16", 6, values]);
      tensor.release();
    }
  }
  renderer.backend.destroyAttribute(position);
}

export async function bits_that_the_renderer_replaced_are_refused() {
  const all = await libraries();
  const { THREE, renderer } = all;
  const bits = TRIANGLES[4].map(THREE.DataUtils.toHalfFloat);
  const attribute = new THREE.Float16BufferAttribute(bits, 4);
  const before = keep(fromThree(THREE, attribute));
  equal([before.dtype, before.data], ["float16", TRIANGLES[4]]);
  // three.js converts the bits to 32-bit integers and draws other positions. RED: three.js has repaired it.
  ok(`${await drawn(all, attribute)}` !== `${RED}`, "three.js draws these halves");
  for (const options of [{}, { renderer }]) {
    const take = () => fromThree(THREE, attribute, options);
    await throws(take, "UnsupportedError", /bits of this Float16BufferAttribute .* Float16Array/);
  }
  equal(before.data, TRIANGLES[4]);
}

/** The elements of a texture on the GPU, layer by layer. */
async function pixels({ renderer, device }, texture, channels) {
  renderer.initTexture(texture);
  const { texture: source } = renderer.backend.get(texture);
  const { width, height, depthOrArrayLayers: depth } = source;
  const buffer = device.createBuffer({ size: 256 * height * depth, usage: 1 | 8 });
  const encoder = device.createCommandEncoder();
  const layout = { buffer, bytesPerRow: 256, rowsPerImage: height };
  encoder.copyTextureToBuffer({ texture: source }, layout, [width, height, depth]);
  device.queue.submit([encoder.finish()]);
  await buffer.mapAsync(1);
  const padded = new Uint8Array(buffer.getMappedRange());
  const row = width * channels * texture.image.data.BYTES_PER_ELEMENT;
  const found = padded.filter((_, i) => i % 256 < row);
  buffer.destroy();
  return [...found];
}

export async function textures_of_halves_have_the_memory_of_tensors(context) {
  const all = await libraries();
  const { THREE } = all;
  for (const [kind, shape] of [
    ["DataTexture", [2, 3, 1]],
    ["DataTexture", [1, 3, 2]],
    ["DataTexture", [1, 3, 4]],
    ["Data3DTexture", [2, 1, 3, 1]],
    ["Data3DTexture", [3, 1, 1, 4]],
    ["DataArrayTexture", [2, 3, 1, 2]],
  ]) {
    const x = halves(context, shape);
    const texture = counted(context, () => toThree(THREE, x, { kind, copy: false }), {});
    ok(texture instanceof THREE[kind], kind);
    equal([texture.type, texture.image.data.constructor], [THREE.HalfFloatType, Uint16Array]);
    equal(bytesOf(texture.image.data), bytesOf(x.data));
    equal(await pixels(all, texture, shape.at(-1)), bytesOf(x.data), `${kind} of ${shape}`);
    const own = Uint16Array.from(texture.image.data);
    const back = counted(context, () => fromThree(THREE, texture, { copy: false }), {});
    equal([back.dtype, back.shape], ["float16", shape]);
    ok(same(back.data, x.data), "the same memory");
    texture.dispose();
    texture.image.data = own; // three.js has its own from here on
    const theirs = fromThree(THREE, texture);
    ok(theirs.data.buffer === own.buffer, "that of three.js");
    equal([theirs.dtype, theirs.shape, theirs.data], ["float16", shape, [...x.data]]);
    for (const each of [x, back, theirs]) each.release();
  }
}

export async function textures_in_pythons_memory_survive_its_growth(context) {
  const all = await libraries();
  const { THREE } = all;
  const x = context.bridge.empty([1, 3, 2], "float16");
  x.data.set(HALVES.slice(0, 6));
  const texture = counted(context, () => toThree(THREE, x, { kind: "DataTexture" }), {});
  x.release();
  const before = texture.image.data;
  const back = keep(fromThree(THREE, texture));
  context.pyodide.runPython("bytearray(1 << 28)");
  ok(before.length === 0 && texture.image.data.length === 6, "read again");
  const values = Float16Array.from(HALVES.slice(0, 6));
  equal(await pixels(all, texture, 2), bytesOf(values));
  texture.image.data = null;
  equal(back.data, [...values]); // it holds the memory itself
}

export async function mistakes_with_halves_and_textures_are_named(context) {
  const { THREE, renderer, device } = await libraries();
  const x = keep(halves(context, [1, 3, 4]));
  const give = (tensor, options) => () => toThree(THREE, tensor, options);
  for (const [shape, kind, error] of [
    [[3, 4], "DataTexture", /\[height, width, channels\] .*\[3,4\]/],
    [[1, 1, 2, 6], "Data3DTexture", /1 to 4 channels, not \[1,1,2,6\]/],
    [[1, 3, 4], "Data3DTexture", /a Data3DTexture is of a tensor \[depth, height/],
    [[1, 3, 4, 1], "DataTexture", /not \[1,3,4,1\]/],
    [[3, 4, 0], "DataTexture", /not \[3,4,0\]/],
  ]) {
    const other = halves(context, shape);
    await throws(give(other, { kind }), "RangeError", error);
    other.release();
  }
  await throws(give(x, { kind: "CubeTexture" }), "TypeError", /"CubeTexture".*DataTexture,Data3D/);
  await throws(give(x, { kind: "toString" }), "TypeError", /no "toString"/);
  const ints = keep(context.library.Tensor.fromTypedArray(new Int16Array(4), { shape: [1, 1, 4] }));
  await throws(give(ints, { kind: "DataTexture" }), "UnsupportedError", /no int16.*float16/);
  const there = keep(x.to(device));
  await throws(give(there, { kind: "DataTexture" }), "UnsupportedError", /no GPU arrays: await/);
  const texture = toThree(THREE, x, { kind: "DataTexture" });
  const take = (changes, options) => () =>
    fromThree(THREE, Object.assign(new THREE.DataTexture(), changes), options);
  await throws(take({}, { renderer }), "UnsupportedError", /without a renderer: webgpu.fromImage/);
  await throws(take({}), "UnsupportedError", /no typed array/);
  const image = { data: new Uint16Array(12), width: 3, height: 1 };
  const half = { image, type: THREE.HalfFloatType, format: THREE.RGBAFormat };
  await throws(take({ ...half, type: THREE.FloatType }), "TypeError", /not hold float32/);
  await throws(
    take({ ...half, type: THREE.UnsignedShort4444Type }),
    "UnsupportedError",
    /type 1017/,
  );
  await throws(take({ ...half, format: THREE.DepthFormat }), "UnsupportedError", /format 1026/);
  await throws(take({ ...half, format: THREE.RGFormat }), "RangeError", /needs 12 bytes.* 24/);
  const floats = { ...image, data: new Float32Array(12) };
  await throws(take({ ...half, image: floats }), "TypeError", /Float32Array does not hold float16/);
  const empty = keep(take({ ...half, image: { data: new Uint16Array(0), width: 0, height: 3 } })());
  equal([empty.shape, empty.dtype], [[3, 0, 4], "float16"]);
  texture.image.data = null;
}

// three.js (the real one): memory shared both ways; each function is a test.
import { fromThree, toThree, useDevice } from "/js/adapters/three.js";
import { counted, equal, ok, same, throws } from "../cases/js/expect.mjs";
import { libraries, upload } from "./libraries.mjs";

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
  const out = counted(context, () => fromThree(THREE, result, { renderer }), {});
  ok(out.buffer === renderer.backend.get(result).buffer, "the tensor has the buffer of three.js");
  equal(
    await out.read(),
    VALUES.map((v) => 10 * v),
  );
  out.release();
  renderer.backend.destroyAttribute(attribute);
  x.release();
}

export async function a_vertex_buffer_is_made_where_it_is_asked_for(context) {
  const { THREE, renderer, device } = await libraries();
  const x = upload(context, VALUES, device);
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.VERTEX;
  const refused = () => toThree(THREE, x, { renderer, usage, copy: false });
  await throws(refused, "CopyError", /lacks GPUBufferUsage flags/);
  const make = () => toThree(THREE, x, { renderer, usage });
  const attribute = counted(context, make, { gpu_copies: 1 });
  const made = fromThree(THREE, attribute, { renderer });
  equal([made.buffer.usage & usage, [...(await made.read())]], [usage, [...VALUES]]);
  made.release();
  renderer.backend.destroyAttribute(attribute);
  x.release();
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
  const back = counted(context, () => fromThree(THREE, plain), {});
  equal([back.shape, same(back.data, VALUES)], [[2, 4], true]);
  back.release();
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
  const places = fromThree(THREE, position, { renderer });
  const weights = counted(context, () => fromThree(THREE, weight, { renderer }), {});
  equal([places.shape, places.strides, weights.strides], [[3, 3], [4, 1], [4]]);
  ok(places.buffer === weights.buffer, "one buffer");
  equal(
    [await places.read(), await weights.read()],
    [
      [0, 0, 0, 1, 0, 0, 0, 1, 0],
      [5, 6, 7],
    ],
  );
  for (const each of [places, weights]) each.release();
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

// Batches of kernels in JavaScript: recorded once, run many times in one submit.
import { equal, ok, throws } from "./expect.mjs";
import { gpu, keep, upload } from "./gpu.mjs";

const ADD = `
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> k: f32;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < min(arrayLength(&x), arrayLength(&y))) { y[id.x] += k * x[id.x]; }
}`;

/** A device, a kernel, tensors of the values, and what records a batch, which is released like them. */
async function world(context, ...lists) {
  const { webgpu, device, upload } = await gpu(context);
  const tensors = lists.map((values) => upload(Float32Array.from(values)));
  const kernel = new webgpu.Kernel(device, ADD, { label: "add" });
  const recorded = (block) => keep(webgpu.batch(device)).record(block);
  return { webgpu, device, kernel, tensors, recorded };
}

const valuesOf = async (tensor) => [...(await tensor.read())];

export async function one_run_is_one_submit(context) {
  const { device, kernel, tensors, recorded } = await world(context, [1], [0]);
  const batch = recorded(() => {
    for (let i = 0; i < 20; i++) kernel.run([...tensors, i]);
  });
  const { queue } = device;
  let submits = 0;
  let writes = 0;
  queue.submit = (commands) => {
    submits += commands.length;
    return Object.getPrototypeOf(queue).submit.call(queue, commands);
  };
  queue.writeBuffer = (...args) => {
    writes++;
    return Object.getPrototypeOf(queue).writeBuffer.call(queue, ...args);
  };
  try {
    batch.run();
    batch.run();
  } finally {
    delete queue.submit;
    delete queue.writeBuffer;
  }
  equal([submits, writes], [2, 0]);
  equal([batch.length, batch.released], [20, false]);
  equal(await valuesOf(tensors[1]), [380]);
}

export async function the_batch_holds_its_tensors(context) {
  const { device, kernel, recorded } = await world(context);
  let told = 0;
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const options = { device, shape: [4], dtype: "float32", release: () => told++ };
  const lend = () =>
    context.library.Tensor.fromGPUBuffer(device.createBuffer({ size: 16, usage }), options);
  const [x, y] = [lend(), lend()];
  const batch = recorded(() => kernel.run([x, y, 1]));
  x.release();
  y.release();
  batch.run();
  equal(told, 0);
  batch.release();
  batch[Symbol.dispose]();
  equal([told, batch.released], [2, true]);
  await throws(() => batch.run(), "ReleasedError", /the batch was released/);
  await throws(() => batch.update(0, {}), "ReleasedError", /the batch was released/);
}

export async function arguments_may_release_the_batch(context) {
  const { webgpu, device, kernel, tensors, recorded } = await world(context, [1], [2]);
  const [x, y] = tensors;
  for (const value of [x, 5]) {
    const batch = recorded(() => kernel.run([x, y, 1]));
    const args = {
      get [value === x ? 0 : 2]() {
        batch.release();
        return value;
      },
    };
    await throws(() => batch.update(0, { args }), "ReleasedError", /the batch was released/);
  }
  const options = (batch) => ({
    args: { 2: 7 },
    get workgroups() {
      batch.release();
      return 1;
    },
  });
  const one = recorded(() => kernel.run([x, y, 1]));
  await throws(() => one.update(0, options(one)), "ReleasedError", /was released/);
  const batch = webgpu.batch(device);
  const { workgroups } = Object.getOwnPropertyDescriptors(options(batch));
  const record = () => kernel.run([x, y, 1], Object.defineProperties({}, { workgroups }));
  await throws(() => batch.record(record), "ReleasedError", /was released/);
  const list = Object.defineProperty([x, y, 1], 2, {
    get: () => (other.length === 0 ? (kernel.run([x, y, 2]) ?? 1) : 1),
  });
  const other = keep(webgpu.batch(device));
  other.record(() => kernel.run(list));
  equal([other.length, await valuesOf(y)], [2, [2]]); // what a getter runs is recorded
}

export async function a_formula_is_recorded_for_its_shapes(context) {
  const { webgpu, device, tensors, recorded } = await world(context, [1, 1], [2, 2], [0, 0], [1]);
  const [x, same, y, other] = tensors;
  const definition = { inputs: "f32 x, f32 k", outputs: "f32 y", operation: "y = x + k" };
  const plus = new webgpu.ElementwiseKernel(device, { ...definition, name: "plus" });
  const batch = recorded(() => plus.run([x, 1, y]));
  for (const args of [{ 0: other }, { 2: other }, { 0: 1 }, { 1: x }]) {
    const update = () => batch.update(0, { args });
    await throws(update, "RangeError", /^kernel "plus" was recorded for other shapes/);
  }
  batch.update(0, { args: { 0: same, 1: 3 } });
  batch.run();
  equal(await valuesOf(y), [5, 5]);
}

/** Random formulas and arguments: another shape or kind is refused, too. */
export async function an_update_takes_what_a_call_takes(context) {
  const { webgpu, device, recorded } = await world(context);
  const { Tensor } = context.library;
  const types = { f32: Float32Array, i32: Int32Array, u32: Uint32Array };
  const arrays = { ...types, "": Uint8Array, complex64: Float32Array };
  let state = 7;
  const below = (n) => {
    state = (state * 48271) % 2147483647;
    return state % n;
  };
  const of = (list) => list[below(list.length)];
  const hosts = [[4], [2, 2], [], []].flatMap((shape, at) =>
    Object.entries(arrays).map(([type, Kind]) => {
      const size = shape.reduce((a, b) => a * b, type === "complex64" ? 2 : 1);
      const dtype = type === "complex64" ? type : undefined;
      const host = Tensor.fromTypedArray(new Kind(size).fill(1 + at), { shape, dtype });
      return { type, shape: `${shape}`, host: keep(host), tensor: keep(host.to(device)) };
    }),
  );
  const tensors = hosts.map(({ tensor }) => tensor);
  const like = (type, shape) =>
    hosts.find((one) => one.type === type && one.shape === shape).tensor;
  const formOf = (x) => (x instanceof Tensor ? `${x.shape}` : undefined);
  const reset = () => hosts.forEach(({ host, tensor }) => void tensor.write(host));
  const elements = () => Promise.all(tensors.map(async (one) => [...(await one.read())]));
  const refuses = (call) => {
    reset();
    try {
      call();
      return false;
    } catch {
      return true;
    }
  };
  for (let seed = 0; seed < 12; seed++) {
    const [x, k, w, out] = [0, 0, 0, 0].map(() => of(Object.keys(types)));
    const shape = of(["4", "2,2"]);
    const parameters = { inputs: `${x} x, ${k} k, raw ${w} w`, outputs: `${out} y` };
    const sum = `${out}(x) + ${out}(k) + ${out}(w[0])`;
    const isReduced = seed % 2 === 1;
    const kernel = isReduced
      ? new webgpu.ReductionKernel(device, {
          ...parameters,
          map: sum,
          reduce: "a + b",
          postMap: "y = a",
          identity: 0,
        })
      : new webgpu.ElementwiseKernel(device, { ...parameters, operation: `y = ${sum}` });
    const host = Tensor.fromTypedArray(new types[out](isReduced ? 1 : 4), {
      shape: isReduced ? [] : shape.split(",").map(Number),
    });
    const y = keep(host.to(device));
    hosts.push({ host: keep(host), tensor: y });
    tensors.push(y);
    let args = [like(x, shape), of([like(k, shape), like(k, ""), 3]), like(w, "4"), y];
    const batch = recorded(() => kernel.run(args));
    for (let i = 0; i < 25; i++) {
      const at = below(args.length + 1);
      const value = of([0, 2.5, -1, 1e39, null, "1", ...tensors]);
      const changed = [...args.slice(0, at), value, ...args.slice(at + 1)];
      const what = `${JSON.stringify(parameters)}, ${at}: ${formOf(value) ?? value}`;
      const isOther = at !== 2 && formOf(value) !== formOf(args[at]);
      const expected = refuses(() => kernel.run(changed)) || isOther;
      const results = await elements();
      const found = refuses(() => batch.update(0, { args: { [at]: value } }));
      equal(found, expected, what);
      if (found) continue;
      args = changed;
      batch.run();
      equal(await elements(), results, what);
    }
  }
}

export async function results_of_a_batch_that_has_not_run_are_errors(context) {
  const { webgpu, device, tensors, recorded } = await world(context, [1, 1], [7, 7]);
  const [x, kept] = tensors;
  const definition = { inputs: "f32 x, f32 k", outputs: "f32 y", operation: "y = x + k" };
  const plus = new webgpu.ElementwiseKernel(device, definition);
  let y;
  const batch = recorded(() => {
    y = keep(plus.run([x, 1]));
    plus.run([y, 1, kept]);
  });
  const [part, later] = [keep(y.slice([1])), keep(plus.run([y, 1]))];
  const refused = (one) => throws(() => one.read(), "UnsupportedError", /has not run: call/);
  for (const one of [y, part, later]) await refused(one);
  equal(await valuesOf(kept), [7, 7]); // a tensor that was given has its elements
  batch.run();
  batch.run();
  equal(
    [await valuesOf(y), await valuesOf(kept)],
    [
      [2, 2],
      [3, 3],
    ],
  );
  await refused(later);
  let [z, lost] = [];
  const gone = recorded(() => {
    z = keep(plus.run([x, 2]));
    lost = keep(plus.run([x, 3]));
  });
  plus.run([x, 4, z]);
  await refused(z); // its formula could read what is there
  z.write(x);
  equal(await valuesOf(z), [1, 1]);
  gone.release();
  await refused(lost);
  let moved;
  const other = recorded(() => {
    moved = keep(plus.run([x, 4]));
    plus.run([moved, 1, moved]);
  });
  const message = /the workgroups of kernel "kernel" follow from its shapes: leave them out/;
  await throws(() => other.update(0, { workgroups: 1 }), "RangeError", message);
  other.update(0, { args: { 2: kept } }); // nothing computes what the second adds to
  other.run();
  await refused(moved);
}

export async function updates_change_numbers_tensors_and_workgroups(context) {
  const lists = [
    [1, 1],
    [0, 0],
    [5, 5],
  ];
  const { kernel, tensors, recorded } = await world(context, ...lists);
  const [x, y, z] = tensors;
  const batch = recorded(() => kernel.run([x, y, 1]));
  batch.update(0, { args: { 2: 3 } });
  batch.run();
  batch.update(-1, { args: { 0: z }, workgroups: 1 });
  batch.run();
  equal(await valuesOf(y), [18, 18]);
  await throws(() => batch.update(1, {}), "RangeError", /the batch has 1 calls, and no number 1/);
  await throws(
    () => batch.update(0, { args: { 3: 1 } }),
    "RangeError",
    /3 arguments that can change, not number 3/,
  );
  await throws(() => batch.update(0, { args: { "-1": 1 } }), "RangeError", /not number -1/);
  await throws(
    () => batch.update(0, { args: { 0: 1 } }),
    "TypeError",
    /binding 0: numbers are for/,
  );
  await throws(() => batch.update(0, { workgroups: 0 }), "RangeError", /workgroups must be/);
  await throws(() => batch.update(0, 5), "TypeError", /update\(\)/);
  for (const [changes, message] of [
    [{ arg: { 2: 1 } }, /^update\(\) has no option "arg": it has args, workgroups$/],
    [{ args: { length: 1 } }, /by position, \{ 0: tensor \}, not "length"$/],
    [{ args: { "02": 1 } }, /not "02"$/],
    [{ args: { constructor: 1 } }, /not "constructor"$/],
    [{ args: 5 }, /^args of update\(\) are the new arguments by position, \{ 0: tensor \}, not 5$/],
    [{ args: z }, /by position, \{ 0: tensor \}, not Tensor/],
  ]) {
    await throws(() => batch.update(0, changes), "TypeError", message);
  }
  batch.run();
  equal(await valuesOf(y), [33, 33]);
}

export async function a_block_that_throws_leaves_nothing(context) {
  const { webgpu, device, kernel, tensors } = await world(context, [1], [0]);
  const batch = webgpu.batch(device);
  const fail = () => {
    kernel.run([...tensors, 1]);
    throw new RangeError("mine");
  };
  await throws(() => batch.record(fail), "RangeError", /mine/);
  equal(batch.released, true);
  const other = webgpu.batch(device);
  await throws(() => other.record(async () => {}), "TypeError", /takes no async function/);
  kernel.run([...tensors, 1]);
  equal(await valuesOf(tensors[1]), [1], "nothing records");
}

export async function the_order_of_things(context) {
  const { webgpu, device, kernel, tensors } = await world(context, [1], [0]);
  const batch = keep(webgpu.batch(device));
  await throws(() => batch.run(), "DLPackError", /nothing was recorded/);
  await throws(() => webgpu.batch(), "TypeError", /a GPUDevice is needed/);
  batch.record(() => {
    kernel.run([...tensors, 1]);
    let nested;
    try {
      webgpu.batch(device).record(() => {});
    } catch (error) {
      nested = error.message;
    }
    ok(/do not nest/.test(nested), nested);
    let ran;
    try {
      batch.run();
    } catch (error) {
      ran = error.message;
    }
    ok(/is being recorded/.test(ran), ran);
  });
  await throws(() => batch.record(() => {}), "DLPackError", /recorded once/);
  equal(batch.length, 1);
  webgpu
    .batch(device)
    .record(() => {})
    .run();
}

export async function a_kernel_of_another_device_is_refused(context) {
  const { webgpu, device } = await world(context);
  const other = await webgpu.requestDevice({ label: "other" });
  const kernel = new webgpu.Kernel(other, ADD, { label: "elsewhere" });
  const tensors = [1, 0].map((value) => upload(context, Float32Array.of(value), other));
  const batch = webgpu.batch(device);
  const record = () => batch.record(() => kernel.run([...tensors, 1]));
  await throws(record, "UnsupportedError", /"elsewhere" is compiled for .* a batch for each/);
  other.destroy();
}

/** How many error scopes a run opens. */
function scopesOf(device, batch) {
  let scopes = 0;
  device.pushErrorScope = (filter) => {
    scopes++;
    return Object.getPrototypeOf(device).pushErrorScope.call(device, filter);
  };
  try {
    batch.run();
  } finally {
    delete device.pushErrorScope;
  }
  return scopes;
}

export async function only_runs_that_can_fail_are_watched(context) {
  const { device, kernel, tensors, recorded } = await world(context, [1], [0], [5]);
  const [x, y, z] = tensors;
  const batch = recorded(() => kernel.run([x, y, 1]));
  equal(scopesOf(device, batch), 1);
  equal(scopesOf(device, batch), 1, "the first is not known to be good");
  equal(await valuesOf(y), [2]);
  equal(scopesOf(device, batch), 0);
  batch.update(0, { args: { 2: 10 } });
  equal(scopesOf(device, batch), 0, "numbers are written");
  equal(await valuesOf(y), [13]);
  batch.update(0, { args: { 0: z } });
  equal(scopesOf(device, batch), 1, "another tensor");
  equal(await valuesOf(y), [63]);
  equal(scopesOf(device, batch), 0);
  ok(z.buffer.size >= 4);
  equal(scopesOf(device, batch), 1, "a page may destroy it");
  equal(await valuesOf(y), [163]);
  equal(scopesOf(device, batch), 1);
}

export async function a_buffer_of_ours_that_a_page_destroys_names_the_kernel(context) {
  const { webgpu, device, tensors, recorded } = await world(context, [1], [0], [0]);
  const [x, y, z] = tensors;
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const host = keep(context.library.Tensor.fromTypedArray(Float32Array.of(1)));
  const more = keep(host.to(device, { usage: usage | GPUBufferUsage.INDIRECT }));
  const kernels = ["first", "second"].map((label) => new webgpu.Kernel(device, ADD, { label }));
  for (const [bad, name] of [
    [x, "first"],
    [more, "second"],
  ]) {
    const batch = recorded(() => {
      kernels[0].run([bad === x ? x : z, y, 1]);
      kernels[1].run([more, z, 1]);
    });
    for (let run = 0; run < 3; run++) {
      batch.run();
      await y.read();
    }
    bad.buffer.destroy();
    batch.run();
    const error = await throws(() => y.read(), "KernelError", /failed/);
    equal(error.label, name);
    for (const one of [y, z]) one.write(new Float32Array(1));
  }
}

export async function timed_kernels_are_not_recorded(context) {
  const { webgpu, device, kernel, tensors } = await world(context, [1], [0]);
  const batch = webgpu.batch(device);
  const record = () =>
    batch.record(() => kernel.run([...tensors, 1], { timestampWrites: { querySet: {} } }));
  await throws(record, "UnsupportedError", /cannot be timed/);
}

// ElementwiseKernel and ReductionKernel. What they compute is tested from Python, which writes the
// same WGSL (tests/fuzz/twins compares them): here are JavaScript's arguments, results and errors.
import { equal, ok, Skip, throws } from "./expect.mjs";
import { gpu, keep } from "./gpu.mjs";

async function kernelsOf(context) {
  const { webgpu, device, upload } = await gpu(context);
  const { ElementwiseKernel, ReductionKernel } = webgpu;
  return {
    device,
    upload,
    elementwise: (inputs, outputs, operation, name) =>
      new ElementwiseKernel(device, { inputs, outputs, operation, name }),
    reduction: (more = {}) =>
      new ReductionKernel(device, {
        inputs: "f32 x",
        outputs: "f32 y",
        map: "x",
        reduce: "a + b",
        postMap: "y = a",
        identity: 0,
        ...more,
      }),
    read: async (tensor) => [...(await keep(tensor).read())],
  };
}

export async function outputs_are_new_or_given(context) {
  const { elementwise, upload, read } = await kernelsOf(context);
  const axpy = elementwise("f32 x, f32 y, f32 k", "f32 z", "z = k * x + y", "axpy");
  const x = upload(Float32Array.of(1, 2, 3, 4), { shape: [2, 2] });
  const y = upload(Float32Array.of(10), { shape: [] });
  const z = axpy.run([x, y, 2]);
  equal([z.shape, z.dtype], [[2, 2], "float32"]);
  equal(await read(z), [12, 14, 16, 18]);
  ok(axpy.run([x, x, 1, x]) === x, "the output that was given");
  equal([...(await x.read())], [2, 4, 6, 8]);
  const alone = axpy.run([y, y, y]);
  equal(alone.shape, []);
  equal(await read(alone), [110]);
}

export async function several_outputs_are_an_array(context) {
  const { elementwise, upload, read } = await kernelsOf(context);
  const split = elementwise("f32 x", "i32 a, f32 b", "a = i32(floor(x)); b = x - floor(x)");
  const x = upload(Float32Array.of(1.5, -0.25));
  const [a, b] = split.run([x]);
  equal(await read(a), [1, -1]);
  equal(await read(b), [0.5, 0.75]);
}

export async function raw_inputs_and_a_size(context) {
  const { elementwise, upload, read } = await kernelsOf(context);
  const flip = elementwise("raw f32 x", "f32 y", "y = x[n - 1 - i]", "flip");
  const x = upload(Float32Array.of(1, 2, 3));
  equal(await read(flip.run([x], { size: 2 })), [2, 1]);
  await throws(() => flip.run([x]), "RangeError", /give the outputs, or \{ size \}$/);
  await throws(() => flip.run([x], { size: -1 }), "RangeError", /from 0 on, not -1$/);
  await throws(() => flip.run([x, x], { size: 3 }), "RangeError", /have shape \[3\]: size is for/);
  flip.run([x, x]);
  equal(await read(x), [3, 2, 1]);
}

export async function sums_along_axes(context) {
  const { reduction, upload, read } = await kernelsOf(context);
  const sum = reduction({ inputs: "u32 x", outputs: "u32 y", name: "sum" });
  for (const shape of [[3], [2, 3], [4, 1, 5], [2, 9000], [9000, 2], [300, 40], [130_000]]) {
    const size = shape.reduce((a, b) => a * b, 1);
    const data = Uint32Array.from({ length: size }, (_, i) => (i * 7919) % 1000);
    const x = upload(data, { shape });
    for (const [axis, extent] of shape.entries()) {
      const inner = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
      const expected = new Array(size / extent).fill(0);
      for (let i = 0; i < size; i++) {
        expected[Math.floor(i / (inner * extent)) * inner + (i % inner)] += data[i];
      }
      for (const given of [axis, axis - shape.length]) {
        const y = sum.run([x], { axis: given });
        equal(y.shape, shape.toSpliced(axis, 1));
        equal(await read(y), expected, `sums of [${shape}] along ${given}`);
      }
      const kept = keep(sum.run([x], { axis, keepdims: true }));
      equal(kept.shape, shape.with(axis, 1));
    }
    const all = data.reduce((a, b) => a + b, 0);
    equal(await read(sum.run([x])), [all]);
    const kept = keep(sum.run([x], { axis: null, keepdims: true }));
    equal(
      kept.shape,
      shape.map(() => 1),
    );
  }
}

export async function no_elements_give_the_identity(context) {
  const { reduction, elementwise, upload, read } = await kernelsOf(context);
  const none = upload(new Float32Array(0), { shape: [0, 2] });
  const kernel = reduction({ identity: "f32(3)" });
  equal(await read(kernel.run([none])), [3]);
  equal(await read(kernel.run([none], { axis: 0 })), [3, 3]);
  equal(await read(kernel.run([none], { axis: 1 })), []);
  equal(await read(elementwise("f32 x", "f32 y", "y = x").run([none])), []);
}

export async function vectors_are_reduced(context) {
  const { reduction, upload, read } = await kernelsOf(context);
  const range = reduction({
    inputs: "i32 x",
    outputs: "i32 least, i32 most",
    reduceType: "vec2i",
    map: "vec2i(x, x)",
    reduce: "vec2i(min(a.x, b.x), max(a.y, b.y))",
    postMap: "least = a.x; most = a.y",
    identity: "vec2i(2147483647, -2147483648)",
  });
  const x = upload(Int32Array.from({ length: 20_000 }, (_, i) => ((i * 7919) % 1001) - 500));
  const [least, most] = range.run([x]);
  equal([await read(least), await read(most)], [[-500], [500]]);
}

export async function errors_are_at_the_line_of_the_formula(context) {
  const { elementwise, reduction, upload } = await kernelsOf(context);
  const wrong = elementwise("f32 x", "f32 y", "\n  y = nonsense;", "wrong");
  const x = upload(Float32Array.of(1));
  const y = keep(wrong.run([x]));
  const found = await Promise.allSettled([wrong.ready, y.read()]);
  for (const { reason } of found) {
    const error = await throws(
      () => Promise.reject(reason),
      "KernelError",
      /: operation, line 2:7: /,
    );
    equal([error.label, error.line], ["wrong", 2]);
    ok(error.message.includes("\n  y = nonsense;\n      ^"), error.message);
  }
  for (const [more, where] of [
    [{ map: "x + c" }, "map, line 1:5"],
    [{ reduce: "a\n+ c" }, "reduce, line 2:3"],
    [{ reduce: "a\r\u2028\r\n\u0085+ c" }, "reduce, line 5:3"],
    [{ postMap: "y = c" }, "postMap, line 1:5"],
    [{ identity: "c" }, "identity, line 1:1"],
  ]) {
    const error = await throws(() => reduction(more).ready, "KernelError", /./);
    ok(error.message.includes(`: ${where}`), error.message);
  }
  const open = elementwise("f32 x", "f32 y", "y = x;\n}}\nfn _more() {{"); // fails after it
  const error = await throws(() => open.ready, "KernelError", /generated source, line /);
  equal(error.line, undefined);
}

export async function several_axes_are_reduced(context) {
  const { reduction, upload, read } = await kernelsOf(context);
  const sum = reduction();
  const x = upload(
    Float32Array.from({ length: 24 }, (_, i) => i),
    { shape: [2, 3, 4] },
  );
  for (const [options, shape, values] of [
    [{ axis: [0, 2] }, [3], [60, 92, 124]],
    [{ axis: [-1, 0] }, [3], [60, 92, 124]],
    [{ axis: [0, 2], keepdims: true }, [1, 3, 1], [60, 92, 124]],
    [{ axis: [] }, [2, 3, 4], Array.from({ length: 24 }, (_, i) => i)],
    [{ axis: [0, 1, 2] }, [], [276]],
    [{ axis: null }, [], [276]],
    [{}, [], [276]],
  ]) {
    const y = sum.run([x], options);
    equal(y.shape, shape);
    equal(await read(y), values);
  }
  for (const [axis, message] of [
    [[0, -3], /^axis -3 is given twice for shape \[2, 3, 4\]$/],
    [[0, 3], /^axis 3 is out of bounds for shape/],
  ]) {
    await throws(() => sum.run([x], { axis }), "RangeError", message);
  }
  for (const axis of ["0", [[0]], 0.5, {}, 0n, [0n], Symbol("x"), { toJSON: () => null }]) {
    await throws(() => sum.run([x], { axis }), "TypeError", /^axis must be integers or null/);
  }
  const out = keep(sum.run([x]));
  sum.run([x, out], { axis: null }); // known from here on
  await throws(() => sum.run([x, out], { axis: NaN }), "TypeError", /^axis must be integers/);
}

export async function sizes_are_written_once(context) {
  const { device, reduction, upload, read } = await kernelsOf(context);
  const sum = reduction();
  const square = upload(Float32Array.of(1, 2, 3, 4), { shape: [2, 2] });
  const long = upload(new Float32Array(9000).fill(1));
  const y = upload(new Float32Array(2));
  const { writeBuffer } = device.queue;
  let writes = 0;
  const run = async () => {
    sum.run([square, y], { axis: 0 });
    equal([...(await y.read())], [4, 6]);
    sum.run([square, y], { axis: 1 });
    equal([...(await y.read())], [3, 7]);
    equal(await read(sum.run([square])), [10]);
    equal(await read(sum.run([long])), [9000]);
  };
  await run();
  Object.defineProperty(device.queue, "writeBuffer", {
    configurable: true,
    value(buffer, ...rest) {
      // Clearing what is left in an idle buffer, of 16 bytes here, is no upload of sizes.
      if (buffer.size === 288) writes++;
      writeBuffer.call(device.queue, buffer, ...rest);
    },
  });
  try {
    await run();
    await run();
  } finally {
    delete device.queue.writeBuffer;
  }
  equal(writes, 0);
}

export async function arguments_that_do_not_fit(context) {
  const { elementwise, reduction, upload } = await kernelsOf(context);
  const axpy = elementwise("f32 x, f32 y, i32 k", "f32 z", "z = f32(k) * x + y", "axpy");
  const sum = reduction({ name: "sum" });
  const both = elementwise("i32 k_, raw f32 w_", "f32 y_, f32 z", "y_ = w_[i] + f32(k_); z = y_");
  const x = upload(Float32Array.of(1, 2));
  const long = upload(Float32Array.of(1, 2, 3));
  const wide = upload(Float64Array.of(1, 2));
  const strided = keep(long.slice([0, 3, 2]));
  const { liveTensors } = context.library;
  const before = liveTensors();
  for (const [kernel, args, name, message] of [
    [axpy, x, "TypeError", /^run\(\) takes an array of arguments/],
    [
      axpy,
      [x, x],
      "TypeError",
      /^kernel "axpy" takes 3 arguments \(f32 x, f32 y, i32 k\) -> \(f32 z\), or 4 with its outputs, not 2$/,
    ],
    [axpy, [x, long, 1], "RangeError", /must agree: x \[2\], y \[3\]; only numbers and tensors of/],
    [axpy, [x, x, 1, long], "RangeError", /^z has shape \[3\], the inputs have \[2\]: outputs are/],
    [axpy, [x, wide, 1], "UnsupportedError", /^y is float64, .*dtype "float32"$/],
    [axpy, [x, x, x], "UnsupportedError", /^k is float32, the parameter is "i32 k": give a tens/],
    [axpy, [x, x, 1.5], "RangeError", /^k: 1.5 is not a valid i32$/],
    [both, [1.5, x, long, long], "RangeError", /^k_: 1.5 is not a valid i32$/],
    [both, [1, x, long, long], "UnsupportedError", /^y_ and z of the kernel overlap, and/],
    [axpy, [x, x, 1, 2], "TypeError", /^z is an output and takes a tensor, not \[object Number\]$/],
    [axpy, [x, [1], 1], "TypeError", /^y takes a tensor or a number, not \[object Array\]$/],
    [axpy, [strided, 1, 1], "UnsupportedError", /strides/],
    [axpy, [1, 1, 1], "RangeError", /give the outputs, or \{ size \}/],
    [sum, [1], "RangeError", /^kernel "sum" needs a tensor to reduce$/],
    [sum, [x, x], "RangeError", /^y has shape \[2\], the result has \[\]: outputs are not/],
    [sum, [strided], "UnsupportedError", /strides/],
  ]) {
    await throws(() => kernel.run(args), name, message);
    equal(liveTensors(), before, `tensors after ${message}`);
  }
  await throws(() => sum.run([x], { axis: 1 }), "RangeError", /^axis 1 is out of bounds for shape/);
  await throws(() => sum.run([x], 1), "TypeError", /options of run\(\)/);
  const host = keep(context.library.Tensor.fromTypedArray(Float32Array.of(1)));
  await throws(() => sum.run([host]), "DeviceError", /./);
  x.release();
  await throws(() => axpy.run([x, x, 1]), "ReleasedError", /./);
}

export async function definitions_that_do_not_fit(context) {
  const { device, elementwise, reduction } = await kernelsOf(context);
  const { ElementwiseKernel } = context.library.webgpu;
  for (const [make, name, message] of [
    [() => elementwise("T x", "f32 y", "y = x"), "RangeError", /f32, i32, u32 or f16, not T$/],
    [() => elementwise("f32 x", "f32 y", ""), "RangeError", /^operation is empty$/],
    [() => elementwise("f32 x", "f32 y", "y = x", 7), "TypeError", /^name must be a string/],
    [() => new ElementwiseKernel(device, "f32 x"), "TypeError", /options of an Elementwise/],
    [() => new ElementwiseKernel(device), "TypeError", /options of an Elementwise/],
    [() => reduction({ inputs: "f32 a" }), "RangeError", /the name a is reserved/],
    [() => reduction({ inputs: "raw f32 x" }), "RangeError", /an input that is not raw$/],
    [() => reduction({ reduceType: "vec3f" }), "RangeError", /vec4u, not vec3f$/],
    [() => reduction({ identity: undefined }), "TypeError", /^identity is a number, or/],
    [() => reduction({ map: undefined }), "TypeError", /^map is a string of WGSL/],
  ]) {
    await throws(make, name, message);
  }
  const kernel = elementwise("f32 x", "f32 y", "y = x");
  ok(kernel.wgsl.includes("\ny = x\n"), kernel.wgsl);
  ok(reduction().wgsl.includes("fn _reduce(a: f32, b: f32) -> f32"), "a function");
}

export async function halves_need_the_feature(context) {
  const { device, elementwise, upload } = await kernelsOf(context);
  const make = () => elementwise("f16 x, f16 k", "f16 y", "y = k * x", "half");
  if (!device.features.has("shader-f16")) {
    await throws(make, "UnsupportedError", /^kernel "half" is of f16, and .* lacks the feature/);
    throw new Skip("the device lacks shader-f16");
  }
  const x = upload(Uint16Array.of(0x3c00, 0x4000, 0x4200), { dtype: "float16" });
  const kernel = make();
  const y = keep(kernel.run([x, 2]));
  equal([...new Uint16Array((await y.read()).buffer)].slice(0, 3), [0x4000, 0x4400, 0x4600]);
  await throws(() => kernel.run([x, 1e6]), "RangeError", /^k: 1000000 is not a valid f16$/);
}

export async function a_lost_device_is_named(context) {
  const { requestDevice } = context.library.webgpu;
  const { device, upload, ElementwiseKernel } = await gpu(context, await requestDevice());
  const options = { inputs: "f32 x", outputs: "f32 y", operation: "y = x" };
  const kernel = new ElementwiseKernel(device, options);
  const x = upload(Float32Array.of(1));
  device.destroy();
  await device.lost;
  await new Promise((done) => setTimeout(done));
  await throws(() => kernel.run([x]), "DeviceLostError", /./);
  const make = () => new ElementwiseKernel(device, options);
  await throws(make, "DeviceLostError", /./);
}

// Tensors of other realms: an iframe's library counts its handles by itself.
import { equal, ok, throws } from "./expect.mjs";

/** The library once more, in an iframe of this page; `end` removes it. */
async function frame() {
  const element = document.createElement("iframe");
  document.body.append(element);
  const script = element.contentDocument.createElement("script");
  script.type = "module";
  script.src = new URL("frame.mjs", import.meta.url);
  const loaded = new Promise((done) => script.addEventListener("load", done));
  element.contentDocument.body.append(script);
  await loaded;
  const library = await element.contentWindow.loaded;
  return { library, window: element.contentWindow, end: () => element.remove() };
}

export async function a_tensor_of_an_iframe_is_not_one_of_ours({ library }) {
  const { library: theirs, window, end } = await frame();
  ok(theirs.Tensor !== library.Tensor, "another realm has another class");
  const here = library.Tensor.fromTypedArray(Float32Array.of(9, 9, 9));
  const there = theirs.Tensor.fromTypedArray(window.Float32Array.of(1, 2, 3));
  equal([there instanceof library.Tensor, here instanceof theirs.Tensor], [false, false]);

  const taken = library.Tensor.from(there);
  equal([taken instanceof library.Tensor, taken.data], [true, [1, 2, 3]]);
  ok(taken.data.buffer === there.data.buffer, "a copy");
  here.write(there);
  equal(here.data, [1, 2, 3]);
  taken.data[0] = 7;
  equal(there.data, [7, 2, 3]);
  there.write(here);
  equal(taken.data, [1, 2, 3]);
  there.release();
  equal(taken.data, [1, 2, 3]); // the hold is its own
  taken.release();
  here.release();
  equal(theirs.liveTensors(), 0);
  end();
}

export async function typed_arrays_of_an_iframe_are_what_they_are({ library, bridge }) {
  const { window, end } = await frame();
  const array = window.Int16Array.of(4, 5, 6);
  const tensor = library.Tensor.fromTypedArray(array);
  equal([tensor.dtype, tensor.shape, tensor.data], ["int16", [3], [4, 5, 6]]);
  tensor.release();
  const inWasm = bridge.tensor(array);
  equal([inWasm.dtype, inWasm.data], ["int16", [4, 5, 6]]);
  inWasm.release();
  end();
}

export async function a_tensor_of_an_iframe_goes_to_the_gpu_and_to_python(context) {
  const { library, bridge, pyodide } = context;
  const { library: theirs, end } = await frame();
  const there = theirs.Tensor.fromTypedArray(new Float32Array([1, 2, 3, 4, 5, 6]), {
    shape: [2, 3],
  });
  const array = bridge.toPython(there);
  pyodide.globals.set("of_a_frame", array);
  const text = "str((of_a_frame.numpy().tolist(), of_a_frame.shape))";
  equal(pyodide.runPython(text), "([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], (2, 3))");
  pyodide.runPython("del of_a_frame");
  array.destroy();

  const device = await library.webgpu.requestDevice();
  const mine = library.Tensor.from(there);
  const gpu = mine.to(device);
  equal(await gpu.read(), [1, 2, 3, 4, 5, 6]);
  // The other realm's library has its own numbers for devices and tensors.
  const seen = theirs.Tensor.from(gpu);
  equal([seen.device.gpu === device, await seen.read()], [true, [1, 2, 3, 4, 5, 6]]);
  const zeros = theirs.Tensor.fromTypedArray(new Float32Array(6), { shape: [2, 3] });
  seen.write(zeros);
  equal(await gpu.read(), [0, 0, 0, 0, 0, 0]);
  for (const tensor of [there, mine, gpu, seen, zeros]) tensor.release();
  equal(theirs.liveTensors(), 0);
  end();
}

export async function what_belongs_to_a_removed_iframe_is_refused_or_works({ library }) {
  const { library: theirs, end } = await frame();
  const there = theirs.Tensor.fromTypedArray(new Float32Array([1, 2]));
  const taken = library.Tensor.from(there);
  end();
  equal(taken.data, [1, 2]);
  taken.release();
  there.release();
  await throws(() => library.Tensor.from(there), "ReleasedError", /released/);
}

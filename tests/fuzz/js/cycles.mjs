// The same again and again: what was there after a first part of it is there at the end, and no more.
import { prepare } from "./model.mjs";
import * as watch from "./watch.mjs";
import { found } from "./world.mjs";

const ADD = `
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<uniform> y: u32;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { x[id.x] += y; }
}`;
const COUNT = 100;

/** The ways round: from JavaScript and Python, read or released unread, whole or as a view. */
function waysOf({ library, bridge, pyodide, python }, device, id) {
  const { Tensor, webgpu } = library;
  const kernel = new webgpu.Kernel(device, ADD);
  const host = Tensor.fromTypedArray(new Uint32Array(COUNT).fill(5));
  const array = pyodide.runPython(`import numpy as np; np.full(${2 * COUNT}, 5, "u4")[::2]`);
  const turn = pyodide.runPython(`
def turn(array, device, kernel=dlw.webgpu.Kernel(${JSON.stringify(ADD)})):
    with dlw.from_dlpack(array, device=f"webgpu:{device}") as t:
        kernel(t, 1)
        t[3:7].reshape((2, 2)).release()
turn`);
  const expect = (elements, value) => {
    found(
      elements.every((each) => each === value),
      () => `read ${elements.slice(0, 8)}`,
    );
  };
  const ways = [
    () => {
      const x = host.to(device);
      kernel.run([x, 2]);
      x.release();
    },
    async () => {
      const borrowed = bridge.tensor(array);
      const x = borrowed.to(device);
      borrowed.release();
      kernel.run([x, 2]);
      const read = x.read();
      x.release();
      expect(await read, 7);
    },
    () => turn(array, id),
    async () => {
      const x = host.to(device);
      const view = x.slice([64, 80]);
      x.release();
      kernel.run([view, 4]);
      const read = view.read();
      view.release();
      expect(await read, 9);
    },
    () => {
      const x = host.to(device);
      const proxy = bridge.toPython(x);
      x.release();
      const again = bridge.tensor(proxy);
      python.run("release", "{}", proxy);
      proxy.destroy();
      again.release();
    },
  ];
  const end = () => {
    host.release();
    for (const proxy of [array, turn]) proxy.destroy();
  };
  return { ways, end };
}

/** All that is counted, when nothing is under way. */
async function countsOf({ library, pyodide, python }, id) {
  await watch.turn();
  const tensors = [library.liveTensors(), python.run("live", "{}")];
  const { buffers, bytes, created, idleBytes } = library.webgpu.stats()[id];
  const wasm = pyodide._module.HEAP8.length;
  return JSON.stringify({
    tensors,
    buffers,
    bytes,
    created,
    idleBytes,
    made: watch.made.size,
    wasm,
  });
}

/** Cycles until the time is over, and not more than so many. */
export async function run(context, { seconds, most }) {
  await prepare(context);
  const device = await context.library.webgpu.requestDevice();
  const empty = context.bridge.empty([0], "int8", { device });
  const { id } = empty.device;
  empty.release();
  const { ways, end } = waysOf(context, device, id);
  const stop = performance.now() + 1000 * seconds;
  const part = async (cycles) => {
    for (let i = 0; i < cycles; i++) {
      await ways[i % ways.length]();
      if (i % 200 === 199) await device.queue.onSubmittedWorkDone();
    }
    await device.queue.onSubmittedWorkDone();
  };
  try {
    await part(500);
    const before = await countsOf(context, id);
    let cycles = 500;
    while (cycles < most && performance.now() < stop) {
      await part(500);
      cycles += 500;
    }
    const after = await countsOf(context, id);
    found(after === before, () => `after ${cycles} cycles ${after}, after 500 ${before}`);
    return { cycles };
  } finally {
    end();
    device.destroy();
  }
}

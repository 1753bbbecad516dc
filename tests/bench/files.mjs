// A file of a URL to the GPU: ours, fetch alone (whose bytes go nowhere), and the usual way; and a
// hundredth of its elements.
import { open } from "/js/open/index.js";
import { expect, readBuffer, TENSOR_USAGE } from "./paths.mjs";

const MB = 1 << 20;
/** Python's memory may grow by so much. */
const ROOM = 32 * MB;

export function openWays({ pyodide, device, pool }, bytes) {
  const count = bytes / 4;
  const url = `/made/bench.npy?count=${count}&keep=1`;
  const wasm = pyodide._module;
  const settle = () => device.queue.onSubmittedWorkDone();
  const load = pyodide.runPython(`
import io
import numpy as np
from pyodide.http import pyfetch

async def load(url):
    response = await pyfetch(url)
    return np.load(io.BytesIO(await response.bytes()))
load`);
  const isRight = (values) => {
    for (let i = 0; i < count; i++) if (values[i] !== i) return false;
    return values.length === count;
  };

  async function ours() {
    const tensor = await open(url, { device });
    await settle();
    return tensor;
  }
  async function alone() {
    const { body } = await fetch(url, { cache: "no-store" });
    const reader = body.getReader();
    let length = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return length;
      length += value.length;
    }
  }
  async function usual() {
    const array = await load(url);
    const view = array.getBuffer("u32");
    const buffer = device.createBuffer({ size: bytes, usage: TENSOR_USAGE });
    device.queue.writeBuffer(buffer, 0, view.data);
    view.release();
    array.destroy();
    await settle();
    return buffer;
  }
  const first = { name: "dlpack-web", facts: {} };
  return {
    ways: [
      Object.assign(first, {
        async each() {
          (await ours()).release();
        },
        async verify() {
          const before = wasm.HEAPU8.length;
          const tensor = await ours();
          const grown = wasm.HEAPU8.length - before;
          first.facts.grown_bytes = Math.max(first.facts.grown_bytes ?? 0, grown);
          expect(grown <= ROOM, `Python's memory grew by ${grown} bytes`);
          expect(isRight(await tensor.read()), "what was opened");
          tensor.release();
          pool.drop();
        },
      }),
      {
        name: "fetch alone",
        each: alone,
        verify: async () => expect((await alone()) === bytes + 128, "what was fetched"),
      },
      {
        name: "fetch, bytes, NumPy, getBuffer()+writeBuffer",
        async each() {
          (await usual()).destroy();
        },
        async verify() {
          const buffer = await usual();
          const values = new Uint32Array((await readBuffer(device, buffer, bytes)).buffer);
          expect(isRight(values), "the usual way");
          buffer.destroy();
        },
      },
    ],
    done() {
      load.destroy();
    },
  };
}

/** A hundredth of a file: a part, the bytes alone, and all of the file. */
export function partWays({ device }, bytes) {
  const count = bytes / 4;
  const url = `/made/bench.npy?count=${count}&keep=1`;
  const first = Math.floor(count / 2);
  const last = first + Math.floor(count / 100);
  const settle = () => device.queue.onSubmittedWorkDone();
  const sent = async () =>
    Number(await (await fetch(`/made/.sent?of=${encodeURIComponent(url)}`)).text());
  const load = async (part) => {
    const tensor = await open(url, { device, ...(part && { part }) });
    await settle();
    return tensor;
  };
  const isRight = (values) => values.every((value, i) => value === first + i);
  const way = (name, part) => {
    const made = {
      name,
      facts: {},
      async each() {
        (await load(part)).release();
      },
      async verify() {
        const before = await sent();
        const tensor = await load(part);
        made.facts.sent_bytes = (await sent()) - before;
        const found = part ? tensor : tensor.slice([first, last]);
        const values = await found.read();
        expect(values.length === last - first && isRight(values), name);
        if (part && bytes >= 256 * MB) {
          const share = made.facts.sent_bytes / bytes;
          expect(share <= 0.011, `a hundredth took ${100 * share} % of the bytes`);
        }
        for (const each of new Set([tensor, found])) each.release();
      },
    };
    return made;
  };
  const alone = async () => {
    const headers = { Range: `bytes=${128 + 4 * first}-${128 + 4 * last - 1}` };
    const response = await fetch(url, { headers, cache: "no-store" });
    return new Uint32Array(await response.arrayBuffer());
  };
  return {
    ways: [
      way("dlpack-web", [[first, last]]),
      {
        name: "fetch of that range alone",
        each: alone,
        verify: async () => expect(isRight(await alone()), "what was fetched"),
      },
      way("the whole file"),
    ],
    done() {},
  };
}

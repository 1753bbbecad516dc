// A tensor on the GPU given to another owner and taken back, and what both made given up; beside that, the
// same elements through the CPU.
import { EXCHANGE, take } from "../../../js/exchange/index.js";
import { Tensor } from "../../../js/index.js";
import { holds, makeBuffer, makeStaging, readBuffers, TENSOR_USAGE, USAGE } from "./gpu.mjs";

/** To Python, and by the protocol between JavaScript libraries: functions that give, take and drop. */
const OWNERS = {
  Python: ({ bridge }) => ({
    give: (x) => bridge.toPython(x),
    take: (value) => bridge.tensor(value),
    drop(value) {
      value.release();
      value.destroy();
    },
  }),
  protocol: () => ({
    give: (x) => ({ [EXCHANGE]: (request) => x[EXCHANGE](request) }),
    take,
    drop() {},
  }),
};

/** A row for these owners; `prepare(context)`: what they need, and their device. */
export function handoverTo(owners, prepare = (context) => context) {
  return {
    path: "handover",
    layouts: Object.keys(owners),
    sizes: [4 * 2 ** 20],
    async make(context, bytes, layout) {
      const prepared = await prepare(context);
      const { device } = prepared;
      const { give, take, drop } = owners[layout](prepared);
      const expected = Float32Array.from({ length: bytes / 4 }, (_, i) => i % 1000);
      const { keep } = context;
      const buffer = keep(makeBuffer(device, bytes, TENSOR_USAGE | USAGE.VERTEX));
      device.queue.writeBuffer(buffer, 0, expected);
      const options = { device, shape: [bytes / 4], dtype: "float32" };
      const tensor = keep(Tensor.fromGPUBuffer(buffer, options));
      const staging = keep(makeStaging(device, bytes));
      return {
        ways: {
          "dlpack-web"() {
            const value = give(tensor);
            const back = take(value);
            const found = back.buffer;
            back.release();
            drop(value);
            return found;
          },
          async "through the CPU: mapAsync, slice, writeBuffer"() {
            const copy = await readBuffers(device, [buffer], staging, (range) => range.slice());
            const fresh = makeBuffer(device, bytes);
            device.queue.writeBuffer(fresh, 0, copy);
            return fresh;
          },
        },
        check: (found, name) =>
          name === "dlpack-web" ? found === buffer : holds(device, found, expected),
        free: (found) => found !== buffer && found.destroy(),
      };
    },
  };
}

export const handover = handoverTo(OWNERS);

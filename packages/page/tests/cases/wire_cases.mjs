// Tensors that arrive on a GPU, piece by piece, and that leave one.
import { joined, Wire } from "/packages-js/page/wire/index.js";
import { equal, ok, throws } from "/tests/browser/cases/js/expect.mjs";

const PIECE = 1 << 16;

/** Two ends, the second one's tensors on a device, and what carries frames until `done` settles. */
async function world({ library }, options) {
  const device = await library.webgpu.requestDevice();
  const before = library.liveTensors();
  const ends = [];
  const send = (to) => (header, payload) => {
    const frame = joined(header, payload);
    queueMicrotask(() => ends[to].receive(frame));
  };
  ends.push(new Wire({ send: send(1), piece: PIECE }));
  ends.push(new Wire({ send: send(0), piece: PIECE, device, ...options }));
  ends[0].connect();
  const close = (...tensors) => {
    for (const end of ends) end.close();
    for (const tensor of tensors) tensor.release();
    equal(library.liveTensors(), before, "tensors");
  };
  return { ...library, device, one: ends[0], other: ends[1], close };
}

export async function tensors_arrive_on_the_gpu(context) {
  const { Tensor, one, other, device, close } = await world(context);
  const array = Float32Array.from({ length: 100_000 }, (_, i) => i);
  const host = Tensor.fromTypedArray(array, { shape: [1000, 100] });
  const remote = one.send("x", host);
  const there = await other.get("x");
  equal(there.device.gpu === device, true);
  equal([there.dtype, ...there.shape], ["float32", 1000, 100]);
  await remote.slice([10, 11]).write(new Float32Array(100).fill(-1));
  array.fill(-1, 1000, 1100);
  const read = await there.read();
  ok(
    read.every((value, i) => value === array[i]),
    "elements",
  );
  await remote.ready;
  close(host);
}

export async function parts_of_a_word_are_refused(context) {
  const { Tensor, one, other, close } = await world(context);
  const host = Tensor.from(Uint8Array.of(1, 2, 3, 4, 5, 6, 7));
  const remote = one.send("x", host);
  equal([...(await (await other.get("x")).read())], [1, 2, 3, 4, 5, 6, 7]);
  await remote.slice([4, 7]).write(Uint8Array.of(8, 9, 10));
  equal([...(await (await other.get("x")).read())], [1, 2, 3, 4, 8, 9, 10]);
  await throws(
    () => remote.slice([1, 2]).write(Uint8Array.of(0)),
    "UnsupportedError",
    /whole words/,
  );
  close(host);
}

export async function tensors_on_a_gpu_are_sent_in_pieces(context) {
  const { Tensor, one, other, device, close } = await world(context, { device: undefined });
  const array = Float32Array.from({ length: 60_000 }, (_, i) => i);
  const host = Tensor.from(array);
  const gpu = host.to(device);
  const remote = one.send("x", gpu);
  await remote.ready;
  const there = await other.get("x");
  ok(
    there.data.every((value, i) => value === array[i]),
    "elements",
  );
  close(host, gpu);
}

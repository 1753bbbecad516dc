// Files to the GPU and to the CPU, from where a page has them. What servers do wrong is in
// tests/files/servers.json and tests/js/open/file_ranges.test.mjs.
import { open, save, TensorFile } from "/js/open/index.js";
import { equal, ok, Skip, throws } from "./expect.mjs";
import { deviceOf, keep } from "./gpu.mjs";

const made = (name, options) => `/made/${name}?${new URLSearchParams(options)}`;

/** Of all devices: other cases have theirs. */
function statsOf({ library }) {
  const rows = library.webgpu.stats();
  const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
  return { up: sum("up"), buffers: sum("buffers") };
}

/** Whether element i is i + first, of a GPU tensor, read piece by piece. */
async function counts(tensor, first = 0, step = 1 << 20) {
  for (let at = 0; at < tensor.size; at += step) {
    const part = tensor.slice([at, at + step]);
    const values = await part.read();
    part.release();
    for (let i = 0; i < values.length; i++) {
      if (values[i] !== at + i + first) throw new Error(`element ${at + i} is ${values[i]}`);
    }
  }
}

export async function a_url_to_the_gpu(context) {
  const device = await deviceOf(context);
  for (const options of [{}, { ranges: 0 }, { length: 0 }, { ranges: 0, length: 0 }]) {
    for (const count of [0, 1, 5, 300_001]) {
      const before = statsOf(context).up;
      const tensor = await open(made("a.npy", { ...options, count }), { device });
      equal([tensor.dtype, tensor.shape, tensor.device.gpu === device], ["uint32", [count], true]);
      equal(statsOf(context).up - before, 4 * count);
      await counts(tensor);
      tensor.release();
    }
  }
}

export async function a_connection_that_breaks(context) {
  const device = await deviceOf(context);
  const count = 500_000;
  const url = made("broken.npy", { count, cut: 700_001, times: 2, run: Math.random() });
  const told = [];
  const tensor = await open(url, {
    device,
    progress: (loaded, total) => told.push([loaded, total]),
  });
  await counts(tensor);
  tensor.release();
  equal(told.at(-1), [4 * count, 4 * count]);
  ok(
    told.every(([loaded], i) => i === 0 || loaded > told[i - 1][0]),
    "progress goes on",
  );
  const asked = await (await fetch(`/made/x.asked?${new URLSearchParams({ of: url })}`)).text();
  equal(asked, "3");
  const changing = made("new.npy", { count, cut: 700_001, etag: "new", run: Math.random() });
  const { buffers } = statsOf(context);
  await throws(() => open(changing, { device }), "UnsupportedError", /changed while it was read/);
  const slow = made("s.npy", { count, cut: 900_001, times: 100, run: Math.random() });
  // Each answer gets on, though a browser may drop what came just before the connection broke.
  const whole = await open(slow, { device, retries: 20 });
  await counts(whole);
  whole.release();
  const never = made("b.npy", { count, cut: 0, times: 100, run: Math.random() });
  await throws(
    () => open(never, { device, retries: 1 }),
    "DLPackError",
    /b\.npy could not be read, after 2 tries/,
  );
  const noRanges = made("c.npy", { count, cut: 700_001, ranges: 0, run: Math.random() });
  const again = await open(noRanges, { device }); // all of it once more
  await counts(again);
  again.release();
  equal(statsOf(context).buffers, buffers, "nothing half-made");
}

export async function what_a_page_has(context) {
  const device = await deviceOf(context);
  const bytes = new Uint8Array(await (await fetch(made("a.npy", { count: 1000 }))).arrayBuffer());
  const blob = new Blob([bytes.subarray(0, 77), bytes.subarray(77)]);
  const sources = {
    blob,
    file: new File([blob], "a.npy"),
    response: await fetch(made("a.npy", { count: 1000 })),
    stream: blob.stream(),
    buffer: bytes.buffer.slice(0),
    array: bytes,
    view: new DataView(bytes.buffer),
    url: new URL(made("a.npy", { count: 1000 }), location.href),
  };
  for (const [name, source] of Object.entries(sources)) {
    const tensor = await open(source, { device });
    equal(tensor.shape, [1000], name);
    await counts(tensor);
    tensor.release();
  }
  for (const source of [null, 3, {}, [], () => {}, device]) {
    await throws(() => open(source), "TypeError", /open\(\) takes a URL/);
  }
}

export async function files_of_the_origin(context) {
  const device = await deviceOf(context);
  if (!navigator.storage?.getDirectory) throw new Skip("no file system of the origin here");
  const folder = await navigator.storage.getDirectory();
  const handle = await folder.getFileHandle("weights.safetensors", { create: true });
  if (!handle.createWritable) throw new Skip("files of the origin cannot be written here");
  const tensor = await open(made("a.npy", { count: 3_000_000 }), { device });
  const odd = context.library.Tensor.fromTypedArray(Uint8Array.of(1, 2, 3));
  await save({ tensor, odd }, { to: handle });
  const stop = new AbortController();
  stop.abort(new Error("enough"));
  await throws(() => save({ odd }, { to: handle, signal: stop.signal }), "Error", /enough/);
  const failing = {
    [Symbol.iterator]: () =>
      [
        ["a", tensor],
        ["b", {}],
      ].values(),
  };
  await throws(() => save(failing, { to: handle }), "TypeError", /not a tensor/);
  tensor.release();
  const file = await open(handle, { device });
  equal([...file.names], ["tensor", "odd"]);
  const back = await file.get("tensor");
  await counts(back);
  const three = await file.get("odd");
  equal([...(await three.read())], [1, 2, 3]);
  for (const each of [back, three, odd]) each.release();
  file.close();
  await folder.removeEntry("weights.safetensors");
}

/** A new file of the origin with such bytes: its handle, how to write it again and to remove it. */
async function ofTheOrigin(bytes) {
  if (!navigator.storage?.getDirectory) throw new Skip("no file system of the origin here");
  const folder = await navigator.storage.getDirectory();
  const name = `changing-${Math.random()}.safetensors`;
  const handle = await folder.getFileHandle(name, { create: true });
  if (!handle.createWritable) throw new Skip("files of the origin cannot be written here");
  const write = async (content) => {
    const writable = await handle.createWritable();
    await writable.write(content);
    await writable.close();
  };
  await write(bytes);
  return { handle, write, remove: () => folder.removeEntry(name) };
}

export async function files_of_the_origin_that_change(context) {
  const device = await deviceOf(context);
  const { buffers } = statsOf(context);
  const url = made("m.safetensors", { count: 500_000, tensors: 2 });
  const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
  const changes = {
    "other elements": ({ write }) => write(bytes.map((byte) => byte ^ 1)),
    shorter: ({ write }) => write(bytes.subarray(0, 1000)),
    longer: ({ write }) => write(new Blob([bytes, bytes])),
    gone: ({ remove }) => remove(),
  };
  for (const [what, change] of Object.entries(changes)) {
    for (const options of [{ device }, {}]) {
      for (const given of ["handle", "file"]) {
        const origin = await ofTheOrigin(bytes);
        const { handle } = origin;
        const file = await open(given === "handle" ? handle : await handle.getFile(), options);
        (await file.get("0")).release();
        await change(origin);
        for (const name of ["0", "1"]) {
          const message = /changing.* cannot be read .*it changed since it was opened, or is gone/;
          await throws(() => file.get(name), "UnsupportedError", message);
        }
        file.close();
        if (what === "gone") {
          await throws(() => open(handle, options), "UnsupportedError", /cannot be opened/);
        } else {
          await origin.remove();
        }
      }
    }
  }
  equal(statsOf(context).buffers, buffers, "nothing half-made");
}

export async function several_tensors(context) {
  const device = await deviceOf(context);
  for (const options of [{}, { ranges: 0 }]) {
    const file = await open(made("m.safetensors", { ...options, count: 1001, tensors: 5 }), {
      device,
    });
    ok(file instanceof TensorFile, "a TensorFile");
    equal([file.size, [...file.names], file.has("5")], [5, ["0", "1", "2", "3", "4"], false]);
    equal(file.info("3"), { dtype: "uint32", shape: [1001], nbytes: 4004 });
    const all = await Promise.all(["4", "0", "2"].map((name) => file.get(name)));
    for (const [i, first] of [4, 0, 2].entries()) await counts(all[i], 1001 * first);
    let next = 0;
    for await (const [name, tensor] of file) {
      equal(name, `${next}`);
      await counts(tensor, 1001 * next++);
      tensor.release();
    }
    const host = await file.get("1", { device: undefined });
    equal([`${host.device}`, host.data[0]], ["cpu", 1001]);
    for (const each of [...all, host]) each.release();
    await throws(() => file.get("5"), "RangeError", /has no tensor "5"; it has 0, 1, 2/);
    file.close();
    file.close();
    await throws(() => file.get("1"), "ReleasedError", /was closed/);
  }
}

export async function a_stream_is_read_once(context) {
  const device = await deviceOf(context);
  const url = made("m.safetensors", { count: 1000, tensors: 3 });
  const file = await open(await fetch(url), { device });
  const second = await file.get("1");
  await counts(second, 1000);
  await throws(() => file.get("0"), "DLPackError", /only once.*order of names/);
  const last = await file.get("2");
  await counts(last, 2000);
  for (const each of [second, last]) each.release();
  file.close();
}

export async function elements_are_converted_on_the_way(context) {
  const device = await deviceOf(context);
  const { Tensor } = context.library;
  const wide = Float64Array.from({ length: 1_000_003 }, (_, i) => i / 3);
  const source = Tensor.fromTypedArray(wide, { shape: [1_000_003] });
  const blob = await save(source);
  for (const where of [{ device }, {}]) {
    const narrow = await open(blob, { ...where, dtype: "float32" });
    const values = await narrow.read();
    ok(
      values.every((value, i) => value === Math.fround(wide[i])),
      "rounded",
    );
    narrow.release();
    await throws(
      () => open(blob, { ...where, dtype: "int32" }),
      "UnsupportedError",
      /cannot become/,
    );
  }
  source.release();
  const long = Tensor.fromTypedArray(new BigInt64Array(300_000));
  long.data[299_999] = 2n ** 31n;
  const longs = await save(long);
  long.release();
  const before = statsOf(context).buffers;
  const fails = () => open(longs, { device, dtype: "int32" });
  await throws(fails, "UnsupportedError", /2147483648, which int32 cannot hold/);
  equal(statsOf(context).buffers, before);
}

export async function columns_are_views(context) {
  const device = await deviceOf(context);
  const { Tensor } = context.library;
  const host = keep(Tensor.fromTypedArray(Float32Array.of(1, 2, 3, 4, 5, 6), { shape: [3, 2] }));
  const turned = keep(host.permute([1, 0]));
  const blob = await save(turned);
  const tensor = keep(await open(blob, { device }));
  equal(
    [tensor.shape, tensor.strides],
    [
      [2, 3],
      [1, 2],
    ],
  );
  equal([...(await tensor.read())], [1, 3, 5, 2, 4, 6]);
  const again = await save(tensor); // from the GPU
  equal(new Uint8Array(await again.arrayBuffer()), new Uint8Array(await blob.arrayBuffer()));
}

export async function more_than_the_device_allows(context) {
  const { library } = context;
  const small = await library.webgpu.requestDevice({ maxBufferSize: 2 ** 28 });
  for (const [device, way] of [
    [await deviceOf(context), /no device of that has more/],
    [small, /requestDevice\(\{ maxBufferSize: \d+ \}\)/],
  ]) {
    const url = made("large.npy", { count: Math.ceil(device.limits.maxBufferSize / 4) + 4 });
    await throws(() => open(url, { device }), "UnsupportedError", way);
  }
}

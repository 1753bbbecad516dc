// What moves, as tensors, from JavaScript; each function is a test (hosts/harness.mjs).
import { context2d, equal, isFirefox, ok, Skip, throws } from "./expect.mjs";
import { gpu } from "./gpu.mjs";

const [WIDTH, HEIGHT] = [32, 16];

/** A canvas that is of one colour, which `paint` changes. */
function canvasOf(level = 0) {
  const canvas = Object.assign(document.createElement("canvas"), { width: WIDTH, height: HEIGHT });
  const context = context2d(canvas);
  const paint = (value) => {
    context.fillStyle = `rgb(${value} ${value} ${value})`;
    context.fillRect(0, 0, canvas.width, canvas.height);
  };
  paint(level);
  return { canvas, paint };
}

/** Paints it anew all the time, as streams of canvases want it; returns what ends that. */
function moving({ paint }) {
  let level = 0;
  const timer = setInterval(() => paint(level++ % 256), 10);
  return () => clearInterval(timer);
}

/** Calls `owner[name]` by way of `instead` while `use` runs. */
async function replaced(owner, name, instead, use) {
  const original = owner[name];
  owner[name] = function (...args) {
    return instead.call(this, original, args);
  };
  try {
    await use();
  } finally {
    owner[name] = original;
  }
}

/** A guard against what never comes; frames of a busy machine may take long. */
const soon = (promise, ms = 120_000) =>
  Promise.race([
    promise,
    new Promise((_, reject) => setTimeout(() => reject(new Error("it waits for ever")), ms)),
  ]);

export async function canvases_may_change_their_size(context) {
  const { device, frames } = await gpu(context);
  const { canvas, paint } = canvasOf();
  const shapes = [];
  for await (const image of frames(canvas, { device })) {
    shapes.push(image.shape);
    if (shapes.length === 3) break;
    canvas.width += 3;
    paint(1);
  }
  equal(shapes, [
    [HEIGHT, WIDTH, 4],
    [HEIGHT, WIDTH + 3, 4],
    [HEIGHT, WIDTH + 6, 4],
  ]);
}

const INVERT = `
  @group(0) @binding(0) var<storage, read> image: array<vec4f>;
  @group(0) @binding(1) var<storage, read_write> result: array<vec4f>;
  @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= arrayLength(&result)) { return; }
    result[id.x] = vec4f(1 - image[id.x].rgb, 1);
  }`;

export async function frames_go_through_a_kernel_to_a_canvas_and_nothing_is_made_anew(context) {
  const { device, empty, frames, Kernel, toCanvas } = await gpu(context);
  const { counters } = context;
  const made = [];
  const count = (original, args) => {
    made.push(original.name);
    return original.apply(device, args);
  };
  const kernel = new Kernel(device, INVERT);
  const { canvas } = canvasOf(255);
  const target = document.createElement("canvas");
  const result = empty([HEIGHT, WIDTH, 4]);
  const source = frames(canvas, { device, dtype: "float32" });
  let counts;
  const loop = async () => {
    for await (const image of source) {
      kernel.run([image, result]);
      await toCanvas(result, target);
      const { frames: done, moved } = source.stats;
      if (done === 5) {
        made.length = 0;
        counters.start();
      }
      if (done > 5) equal(moved, 0, "bytes moved");
      if (done === 25) {
        counts = counters.stop();
        break;
      }
    }
    equal(made, [], "made in 20 frames");
  };
  await replaced(device, "createBuffer", count, () =>
    replaced(device, "createTexture", count, loop),
  );
  equal(counts, { copies: 0, copied_bytes: 0, gpu_copies: 0, gpu_bytes: 0, map_async: 0 });
  const [red] = await result.read();
  equal(red, 0);
  ok(source.stats.late <= 1, "one frame late at most");
  ok(source.stats.fps > 0 && source.stats.ms > 0, "it says how fast it is");
}

export async function no_frame_is_taken_while_the_gpu_works_on_two(context) {
  const { device, frames } = await gpu(context);
  const waiting = [];
  const slow = () => new Promise((done) => waiting.push(done));
  await replaced(device.queue, "onSubmittedWorkDone", slow, async () => {
    const source = frames(canvasOf().canvas, { device });
    await source.next();
    await source.next(); // the first is still worked on
    let taken = false;
    const third = source.next().then(() => {
      taken = true;
    });
    while (waiting.length < 2) await new Promise((done) => setTimeout(done, 10));
    await new Promise((done) => setTimeout(done, 200)); // in which it must not come
    equal([taken, waiting.length, source.stats.late], [false, 2, 1]);
    waiting.shift()();
    await soon(third);
    source.stop();
  });
}

export async function calls_that_do_not_wait_come_in_order(context) {
  const { device, frames } = await gpu(context);
  const source = frames(canvasOf().canvas, { device });
  const [first, second] = await Promise.all([source.next(), source.next()]);
  ok(first.value.released && !second.value.released, "the first is released by the second");
  const [, done] = await Promise.all([source.return(), source.next()]);
  equal([done.done, second.value.released], [true, true]);
}

export async function a_hidden_tab_has_no_frames_and_it_goes_on_afterwards(context) {
  const { device, frames } = await gpu(context);
  const source = frames(canvasOf().canvas, { device });
  await source.next();
  await source.next();
  const kept = [];
  let next;
  await replaced(
    globalThis,
    "requestAnimationFrame",
    (_, [then]) => kept.push(then), // hidden: nothing is called
    async () => {
      await source.next(); // of what was shown before
      next = source.next();
      await new Promise((done) => setTimeout(done, 100));
      equal([kept.length, source.stats.frames], [1, 3]);
    },
  );
  for (const then of kept) then();
  await soon(next);
  equal(source.stats.frames, 4);
  source.stop();
}

export async function a_track_gives_its_pictures_and_ends_the_loop_with_it(context) {
  const { device, frames } = await gpu(context);
  const painted = canvasOf();
  if (!painted.canvas.captureStream) throw new Skip("canvases make no streams here");
  const stop = moving(painted);
  const stream = painted.canvas.captureStream(60);
  const [track] = stream.getVideoTracks();
  for (const source of [track, stream]) {
    const found = frames(source, { device });
    let count = 0;
    for await (const image of soonEach(found)) {
      equal(image.shape, [HEIGHT, WIDTH, 4]);
      if (++count === 3) break;
    }
  }
  equal(track.readyState, "live", "the track stays the caller's");
  const last = frames(track, { device });
  await soon(last.next());
  const next = (async () => {
    let result = await last.next();
    while (!result.done) result = await last.next();
    return result;
  })();
  const video = Object.assign(document.createElement("video"), { srcObject: stream });
  const shown = frames(video, { device });
  const nothing = shown.next();
  track.stop(); // says nothing, and no more pictures come
  track.dispatchEvent(new Event("ended")); // as when a camera is unplugged
  equal(await soon(next), { done: true });
  // Firefox's tracks are deaf once they were stopped: there the own <video> tells, which plays.
  if (isFirefox) shown.stop();
  await soon(nothing);
  equal(await soon(shown.next()), { done: true });
  stop();
  equal(await frames(track, { device }).next(), { done: true });
}

/** Each of them, or an error where none comes. */
async function* soonEach(frames) {
  try {
    for (;;) {
      const { done, value } = await soon(frames.next());
      if (done) return;
      yield value;
    }
  } finally {
    frames.stop();
  }
}

export async function a_kernel_that_does_not_compile_is_told_where_its_result_is_drawn(context) {
  const { device, empty, frames, Kernel, toCanvas } = await gpu(context);
  const kernel = new Kernel(device, INVERT.replace("vec4f(1 -", "vec4f(wrong -"));
  const result = empty([HEIGHT, WIDTH, 4]);
  const canvas = document.createElement("canvas");
  const loop = async () => {
    for await (const image of frames(canvasOf().canvas, { device, dtype: "float32" })) {
      kernel.run([image, result]);
      await toCanvas(result, canvas);
    }
  };
  const { line } = await throws(() => soon(loop()), "KernelError", /wrong/);
  equal(line, 6);
}

export async function what_cannot_be_a_source_is_refused(context) {
  const { device, frames } = await gpu(context);
  const { canvas } = canvasOf();
  const refused = /frames takes a canvas.*<video>/;
  for (const source of [null, undefined, "film.webm", new Uint8Array(4)]) {
    await throws(() => frames(source, { device }).next(), "TypeError", refused);
  }
  await throws(() => frames(canvas, {}), "TypeError", /GPUDevice is needed/);
  await throws(() => frames(canvas), "TypeError", /GPUDevice is needed/);
  canvas.width = 0;
  await throws(() => frames(canvas, { device }).next(), "UnsupportedError", /no pixels/);
}

export async function a_file_that_is_no_video_says_so(context) {
  const { device, frames } = await gpu(context);
  const video = document.createElement("video");
  const source = frames(video, { device });
  video.src = "/tests/dtypes.json";
  await throws(() => soon(source.next()), "UnsupportedError", /cannot be played/);
  // One that failed before.
  await throws(() => frames(video, { device }).next(), "UnsupportedError", /cannot be played/);
}

// The frames of a source, one by one: when each is taken and released, and how a series ends. The sources and
// the GPU are stand-ins; tests/browser has real canvases, videos and cameras.
import assert from "node:assert/strict";
import { test } from "node:test";
import { liveTensors, webgpu } from "../../../js/dist/index.js";
import { loggedDevice } from "../fake_device.mjs";
import "../nothing_leaks.mjs";

/** A GPU that takes pictures. */
function fakeGPU() {
  const made = loggedDevice();
  made.gpu.queue.copyExternalImageToTexture = ({ source }) => {
    const { gone: name } = source;
    if (name) throw Object.assign(new Error("no picture"), { name });
  };
  return made;
}

const picture = (fields) => ({
  [Symbol.toStringTag]: "ImageData",
  width: 3,
  height: 2,
  data: new Uint8ClampedArray(24),
  ...fields,
});

class Video extends EventTarget {
  get [Symbol.toStringTag]() {
    return "HTMLVideoElement";
  }
}

/** A <video> that shows a picture on request. */
function fakeVideo() {
  const video = Object.assign(new Video(), {
    videoWidth: 4,
    videoHeight: 2,
    srcObject: null,
    readyState: 0,
    HAVE_CURRENT_DATA: 2,
    error: null,
    asked: new Map(),
    last: 0,
    requestVideoFrameCallback(call) {
      video.asked.set(++video.last, call);
      return video.last;
    },
    cancelVideoFrameCallback: (id) => video.asked.delete(id),
    show(presentedFrames) {
      const calls = [...video.asked.values()];
      video.asked.clear();
      for (const call of calls) call(0, { presentedFrames });
    },
  });
  return video;
}

const { setTimeout, clearTimeout } = globalThis;
const timers = new Map();
// What a <video> shows may be one.
globalThis.MediaStream ??= class {};

/** Timers go off when the test says so. */
function holdTimers() {
  globalThis.setTimeout = (call, ms) => {
    timers.set(timers.size + 1, { call, ms });
    return timers.size;
  };
  globalThis.clearTimeout = (id) => timers.delete(id);
}
const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

test("each frame is a tensor until the next is asked for", async () => {
  const { gpu, log } = fakeGPU();
  const before = liveTensors();
  const frames = webgpu.frames(picture(), { device: gpu, dtype: "float32", channels: 3 });
  const first = await frames.next();
  assert.equal(first.done, false);
  assert.deepEqual([first.value.shape, first.value.dtype], [[2, 3, 3], "float32"]);
  assert.equal(liveTensors(), before + 1);
  const second = await frames.next();
  assert.equal(first.value.released, true);
  assert.equal(second.value.released, false);
  assert.equal(liveTensors(), before + 1);
  assert.deepEqual(
    [log.dispatched, log.bound, log.textures.length],
    [
      [
        [1, 1],
        [1, 1],
      ],
      [2, 2],
      1,
    ],
  );
  assert.equal(frames.stats.frames, 2);
  frames.stop();
  assert.equal(second.value.released, true);
  assert.deepEqual(await frames.next(), { done: true, value: undefined });
  assert.equal(liveTensors(), before);
  assert.equal(log.textures[0].destroyed, 1);
});

test("without a display there are sixty frames a second at most", async () => {
  const { gpu } = fakeGPU();
  const frames = webgpu.frames(picture(), { device: gpu });
  holdTimers();
  await frames.next();
  const waits = [...timers.values()].map(({ ms }) => ms);
  Object.assign(globalThis, { setTimeout, clearTimeout });
  frames.stop();
  const short = waits.filter((ms) => ms < 5000); // the pool's timer is longer
  assert.ok(short.length > 0 && short.every((ms) => Math.abs(ms - 1000 / 60) < 1), `${waits}`);
});

test("a video gives each picture once, and counts those that were skipped", async () => {
  const { gpu } = fakeGPU();
  const video = fakeVideo();
  const frames = webgpu.frames(video, { device: gpu });
  let given = 0;
  const ask = async () => {
    const { done } = await frames.next();
    if (!done) given++;
  };
  let asked = ask();
  await soon();
  assert.equal(given, 0);
  video.show(1);
  await asked;
  assert.equal(given, 1);
  asked = ask();
  await soon();
  assert.equal(given, 1);
  video.show(5);
  await asked;
  assert.deepEqual([given, frames.stats.skipped, frames.stats.frames], [2, 3, 2]);
  video.dispatchEvent(new Event("ended"));
  assert.deepEqual(await frames.next(), { done: true, value: undefined });
  assert.equal(video.asked.size, 0);
});

/** The name of the error for a picture that was there before. */
const lost = "OperationError";

test("pictures that are gone are waited for, and thirty in a row are an error", async () => {
  const { gpu } = fakeGPU();
  const video = fakeVideo();
  const frames = webgpu.frames(video, { device: gpu });
  const show = async (times, gone) => {
    video.gone = gone;
    for (let i = 0; i < times; i++) {
      video.show(i);
      await soon();
    }
  };
  const first = frames.next();
  await soon();
  await show(29, lost);
  await show(1);
  assert.equal((await first).done, false);
  const second = frames.next(); // counted from 0 again
  await soon();
  await show(29, lost);
  await show(1);
  assert.equal((await second).done, false);
  const third = frames.next();
  third.catch(() => {});
  await soon();
  await show(30, lost);
  await assert.rejects(third, { name: "UnsupportedError", message: /no picture/ });
  assert.deepEqual(await frames.next(), { done: true, value: undefined });
  const read = []; // by what still listens to the video
  const ended = Object.defineProperty(new Event("ended"), "target", {
    get: () => read.push("ended"),
  });
  Object.defineProperty(video, "error", { configurable: true, get: () => read.push("error") });
  for (const event of [ended, new Event("error")]) video.dispatchEvent(event);
  assert.deepEqual(read, []);
  Object.defineProperty(video, "error", { value: null });
  // What is refused for another reason is not asked for again.
  const other = webgpu.frames(video, { device: gpu });
  const refused = other.next();
  refused.catch(() => {});
  await soon();
  await show(1, "SecurityError");
  await assert.rejects(refused, { name: "UnsupportedError", message: /no picture/ });
});

test("an error of a canvas is thrown at once, and ends it", async () => {
  const { gpu } = fakeGPU();
  let tries = 0;
  const canvas = {
    [Symbol.toStringTag]: "HTMLCanvasElement",
    width: 2,
    height: 2,
    get gone() {
      tries++;
      return lost;
    },
  };
  const frames = webgpu.frames(canvas, { device: gpu });
  await assert.rejects(frames.next(), { name: "UnsupportedError", message: /no picture/ });
  assert.equal(tries, 1);
  assert.equal((await frames.next()).done, true);
});

test("abort and a lost device end a wait with their reasons", async () => {
  const { gpu, log } = fakeGPU();
  const stop = new AbortController();
  const frames = webgpu.frames(fakeVideo(), { device: gpu, signal: stop.signal });
  const waiting = frames.next();
  await soon();
  stop.abort(new Error("enough"));
  await assert.rejects(waiting, { message: "enough" });
  assert.equal((await frames.next()).done, true);
  const aborted = webgpu.frames(fakeVideo(), { device: gpu, signal: stop.signal });
  await assert.rejects(aborted.next(), { message: "enough" });
  const other = webgpu.frames(fakeVideo(), { device: gpu });
  const pending = other.next();
  await soon();
  log.lose();
  await assert.rejects(pending, { name: "DeviceLostError", message: /unplugged/ });
});

test("a device that is lost between two frames ends the next one, and the loop", async () => {
  const { gpu, log } = fakeGPU();
  const frames = webgpu.frames(picture(), { device: gpu });
  await frames.next();
  log.lose();
  await gpu.lost;
  await assert.rejects(frames.next(), { name: "DeviceLostError", message: /unplugged/ });
  assert.equal((await frames.next()).done, true);
});

test("a loop ends with break, and its last frame with it", async () => {
  const { gpu } = fakeGPU();
  let count = 0;
  for await (const image of webgpu.frames(picture(), { device: gpu })) {
    assert.equal(image.released, false);
    if (++count === 3) break;
  }
});

test("what happens before the loop is loaded counts", async () => {
  const { gpu } = fakeGPU();
  const stopped = fakeVideo();
  const frames = webgpu.frames(stopped, { device: gpu });
  assert.deepEqual(frames.stats, {
    frames: 0,
    skipped: 0,
    fps: 0,
    ms: 0,
    late: 0,
    bytes: 0,
    moved: 0,
  });
  frames.stop();
  assert.deepEqual(await frames.next(), { done: true, value: undefined });
  assert.equal(stopped.asked.size, 0);
  const over = fakeVideo();
  const ended = webgpu.frames(over, { device: gpu });
  over.ended = true;
  over.dispatchEvent(new Event("ended"));
  assert.deepEqual(await ended.next(), { done: true, value: undefined });
  const again = webgpu.frames(over, { device: gpu }); // it may be played once more
  const replayed = again.next();
  await soon();
  over.show(1);
  assert.equal((await replayed).done, false);
  await again.return();
  const broken = fakeVideo();
  const failed = webgpu.frames(broken, { device: gpu });
  broken.error = { message: "no codec" };
  broken.dispatchEvent(new Event("error"));
  await assert.rejects(failed.next(), { name: "UnsupportedError", message: /no codec/ });
  const shown = fakeVideo();
  const one = webgpu.frames(shown, { device: gpu });
  shown.readyState = shown.HAVE_CURRENT_DATA;
  shown.show(1);
  assert.equal((await one.next()).done, false);
  await one.return();
  const stop = new AbortController();
  const aborted = webgpu.frames(fakeVideo(), { device: gpu, signal: stop.signal });
  stop.abort(new Error("enough"));
  await assert.rejects(aborted.next(), { message: "enough" });
});

test("options that cannot be are named at once, sources by the first request", async () => {
  const { gpu } = fakeGPU();
  const refused = (source, options) => {
    try {
      const frames = webgpu.frames(source, { device: gpu, ...options });
      return frames.next().catch(({ name, message }) => [name, message]);
    } catch (error) {
      return [error.name, error.message];
    }
  };
  const stream = (tracks) => ({
    [Symbol.toStringTag]: "CanvasCaptureMediaStream",
    getVideoTracks: () => tracks,
  });
  const track = { [Symbol.toStringTag]: "CanvasCaptureMediaStreamTrack", kind: "video" };
  const page =
    "a track needs the <video> of a page: in a worker pass fromImage the VideoFrames of " +
    "a MediaStreamTrackProcessor";
  assert.deepEqual(await refused(stream([])), [
    "UnsupportedError",
    "frames needs a video track, and the MediaStream has none",
  ]);
  assert.deepEqual(await refused(stream([track])), ["UnsupportedError", page]);
  assert.deepEqual(await refused(track), ["UnsupportedError", page]);
  assert.deepEqual(refused(picture(), { channels: 2 }), [
    "RangeError",
    "channels must be 4 (with alpha) or 3 (without), not 2",
  ]);
  assert.deepEqual(refused(picture(), { dtype: "int8" })[0], "UnsupportedError");
});

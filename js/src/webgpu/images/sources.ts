/** Moving sources of a page, and their updates, for frameloop.ts. */
import { tagOf, UnsupportedError } from "../../core/errors.js";
import type { HTMLVideoElement, MediaStream, MediaStreamTrack } from "../../core/globals.js";
import type { Tensor } from "../../core/tensor.js";
import type { ImageSource } from "./images.js";

/**
 * Sources of `webgpu.frames`: those of `fromImage` that change over time, and in a page also a
 * video track, or a stream that has one (a camera's, a screen's, a canvas's).
 */
export type FrameSource = ImageSource | MediaStream | MediaStreamTrack;

/** Statistics of `webgpu.frames`. */
export interface FrameStats {
  /** Number of frames returned. */
  frames: number;
  /** Pictures that a video showed but that were skipped, since the one before took too long. */
  skipped: number;
  /** Frames per second, over the last second. */
  fps: number;
  /** Milliseconds from taking a frame until the GPU had done all that was submitted with it. */
  ms: number;
  /** The most frames pending on the GPU when another one was taken; 1 at most. */
  late: number;
  /** Bytes of a frame. */
  bytes: number;
  /** Bytes of tensors that this device uploaded and read back during the last frame. */
  moved: number;
}

/** The frames of a source, in order; see `webgpu.frames`. */
export interface Frames extends AsyncIterableIterator<Tensor> {
  /** Ends it without an error, also while a frame is pending. */
  stop(): void;
  readonly stats: FrameStats;
  return(): Promise<IteratorResult<Tensor>>;
}

/**
 * The source for a caller's argument, which `wasOver` if it was a video at its end, and may be played
 * again; UnsupportedError if it cannot be one.
 */
export function sourceOf(given: FrameSource, wasOver: boolean, listener: Listener): Source {
  const kind = tagOf(given).slice(8, -1);
  if (kind === "HTMLVideoElement") {
    return videoSource(given as HTMLVideoElement, wasOver, listener);
  }
  // A canvas's have names of their own in some browsers: CanvasCaptureMediaStream, …Track.
  if (/MediaStream$/.test(kind)) {
    const [track] = (given as MediaStream).getVideoTracks();
    if (track) return trackSource(track, listener);
    throw new UnsupportedError("frames needs a video track, and the MediaStream has none");
  }
  if (/MediaStreamTrack$/.test(kind)) return trackSource(given as MediaStreamTrack, listener);
  return drawnSource(given as ImageSource, listener);
}

/** What a source reports. */
export interface Listener {
  /** Called when there is a new picture. */
  wake(): void;
  /** Called when nothing more will come, with the error if there is one. */
  end(error?: unknown): void;
}

/** A source that shows a series of pictures. */
export interface Source {
  /** Whether it shows a new picture. */
  fresh: boolean;
  /** Skipped pictures. */
  skipped: number;
  /** Whether its picture may be gone before it is taken. */
  readonly mayLose: boolean;
  readonly image: ImageSource;
  start(): void;
  /** Reports the next new picture, once. */
  watch(): void;
  stop(): void;
}

/** A canvas, say: new with each frame of the display, which hidden tabs have none of. */
function drawnSource(image: ImageSource, listener: Listener): Source {
  let asked: number | undefined;
  const source: Source = {
    image,
    mayLose: false,
    skipped: 0,
    fresh: true,
    start() {},
    watch() {
      asked = request(() => {
        source.fresh = true;
        listener.wake();
      });
    },
    stop() {
      if (asked !== undefined) cancel(asked);
    },
  };
  return source;
}

/** The interval without a display. */
const INTERVAL_MS = 1000 / 60;
const page = globalThis as Partial<typeof globalThis>;

function request(then: () => void): number {
  if (page.requestAnimationFrame) return page.requestAnimationFrame(then);
  return setTimeout(then, INTERVAL_MS) as unknown as number;
}

function cancel(asked: number): void {
  if (page.cancelAnimationFrame) page.cancelAnimationFrame(asked);
  else clearTimeout(asked);
}

/** A <video>: new whenever it shows another picture. */
function videoSource(video: HTMLVideoElement, wasOver: boolean, listener: Listener): Source {
  let asked: number | undefined;
  let shown: number | undefined;
  const listening = new AbortController();
  const forget = () => {
    if (asked !== undefined) video.cancelVideoFrameCallback(asked);
    asked = undefined;
  };
  const source: Source = {
    image: video,
    mayLose: true,
    skipped: 0,
    fresh: false,
    start() {
      const failed = () => listener.end(unplayable(video));
      // A <video> says nothing of a camera that was unplugged; its track does.
      const tracks = video.srcObject instanceof MediaStream ? video.srcObject.getVideoTracks() : [];
      const over = () => tracks.length > 0 && tracks.every((each) => each.readyState === "ended");
      const ended = ({ target }: { target: unknown }) => {
        if (target === video || over()) listener.end();
      };
      const { signal } = listening;
      for (const each of [video, ...tracks]) each.addEventListener("ended", ended, { signal });
      video.addEventListener("error", failed, { signal });
      // A stream may report a picture before it has one; the next comes soon.
      source.fresh = !video.srcObject && video.readyState >= video.HAVE_CURRENT_DATA;
      if (video.error) failed();
      else if (over() || (video.ended && !wasOver)) listener.end();
      else source.watch();
    },
    watch() {
      forget();
      asked = video.requestVideoFrameCallback((_, { presentedFrames }) => {
        asked = undefined;
        if (shown !== undefined) source.skipped += Math.max(presentedFrames - shown - 1, 0);
        shown = presentedFrames;
        source.fresh = true;
        listener.wake();
      });
    },
    stop() {
      forget();
      listening.abort();
    },
  };
  return source;
}

function unplayable({ error, currentSrc }: HTMLVideoElement): UnsupportedError {
  const why = error?.message || `MediaError ${error?.code}`;
  return new UnsupportedError(
    `the video cannot be played (${why}): use one that this browser shows in a <video>`,
    { given: currentSrc, cause: error ?? undefined },
  );
}

/** A track, shown by a <video> of our own. */
function trackSource(track: MediaStreamTrack, listener: Listener): Source {
  if (typeof document === "undefined") {
    throw new UnsupportedError(
      "a track needs the <video> of a page: in a worker pass fromImage the " +
        "VideoFrames of a MediaStreamTrackProcessor",
    );
  }
  if (track.kind !== "video") {
    throw new UnsupportedError(`frames needs a video track, not one of kind "${track.kind}"`);
  }
  const video = document.createElement("video");
  Object.assign(video, { muted: true, playsInline: true, srcObject: new MediaStream([track]) });
  const source = videoSource(video, false, listener);
  const { start, stop } = source;
  source.start = () => {
    start();
    video.play().catch(() => {}); // ended before it began
  };
  source.stop = () => {
    stop();
    video.srcObject = null;
  };
  return source;
}

/** Moving sources of a page, and their updates, for frames.ts. */
import { tagOf, UnsupportedError } from "../core/errors.js";
import type { HTMLVideoElement, MediaStream, MediaStreamTrack } from "../core/globals.js";
import type { ImageSource } from "./images.js";

/**
 * Sources of `webgpu.frames`: those of `fromImage` that change over time, and in a page also a
 * video track, or a stream that has one (a camera's, a screen's, a canvas's).
 */
export type FrameSource = ImageSource | MediaStream | MediaStreamTrack;

/** The source for a caller's argument; TypeError or UnsupportedError if it cannot be one. */
export function sourceOf(given: FrameSource): Source {
  const kind = tagOf(given).slice(8, -1);
  if (kind === "HTMLVideoElement") return new Video(given as HTMLVideoElement);
  // A canvas's have names of their own in some browsers: CanvasCaptureMediaStream, …Track.
  if (/MediaStream$/.test(kind)) {
    const [track] = (given as MediaStream).getVideoTracks();
    if (track) return new Track(track);
    throw new UnsupportedError("frames needs a video track, and the MediaStream has none");
  }
  if (/MediaStreamTrack$/.test(kind)) {
    return new Track(given as MediaStreamTrack);
  }
  return new Drawn(given as ImageSource);
}

/** A source that shows a series of pictures. */
export abstract class Source {
  /** Whether it shows a new picture. */
  fresh = false;
  /** Skipped pictures. */
  skipped = 0;
  /** Whether its picture may be gone before it is taken. */
  readonly mayLose: boolean = false;
  abstract readonly image: ImageSource;
  #wake = () => {};

  /**
   * @param wake - called when there is a new picture
   * @param _end - called when nothing more will come, with the error if there is one
   */
  start(wake: () => void, _end: (error?: unknown) => void): void {
    this.#wake = wake;
  }

  /** Reports the next new picture, once. */
  abstract watch(): void;

  stop(): void {
    this.#wake = () => {};
  }

  protected show(): void {
    this.fresh = true;
    this.#wake();
  }
}

/** A canvas, say: new with each frame of the display, which hidden tabs have none of. */
class Drawn extends Source {
  #asked: number | undefined;

  constructor(readonly image: ImageSource) {
    super();
    this.fresh = true;
  }

  override watch(): void {
    this.#asked = request(() => this.show());
  }

  override stop(): void {
    super.stop();
    if (this.#asked !== undefined) cancel(this.#asked);
  }
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
class Video extends Source {
  override readonly mayLose = true;
  #asked: number | undefined;
  #shown: number | undefined;
  #unlisten = () => {};

  constructor(readonly image: HTMLVideoElement) {
    super();
  }

  override start(wake: () => void, end: (error?: unknown) => void): void {
    super.start(wake, end);
    const video = this.image;
    const failed = () => end(unplayable(video));
    // A <video> says nothing of a camera that was unplugged; its track does.
    const tracks = video.srcObject instanceof MediaStream ? video.srcObject.getVideoTracks() : [];
    const over = () => tracks.length > 0 && tracks.every((each) => each.readyState === "ended");
    const ended = ({ target }: { target: unknown }) => {
      if (target === video || over()) end();
    };
    for (const each of [video, ...tracks]) each.addEventListener("ended", ended);
    video.addEventListener("error", failed);
    this.#unlisten = () => {
      for (const each of [video, ...tracks]) each.removeEventListener("ended", ended);
      video.removeEventListener("error", failed);
    };
    // A stream may report a picture before it has one; the next comes soon.
    this.fresh = !video.srcObject && video.readyState >= video.HAVE_CURRENT_DATA;
    if (video.error) failed();
    else if (over()) end();
    else this.watch();
  }

  override watch(): void {
    const video = this.image;
    this.#forget();
    this.#asked = video.requestVideoFrameCallback((_, { presentedFrames }) => {
      this.#asked = undefined;
      if (this.#shown !== undefined) this.skipped += Math.max(presentedFrames - this.#shown - 1, 0);
      this.#shown = presentedFrames;
      this.show();
    });
  }

  override stop(): void {
    super.stop();
    this.#forget();
    this.#unlisten();
  }

  #forget(): void {
    if (this.#asked !== undefined) this.image.cancelVideoFrameCallback(this.#asked);
    this.#asked = undefined;
  }
}

function unplayable({ error, currentSrc }: HTMLVideoElement): UnsupportedError {
  const why = error?.message || `MediaError ${error?.code}`;
  return new UnsupportedError(
    `the video cannot be played (${why}): use one that this browser shows in a <video>`,
    { given: currentSrc, cause: error ?? undefined },
  );
}

/** A track, shown by a <video> of our own. */
class Track extends Video {
  constructor(track: MediaStreamTrack) {
    if (typeof document === "undefined") {
      throw new UnsupportedError(
        "a track needs a <video>, which only pages have: in a worker pass fromImage the " +
          "VideoFrames of a MediaStreamTrackProcessor",
      );
    }
    if (track.kind !== "video") {
      throw new UnsupportedError(`frames needs a video track, not one of kind "${track.kind}"`);
    }
    const video = document.createElement("video");
    super(Object.assign(video, { muted: true, playsInline: true }));
    video.srcObject = new MediaStream([track]);
  }

  override start(wake: () => void, end: (error?: unknown) => void): void {
    super.start(wake, end);
    this.image.play().catch(() => {}); // ended before it began
  }

  override stop(): void {
    super.stop();
    this.image.srcObject = null;
  }
}

// Where frames come from: an animation, a camera, a clip that the page records, a file. Each
// is `{ source, element, title, close(), live? }`: what webgpu.frames takes, and what shows it.

export const SIZES = { small: [320, 240], medium: [640, 480], large: [1280, 720] };

const CLIP_MS = 2000;

const picture = new Image();
picture.src = new URL("../photo.jpg", import.meta.url).href;

/** Discs over a photograph, and a card with a digit that changes: all drawn by the page. */
function paint(context, width, height, t) {
  const unit = height / 240;
  const light = context.createLinearGradient(0, 0, width, height);
  light.addColorStop(0, `hsl(${(40 * t) % 360} 45% 35%)`);
  light.addColorStop(1, `hsl(${(40 * t + 120) % 360} 45% 18%)`);
  context.fillStyle = light;
  context.fillRect(0, 0, width, height);
  if (picture.complete && picture.naturalWidth) {
    const side = picture.naturalWidth * (0.72 + 0.1 * Math.sin(0.5 * t));
    const x = (picture.naturalWidth - side) * (0.5 + 0.4 * Math.sin(0.7 * t));
    context.drawImage(picture, x, 20, side, side, 8 * unit, 8 * unit, 224 * unit, 224 * unit);
  }
  for (let i = 0; i < 5; i++) {
    const x = width * (0.5 + 0.42 * Math.sin(t * (0.5 + 0.13 * i) + 2 * i));
    const y = height * (0.5 + 0.4 * Math.cos(t * (0.6 + 0.11 * i) + i));
    context.fillStyle = `hsl(${72 * i + 30 * t} 80% 60%)`;
    context.beginPath();
    context.arc(x, y, (10 + 3 * i) * unit, 0, 2 * Math.PI);
    context.fill();
  }
  const side = 0.42 * height;
  const [x, y] = [0.84 * (width - side), 0.5 * (height - side)];
  context.fillStyle = "#fdfbf5";
  context.fillRect(x, y, side, side);
  context.fillStyle = "#101820";
  context.font = `600 ${0.95 * side}px "DejaVu Sans", system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(`${Math.floor(t / 1.5) % 10}`, x + side / 2, y + 0.54 * side);
}

/** A canvas that is animated while it is not paused. */
export function animation([width, height]) {
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d");
  let asked;
  let before;
  let t = 1;
  const step = (now) => {
    t += Math.min((now - (before ?? now)) / 1000, 0.1);
    before = now;
    paint(context, width, height, t);
    asked = requestAnimationFrame(step);
  };
  const pause = () => {
    cancelAnimationFrame(asked);
    before = undefined;
  };
  paint(context, width, height, t);
  picture.decode().then(
    () => paint(context, width, height, t),
    () => {},
  );
  return {
    title: "an animated canvas",
    source: canvas,
    element: canvas,
    play: () => {
      pause();
      asked = requestAnimationFrame(step);
    },
    pause,
    close() {
      pause();
      canvas.width = canvas.height = 0; // Chromium keeps its pixels for good otherwise
    },
  };
}

/** A <video> that plays; rejects with what is wrong with it. */
async function playing(video) {
  // One that repeats would not say that its camera has gone.
  Object.assign(video, { muted: true, playsInline: true, loop: !video.srcObject });
  await new Promise((resolve, reject) => {
    video.addEventListener("loadeddata", resolve, { once: true });
    video.addEventListener(
      "error",
      () => reject(new Error(video.error?.message || `MediaError ${video.error?.code}`)),
      { once: true },
    );
  });
  await video.play();
  if (video.videoWidth > 0) return;
  throw new Error("it has only sound");
}

function ofVideo(video, title, close) {
  return {
    title,
    source: video,
    element: video,
    play: () => video.play().catch(() => {}),
    pause: () => video.pause(),
    close() {
      video.pause();
      close();
    },
  };
}

const CAMERA_PROBLEMS = {
  NotAllowedError:
    "The camera was refused. Allow it for this page (the sign beside its address), then choose it again.",
  NotFoundError: "No camera was found. Plug one in, then choose it again.",
  NotReadableError: "The camera does not start: perhaps another program uses it.",
  OverconstrainedError: "The camera does not support this size.",
};

/** The camera, for which the browser asks its user first. */
export async function camera([width, height]) {
  if (!navigator.mediaDevices) {
    throw new Error("Browsers offer the camera only over https or on localhost.");
  }
  const video = { width: { ideal: width }, height: { ideal: height } };
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ video });
  } catch (error) {
    throw new Error(CAMERA_PROBLEMS[error.name] ?? `The camera: ${error.message}`);
  }
  const [track] = stream.getVideoTracks();
  const element = document.createElement("video");
  element.srcObject = stream;
  const close = () => {
    for (const each of stream.getTracks()) each.stop();
    element.srcObject = null;
  };
  try {
    await playing(element);
  } catch (error) {
    close();
    throw new Error(`The camera gives no picture: ${error.message}`);
  }
  const found = ofVideo(element, `the camera (${track.label || "video"})`, close);
  return Object.assign(found, { track, ended: "The camera was unplugged, or stopped." });
}

/** A file that somebody chose. */
export async function file(chosen) {
  const url = URL.createObjectURL(chosen);
  const element = Object.assign(document.createElement("video"), { src: url });
  try {
    await playing(element);
  } catch (error) {
    URL.revokeObjectURL(url);
    throw new Error(`${chosen.name} is not a video that this browser can play: ${error.message}`);
  }
  return ofVideo(element, chosen.name, () => URL.revokeObjectURL(url));
}

/** Two seconds of the animation, recorded by this browser: a video that needs no file. */
export async function clip(size) {
  if (!globalThis.MediaRecorder) throw new Error("This browser cannot record videos.");
  const drawn = animation(size);
  drawn.play();
  const recorder = new MediaRecorder(drawn.source.captureStream(30));
  const parts = [];
  recorder.addEventListener("dataavailable", ({ data }) => parts.push(data));
  const stopped = new Promise((resolve, reject) => {
    recorder.addEventListener("stop", resolve);
    recorder.addEventListener("error", ({ error }) => reject(error));
  });
  recorder.start();
  setTimeout(() => recorder.stop(), CLIP_MS);
  try {
    await stopped;
  } finally {
    drawn.close();
  }
  const { mimeType: type } = recorder;
  const found = await file(new File(parts, "the recorded clip", { type }));
  return Object.assign(found, { title: "two seconds of the animation, recorded here as a video" });
}

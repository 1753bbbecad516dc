// The landing page: frames through the reader's own program, as they come.
import "../counters.mjs"; // first, to see what the library copies
import { $, textOf } from "../page.mjs";
import { opensByItself, publish, webgpuProblem } from "../support.mjs";
import { compare, showComparison } from "./compare.mjs";
import { CpuPlayer } from "./cpu.mjs";
import { Editor } from "./editor.mjs";
import { Meter } from "./meter.mjs";
import { Player } from "./player.mjs";
import { startPython } from "./python.mjs";
import { Sliders } from "./sliders.mjs";
import * as sources from "./sources.mjs";

const say = (text) => {
  if ($("status").textContent !== text) $("status").textContent = text;
};
const problem = (text) => {
  $("problem").textContent = text;
  $("problem").hidden = text === "";
};

const PATIENCE_MS = 4000;
const marks = {}; // ms from the page's start
const mark = (name) => {
  marks[name] ??= performance.now();
};

const sliders = new Sliders($("sliders"));
const meter = new Meter({ fps: $("fps"), ms: $("ms"), bytes: $("bytes"), copies: $("copies") });
let quiet = false;
let shownFirst;
const firstFrame = new Promise((resolve) => {
  shownFirst = resolve;
});
let waiting = []; // for frames: [how many, what to do]

const view = {
  canvas: $("canvas"),
  sliders,
  say,
  problem,
  shown(stats, inPython) {
    mark("first_frame_ms");
    if (stats.frames > 1 || player.paused) shownFirst();
    if (inPython) mark("python_frame_ms");
    meter.shown(stats, inPython);
    waiting = waiting.filter(([count, done]) => meter.frames < count || done());
  },
  took(text) {
    sliders.end();
    const { dataset } = $("canvas");
    dataset.took = Number(dataset.took ?? 0) + 1; // for the tests
    dataset.by = player.inPython ? "python" : "javascript";
    if (text === editor.text) editor.clear();
    const runs = player.inPython
      ? "Python runs it."
      : "Running; Python is loading and then takes over.";
    say(player.lost || runs);
  },
  broken(message, line) {
    sliders.keep();
    editor.blame(message, line);
    if (player.inPython) say("The previous program keeps running.");
  },
  async ended(from, message = from.ended ?? "It has ended.") {
    $("source").value = "animation";
    await choose("animation");
    $("source-status").textContent = `${message} The animation is back.`;
  },
};
let player = new Player(view);

// --- the program ---

const editor = new Editor(
  { area: $("program"), gutter: $("gutter"), fault: $("fault"), go: $("go") },
  (text) => player.program(text),
);

let turn = 0; // of choices and edits, of which the last counts

async function take(file) {
  const mine = ++turn;
  const text = await textOf(`kernels/${file}`);
  if (mine !== turn) return;
  editor.text = text;
  await player.program(text);
}

async function showGallery() {
  const list = JSON.parse(await textOf("kernels/index.json"));
  const buttons = list.map(({ file, name }) => {
    const button = Object.assign(document.createElement("button"), {
      type: "button",
      className: "small",
      textContent: name,
    });
    button.addEventListener("click", async () => {
      for (const each of buttons) each.setAttribute("aria-pressed", each === button);
      await take(file);
      if (!player.inPython) say("Python is loading.");
    });
    return button;
  });
  buttons[0].setAttribute("aria-pressed", "true");
  $("gallery").replaceChildren(...buttons);
  await take(list[0].file);
}

$("program").addEventListener("input", () => {
  turn += 1;
});

// --- where frames come from ---

let choices = 0;

async function choose(kind, chosenFile) {
  const choice = ++choices;
  $("file-row").hidden = kind !== "file";
  const size = sources.SIZES[$("size").value];
  const make = {
    animation: () => sources.animation(size),
    clip: () => sources.clip(size),
    camera: () => sources.camera(size),
    file: () => (chosenFile ? sources.file(chosenFile) : null),
  }[kind];
  const note = { camera: "Asking for the camera…", clip: "Recording two seconds…" };
  $("source-status").textContent = note[kind] ?? "";
  let source;
  try {
    source = await make();
  } catch (error) {
    $("source-status").textContent = error.message;
    if (choice === choices) $("source").value = "animation";
    return;
  }
  if (source === null) {
    $("file").click();
    return;
  }
  if (choice !== choices) return source.close(); // another was chosen meanwhile
  $("source-status").textContent = `Frames of ${source.title}.`;
  source.element.setAttribute("aria-label", `Input: ${source.title}`);
  source.element.setAttribute("role", "img");
  $("input").replaceChildren(source.element);
  meter.restart(size[0] * size[1]);
  player.from(source);
}

$("source").addEventListener("change", ({ target }) => choose(target.value));
$("size").addEventListener("change", () => {
  if ($("source").value !== "file") choose($("source").value);
});
$("file").addEventListener("change", ({ target }) => {
  if (target.files[0]) choose("file", target.files[0]);
});

// --- pausing ---

function setPaused(paused) {
  if (paused) player.pause();
  else player.play();
  meter.pause();
  $("pause").textContent = paused ? "Play" : "Pause";
}

$("pause").addEventListener("click", () => setPaused(!player.paused));
$("sliders").addEventListener("input", () => player.step());
document.addEventListener("visibilitychange", () => {
  meter.pause();
  if (document.hidden) say("Paused: the tab is hidden.");
  else say("Running again, after the tab was hidden.");
});

// --- the comparison ---

async function runComparison() {
  $("compare").disabled = true;
  $("compare-status").textContent = "Running both…";
  let found;
  try {
    const text = await textOf("kernels/edges.py");
    found = await player.meanwhile(() => {
      meter.pause(); // a frame that was under way has started the next count
      const picture = sources.animation(sources.SIZES[$("size").value]).source;
      const numbers = ["strength", "colour"].map((name) => sliders.value(name));
      return compare({ python: player.python, device: player.device, picture, text, numbers });
    });
    showComparison($("ways"), found);
    $("comparison").hidden = false;
    const { usual, ours, difference, size } = found;
    const [slower, times] =
      usual.ms > ours.ms ? ["The usual way", usual.ms / ours.ms] : ["This way", ours.ms / usual.ms];
    const info = player.device.adapterInfo;
    const soft = /swiftshader|llvmpipe|basic render/i.test(
      [info?.vendor, info?.architecture, info?.description].join(" "),
    );
    $("difference").textContent =
      `Medians of 20 frames of ${size.join(" × ")}, including the wait for the GPU. ${slower} takes ` +
      `${times.toFixed(1)} times as long${soft ? "; this GPU is software that runs on the CPU" : ""}. ` +
      `The results differ by at most ${(255 * difference).toFixed(0)} of 255.`;
    $("compare-status").textContent = "";
  } catch (error) {
    $("compare-status").textContent = `The comparison failed: ${error.message}`;
  }
  $("compare").disabled = false;
  return found;
}

$("compare").addEventListener("click", runComparison);

// --- all of it ---

const framesShown = (count) =>
  new Promise((resolve) => {
    waiting.push([
      count,
      () => {
        resolve();
        return false;
      },
    ]);
  });

/** What the driver of the page wants to know. */
async function measure() {
  meter.restart(320 * 240);
  await framesShown(120);
  const { frames, fps, copiesPerFrame, mapAsync, medianMs } = meter;
  const found = await runComparison();
  const ok = frames >= 120 && copiesPerFrame === 0 && found.difference <= 2 / 255;
  return {
    page: "live",
    ok,
    fps,
    frames,
    copies_per_frame: copiesPerFrame,
    frame_ms: medianMs,
    ...marks,
    max_abs_error: found.difference,
    map_async: mapAsync,
    comparison: found,
    versions: { ...player.python.versions, browser: navigator.userAgent },
  };
}

const forPython = () => ({
  ...player.forPython,
  slider: (...args) => quiet || player.forPython.slider(...args),
  quiet: (value) => {
    quiet = value;
  },
});

/** What works without WebGPU: Python and the page share the arrays that NumPy computes with. */
async function startOnCpu() {
  say("The animation. Python is loading, to run the program on the CPU.");
  $("recorded").hidden = false;
  $("gallery").textContent = "On the CPU, with NumPy:";
  $("compare-status").textContent = "Needs WebGPU.";
  for (const each of ["source", "size"]) $(each).disabled = true;
  const source = sources.animation(sources.SIZES.small);
  meter.restart(320 * 240);
  player = new CpuPlayer(view, source);
  setPaused(matchMedia("(prefers-reduced-motion: reduce)").matches);
  editor.text = await textOf("moving/cpu.py");
  await player.program(editor.text);
  const playing = player.run();
  try {
    await player.usePython(await startPython(() => {}, forPython()));
  } catch (error) {
    throw new Error(`Python did not load: ${error.message}`);
  }
  await playing;
}

async function start() {
  const missing = await webgpuProblem();
  if (missing) {
    problem(missing);
    publish({ page: "live", ok: false, error: missing });
    return startOnCpu();
  }
  if (matchMedia("(prefers-reduced-motion: reduce)").matches && !opensByItself()) setPaused(true);
  await showGallery();
  await choose("animation");
  const playing = player.run();
  // Python takes the page's only thread while it loads: something should move by then.
  await Promise.race([firstFrame, new Promise((done) => setTimeout(done, PATIENCE_MS))]);
  player.loading = true;
  try {
    await player.usePython(await startPython(() => {}, forPython()));
  } catch (error) {
    $("compare-status").textContent = "Needs Python.";
    say("Running, in JavaScript.");
    throw new Error(`Python did not load, and frames continue without it: ${error.message}`);
  } finally {
    player.loading = false;
  }
  $("compare").disabled = false;
  $("compare-status").textContent = "";
  if (opensByItself()) publish(await measure());
  await playing;
}

start().catch((error) => {
  problem(error.message);
  publish({ page: "live", ok: false, error: error.message });
});
// The tests, and whoever looks with the browser's own tools.
globalThis.live = {
  get player() {
    return player;
  },
  meter,
  marks,
  shown: () => player.shown,
};

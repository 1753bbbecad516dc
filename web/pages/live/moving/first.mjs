// The first frames, before Python is there: a program that is one kernel is simple enough to be
// read here. Python runs the same text as soon as it has loaded.

const KERNEL = /(\w+) = dlw\.webgpu\.Kernel\("""\n([\s\S]*?)"""\)/;
const FRAME = /def frame\(image, result\):\n {4}(\w+)\(([^()]*)\)\s*$/;
const SLIDER = /^(\w+) = slider\("([^"]+)", ([-\d.]+), ([-\d.]+), ([-\d.]+)\)$/gm;

/**
 * What such a program says: `{ wgsl, sliders, args(image, result, value) }`; null for one that is
 * more than one kernel, which waits for Python.
 */
export function readProgram(text) {
  const [kernel, frame] = [KERNEL.exec(text), FRAME.exec(text)];
  if (!kernel || frame?.[1] !== kernel[1] || text.split("webgpu.Kernel").length !== 2) return null;
  const sliders = [...text.matchAll(SLIDER)].map(([, variable, name, ...numbers]) => {
    const [low, high, start] = numbers.map(Number);
    return { variable, name, low, high, start };
  });
  const givers = frame[2].split(",").map((word) => giver(word.trim(), sliders));
  if (givers.includes(undefined)) return null;
  const args = (image, result, value) => givers.map((give) => give({ image, result, value }));
  return { wgsl: kernel[2], sliders, args };
}

function giver(word, sliders) {
  const axis = /^image\.shape\[([01])\]$/.exec(word);
  if (axis) return ({ image }) => image.shape[Number(axis[1])];
  if (word === "image" || word === "result") return (given) => given[word];
  const slider = sliders.find(({ variable }) => word === `${variable}.value`);
  return slider && (({ value }) => value(slider.name));
}

/** A tensor of zeros like an image, on its device. */
function like(Tensor, { shape, size }, device) {
  const zeros = Tensor.fromTypedArray(new Float32Array(size), { shape });
  try {
    return zeros.to(device);
  } finally {
    zeros.release();
  }
}

/** Runs it over the frames of a source, as run.py does. */
export async function runFirst(program, library, { device, frames, canvas, value, shown, paused }) {
  const { Tensor, webgpu } = library;
  const kernel = new webgpu.Kernel(device, `\n${program.wgsl}`);
  let result;
  try {
    for await (const image of frames) {
      if (!result || `${result.shape}` !== `${image.shape}`) {
        result?.release();
        result = like(Tensor, image, device);
      }
      kernel.run(program.args(image, result, value));
      await webgpu.toCanvas(result, canvas);
      shown(frames.stats);
      await paused();
    }
  } finally {
    frames.stop();
    result?.release();
  }
}

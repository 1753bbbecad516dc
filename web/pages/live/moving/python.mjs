// Python behind the page: loaded while the first frames run already, and what run.py sees of
// the page as its module `page`.
import { boot, runScript, versionsOf } from "../boot.mjs";
import { madeBytes, textOf } from "../page.mjs";

const site = (path) => new URL(`../${path}`, import.meta.url).href;

/** onnxruntime-web, loaded when a program first asks for it. */
class Networks {
  #ort;

  ort = async () => {
    this.#ort ??= this.#load();
    return this.#ort;
  };

  async #load() {
    const folder = site("libraries/ort/");
    let ort;
    try {
      ort = await import(`${folder}ort.webgpu.bundle.min.mjs`);
    } catch (cause) {
      this.#ort = undefined;
      throw new Error(
        "onnxruntime-web is not on this site: `make demo PAGE=live` adds it and the model",
        { cause },
      );
    }
    ort.env.wasm.numThreads = 1;
    ort.env.wasm.wasmPaths = folder;
    ort.env.logLevel = "error";
    return ort;
  }

  session = async (path) => {
    const ort = await this.ort();
    return ort.InferenceSession.create(await madeBytes(path, "live"), {
      executionProviders: ["webgpu"],
      preferredOutputLocation: "gpu-buffer",
    });
  };

  infer = async (session, feeds) => {
    const inputs = feeds.toJs({ dict_converter: Object.fromEntries, depth: 1 });
    const outputs = await session.run(inputs);
    return outputs[session.outputNames[0]];
  };
}

/**
 * Loads Python and run.py.
 *
 * @param page - what run.py calls: see its uses of `page`
 */
export async function startPython(say, page) {
  const networks = new Networks();
  const [source, { pyodide, bridge }] = await Promise.all([textOf("moving/run.py"), boot(say)]);
  pyodide.registerJsModule("page", {
    ...page,
    ort: networks.ort,
    session: networks.session,
    infer: networks.infer,
    copied: (array) => array.toJs(),
  });
  const names = runScript(pyodide, "run.py", source);
  const [Show, ShowOnCpu, take, measured, usual] = [
    "Show",
    "ShowOnCpu",
    "take",
    "measured",
    "usual_edges",
  ].map((name) => names.get(name));
  return {
    bridge,
    versions: versionsOf(pyodide),
    usual,
    measured,
    /** A player on a device. */
    show(device) {
      const show = Show(device);
      return {
        take: (text) => take(show, text),
        run: (from, canvas) => show.run(from, canvas),
        close: () => show.destroy(),
      };
    },
    /** The same where there is none: its pixels are views of NumPy's memory. */
    showOnCpu(width, height) {
      const show = ShowOnCpu(width, height);
      const [image, result] = ["image", "result"].map((name) => bridge.tensor(show[name]));
      return {
        take: (text) => take(show, text),
        draw: () => show.draw(),
        image: () => image.data,
        result() {
          const { buffer, byteOffset, length } = result.data;
          return new Uint8ClampedArray(buffer, byteOffset, length);
        },
      };
    },
  };
}

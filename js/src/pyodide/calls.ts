import { Adapters } from "../adapters/calls.js";
import { shared } from "../core/realm.js";
import { Files } from "../open/calls.js";
import { releaseSlot } from "../webgpu/buffers/table.js";
import { loadExplanations } from "../webgpu/errors/explanations.js";
import type { Bridge } from "./bridge.js";
import { Devices } from "./devices.js";
import { moduleOf, type Pyodide, PyodideHost } from "./host.js";
import { Images } from "./images.js";
import { Kernels } from "./kernels.js";
import { Packages } from "./packages.js";
import { Python } from "./python.js";
import { Tensors } from "./tensors.js";
import type { Waits } from "./waits.js";

/** The functions that `dlpack_web/_backends/browser` calls, by subject. */
export class PythonCalls {
  /** @internal */
  readonly bridge: Bridge;
  readonly devices: Devices;
  readonly images: Images;
  readonly kernels: Kernels;
  readonly packages: Packages;
  readonly tensors: Tensors;
  readonly waits: Waits;
  // What stands on the bridge: to delete one, delete its lines and its folder.
  readonly adapters: Adapters;
  readonly files: Files;

  constructor(pyodide: Pyodide) {
    const run = (kernel: number, again: number) => this.kernels.run(kernel, again);
    const python = new Python(pyodide, new PyodideHost(pyodide, releaseSlot, run));
    this.bridge = python.bridge;
    this.devices = new Devices();
    this.images = new Images(python);
    this.kernels = new Kernels(python);
    this.packages = new Packages(python);
    this.tensors = new Tensors(python);
    this.waits = python.waits;
    this.adapters = new Adapters(python);
    this.files = new Files(python);
  }
}

loadExplanations(() => import("../webgpu/lazy.js")); // the wheel's own copy

/** The calls of each connected Pyodide, by its module object. */
const attached = shared("calls", () => new WeakMap<object, object>());

/**
 * The calls of a Pyodide, made at the first call. `dlpack_web` must be importable. Used by
 * `connect()`, and by the copy of this code in the wheel for notebooks.
 */
export function attach(pyodide: Pyodide): PythonCalls {
  const module = moduleOf(pyodide);
  let calls = attached.get(module) as PythonCalls | undefined;
  if (calls === undefined) {
    calls = new PythonCalls(pyodide);
    attached.set(module, calls);
  }
  return calls;
}

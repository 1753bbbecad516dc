// Four WebAssembly modules, each with a memory of its own, for modules_cases.mjs: DuckDB, OpenCV,
// wasm/example in C, and Python. Each is a source of tensors and takes them from the others.

import { load as loadExample } from "/example/example.mjs";
import { fromArrow, toArrow } from "/js/adapters/arrow.js";
import { fromMat, toMat } from "/js/adapters/opencv.js";
import { fit } from "/js/exchange/index.js";
import { Tensor } from "/js/index.js";
import * as arrow from "/libraries/arrow.mjs";
import * as duckdb from "/libraries/duckdb.mjs";

export const [ROWS, COLS] = [32, 64];
export const COUNT = ROWS * COLS; // what DuckDB has in one chunk of a result
const BIG = 48 << 20;

let promise;

/** `{ duckdb, opencv, c, python }`, loaded once. */
export function modules(context) {
  promise ??= Promise.all([DuckDB.load(), OpenCV.load(), C.load()]).then(([duckdb, opencv, c]) => ({
    duckdb,
    opencv,
    c,
    python: new Python(context),
  }));
  return promise;
}

/** The sum of all elements that a source begins with. */
export const sumOf = (first) => COUNT * first + (COUNT * (COUNT - 1)) / 2;

/** Numbers from `first` on. */
const numbers = (first) => Float32Array.from({ length: COUNT }, (_, i) => first + i);

export class DuckDB {
  static async load() {
    const file = (name) => ({
      mainModule: `/libraries/duckdb/duckdb-${name}.wasm`,
      mainWorker: "",
    });
    const bundles = { mvp: file("mvp"), eh: file("eh") };
    const logger = new duckdb.VoidLogger();
    const database = await duckdb.createDuckDB(bundles, logger, duckdb.BROWSER_RUNTIME);
    await database.instantiate(() => {});
    const made = new DuckDB();
    made.connection = database.connect();
    made.module = database.mod;
    return made;
  }

  memory = () => this.module.HEAPU8.buffer;
  tables = 0;
  lent = 0;

  #sql = (first) => `SELECT CAST(${first} + i AS FLOAT) AS x FROM range(${COUNT}) AS _(i)`;

  /** Calls one of DuckDB's own functions with parts that it gets in one piece of its memory. */
  #call(name, parts, ...more) {
    const { module } = this;
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const ptr = module._malloc(length);
    try {
      let at = ptr;
      for (const part of parts) {
        module.HEAPU8.set(part, at);
        at += part.length;
      }
      const types = ["number", "number", "number", ...more.map(() => "string")];
      const [status, start, count] = this.connection.useUnsafe((_, connection) =>
        duckdb.callSRet(module, name, types, [connection, ptr, length, ...more]),
      );
      if (status !== 0) throw new Error(duckdb.readString(module, start, count));
      return { start, count };
    } finally {
      module._free(ptr);
    }
  }

  /** A result as DuckDB gives it, which it has copied out of its memory. */
  query(first) {
    const tensor = fromArrow(null, this.connection.query(this.#sql(first)), { copy: false });
    const made = tensor.reshape([ROWS, COLS]);
    tensor.release();
    return made;
  }

  /** A result where it lies in DuckDB's memory, which has one at a time. */
  make({ library }, first) {
    const { module } = this;
    const sql = new TextEncoder().encode(this.#sql(first));
    const { start, count } = this.#call("duckdb_web_query_run_buffer", [sql]);
    const table = arrow.tableFromIPC(module.HEAPU8.subarray(start, start + count));
    const { values } = table.getChild("x").data[0];
    if (values.buffer !== this.memory()) throw new Error("Arrow copied what DuckDB has");
    this.lent++;
    const memory = {
      get buffer() {
        return module.HEAPU8.buffer;
      },
    };
    return library.Tensor.fromMemory(memory, values.byteOffset, {
      dtype: "float32",
      shape: [ROWS, COLS],
      readOnly: true,
      release: () => {
        this.lent--;
        duckdb.dropResponseBuffers(module);
      },
    });
  }

  /** A table of a tensor's elements: messages of Arrow's, over what lies there, put into DuckDB's memory. */
  async receive(tensor) {
    const flat = tensor.reshape([-1]);
    const vector = toArrow(arrow, flat, { copy: false });
    flat.release();
    const name = `t${this.tables++}`;
    const pieces = [];
    const writer = arrow.RecordBatchStreamWriter.writeAll(new arrow.Table({ x: vector }));
    for await (const piece of writer) pieces.push(piece);
    const options = JSON.stringify({ name, create: true });
    this.#call("duckdb_web_insert_arrow_from_ipc_stream", pieces, options);
    vector.data[0].values = null; // lets go of the memory
    return {
      sum: () => this.connection.query(`SELECT sum(x) AS s FROM ${name}`).get(0).s,
      release: () => this.connection.query(`DROP TABLE ${name}`),
    };
  }

  grow() {
    const before = this.memory();
    const taken = [];
    while (this.memory() === before && taken.length < 8) taken.push(this.module._malloc(BIG));
    for (const ptr of taken) this.module._free(ptr);
    return this.memory() !== before;
  }

  left = () => this.lent;
}

/** What a data: URL has, which OpenCV.js puts its WebAssembly into and the site's policy blocks. */
function fetchedHere(url) {
  const [head, text] = `${url}`.split(",", 2);
  if (!head.startsWith("data:")) return undefined;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(bytes, { headers: { "Content-Type": "application/wasm" } });
}

class OpenCV {
  static async load() {
    const { fetch } = globalThis;
    globalThis.fetch = async (url) => fetchedHere(url) ?? fetch(url);
    const script = document.createElement("script");
    script.src = "/libraries/opencv/opencv.js";
    const loaded = new Promise((resolve, reject) => {
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${script.src} does not load`));
    });
    document.head.append(script);
    await loaded;
    const made = new OpenCV();
    const module = globalThis.cv;
    // A promise in newer versions; one whose `then` gives itself in older ones.
    if (module instanceof Promise) made.cv = await module;
    else {
      if (!module.Mat) await new Promise((resolve) => (module.onRuntimeInitialized = resolve));
      made.cv = module;
    }
    globalThis.fetch = fetch;
    return made;
  }

  mats = 0;

  memory() {
    const mat = new this.cv.Mat(1, 1, this.cv.CV_8UC1); // not every build gives it away
    const { buffer } = mat.data;
    mat.delete();
    return buffer;
  }

  make(_, first) {
    const mat = new this.cv.Mat(ROWS, COLS, this.cv.CV_32FC1);
    mat.data32F.set(numbers(first));
    const tensor = fromMat(this.cv, mat, { copy: false });
    mat.delete(); // the tensor holds the elements
    return tensor;
  }

  async receive(tensor) {
    const mat = toMat(this.cv, tensor);
    this.mats++;
    return {
      sum: () => this.cv.mean(mat)[0] * COUNT,
      release: () => {
        this.mats--;
        mat.delete();
      },
    };
  }

  grow() {
    const before = this.memory();
    const taken = [];
    while (this.memory() === before && taken.length < 8) {
      taken.push(new this.cv.Mat(1, BIG, this.cv.CV_8UC1));
    }
    for (const mat of taken) mat.delete();
    return this.memory() !== before;
  }

  left = () => this.mats;
}

class C {
  static async load() {
    const response = await fetch("/example-built/example.wasm");
    const made = new C();
    made.c = await loadExample(await response.arrayBuffer(), Tensor);
    return made;
  }

  memory = () => this.c.memory.buffer;

  make(_, first) {
    const host = Tensor.fromTypedArray(numbers(first), { shape: [ROWS, COLS] });
    const made = this.c.copy(host);
    host.release();
    return made;
  }

  async receive(tensor) {
    const made = this.c.copy(tensor);
    return { sum: () => this.c.sum(made), release: () => made.release() };
  }

  grow() {
    this.c.memory.grow(1);
    return true;
  }

  left = () => this.c.liveTensors();
}

class Python {
  constructor({ pyodide, bridge }) {
    Object.assign(this, { pyodide, bridge });
    this.tools = pyodide.runPython(`
import gc
import numpy as np
import dlpack_web as dlw

def make(first):
    return (np.arange(${COUNT}, dtype="f4") + first).reshape(${ROWS}, ${COLS})

def total(tensor):
    return float(np.asarray(tensor).sum(dtype="f8"))

def left():
    gc.collect()
    return dlw.live_tensors()

{"make": make, "total": total, "left": left, "taken": bytearray}
`);
  }

  memory = () => this.pyodide._module.HEAPU8.buffer;

  make(_, first) {
    const array = this.tools.get("make")(first);
    try {
      return this.bridge.tensor(array);
    } finally {
      array.destroy();
    }
  }

  async receive(tensor) {
    const made = this.bridge.toPython(tensor);
    return {
      sum: () => this.tools.get("total")(made),
      release: () => {
        made.release();
        made.destroy();
      },
    };
  }

  grow() {
    const before = this.memory();
    const taken = [];
    while (this.memory() === before && taken.length < 8) taken.push(this.tools.get("taken")(BIG));
    for (const each of taken) each.destroy();
    return this.memory() !== before;
  }

  left = () => this.tools.get("left")();
}

/** A tensor's elements, one after the other, without a copy where they lie so. */
export function sumOfTensor(tensor) {
  const held = fit(tensor, { copy: false });
  const sum = held.data.reduce((a, b) => a + b, 0);
  held.release();
  return sum;
}

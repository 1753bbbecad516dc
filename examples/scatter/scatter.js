// The page's side of scatter.py: draws the tensor "points", and writes what is selected into the
// tensors "indices" and "count", which Python made.
import { webgpu } from "dlpack-web";
import { widget } from "dlpack-web-page/widget";

const DRAW = `
  @group(0) @binding(0) var<storage, read> points: array<vec2f>;
  @group(0) @binding(1) var<storage, read> indices: array<u32>;
  override alpha: f32 = 1;

  @vertex fn every(@builtin(vertex_index) i: u32) -> @builtin(position) vec4f {
    return vec4f(points[i], 0, 1);
  }
  @vertex fn selected(@builtin(vertex_index) i: u32) -> @builtin(position) vec4f {
    return vec4f(points[indices[i]], 0, 1);
  }
  @fragment fn blue() -> @location(0) vec4f { return vec4f(0.3, 0.6, 1, alpha); }
  @fragment fn orange() -> @location(0) vec4f { return vec4f(1, 0.4, 0, alpha); }
`;

const SELECT = `
  @group(0) @binding(0) var<storage, read> points: array<vec2f>;
  @group(0) @binding(1) var<storage, read_write> indices: array<u32>;
  @group(0) @binding(2) var<storage, read_write> count: array<atomic<u32>>;
  @group(0) @binding(3) var<uniform> x0: f32;
  @group(0) @binding(4) var<uniform> y0: f32;
  @group(0) @binding(5) var<uniform> x1: f32;
  @group(0) @binding(6) var<uniform> y1: f32;

  @compute @workgroup_size(256)
  fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= arrayLength(&points)) { return; }
    let p = points[id.x];
    if (all(p >= vec2f(x0, y0)) && all(p <= vec2f(x1, y1))) {
      indices[atomicAdd(&count[0], 1)] = id.x;
    }
  }
`;

export default widget({
  render({ model, el, tensors }) {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: 640, height: 480 });
    canvas.style.touchAction = "none";
    el.append(canvas);
    const plot = new Plot(canvas, tensors, model);
    const draw = () => plot.later();
    const stop = tensors.watch("points", draw); // it is another one, or a kernel moved them
    model.on("change:selected", draw);
    onDrag(canvas, (rectangle) => plot.select(rectangle));
    return () => {
      stop();
      model.off("change:selected", draw);
    };
  },
});

/** Calls a function with the corners of what the pointer marks, in coordinates of points. */
function onDrag(canvas, select) {
  let start;
  const place = ({ offsetX, offsetY }) => [
    (2 * offsetX) / canvas.clientWidth - 1,
    1 - (2 * offsetY) / canvas.clientHeight,
  ];
  canvas.onpointerdown = (event) => {
    start = place(event);
    canvas.setPointerCapture(event.pointerId);
  };
  canvas.onpointerup = (event) => {
    if (start === undefined) return; // it began elsewhere
    const [[ax, ay], [bx, by]] = [start, place(event)];
    start = undefined;
    const corners = [Math.min(ax, bx), Math.min(ay, by), Math.max(ax, bx), Math.max(ay, by)];
    void select(corners.map(Math.fround)); // the shader compares float32
  };
}

class Plot {
  #canvas;
  #tensors;
  #model;
  #points; // what follows was made for this tensor and its device
  #layout;
  #pipelines;
  #kernel;
  #asked = false;

  constructor(canvas, tensors, model) {
    this.#canvas = canvas;
    this.#tensors = tensors;
    this.#model = model;
  }

  /** Draws with the next frame, however often it is called before. */
  later() {
    if (this.#asked) return;
    this.#asked = true;
    requestAnimationFrame(() => {
      this.#asked = false;
      this.#draw();
    });
  }

  /** Finds the points in a rectangle, for Python. */
  async select(rectangle) {
    const [points, indices, counter] = this.#all();
    if (!points) return;
    counter.write(Uint32Array.of(0));
    const workgroups = [Math.ceil(points.shape[0] / 256)];
    this.#kernel.run([points, indices, counter, ...rectangle], { workgroups });
    const [count] = await counter.read();
    this.#model.set("selected", { rectangle, count });
    this.#model.save_changes();
  }

  /** The tensors that Python shows now; empty: there are none. */
  #all() {
    const all = ["points", "indices", "count"].map((name) => this.#tensors.get(name));
    if (!all.every(Boolean)) return [];
    if (all[0] !== this.#points) this.#make(all[0]);
    return all;
  }

  #make(points) {
    this.#points = points;
    const device = points.device.gpu;
    this.#kernel = new webgpu.Kernel(device, SELECT, { label: "select" });
    const format = navigator.gpu.getPreferredCanvasFormat();
    this.#canvas.getContext("webgpu").configure({ device, format, alphaMode: "opaque" });
    const buffer = { type: "read-only-storage" };
    this.#layout = device.createBindGroupLayout({
      entries: [0, 1].map((binding) => ({ binding, visibility: GPUShaderStage.VERTEX, buffer })),
    });
    const layout = device.createPipelineLayout({ bindGroupLayouts: [this.#layout] });
    const module = device.createShaderModule({ code: DRAW });
    const pipeline = (vertex, fragment, alpha, target) =>
      device.createRenderPipeline({
        layout,
        vertex: { module, entryPoint: vertex },
        fragment: {
          module,
          entryPoint: fragment,
          constants: { alpha },
          targets: [{ format, ...target }],
        },
        primitive: { topology: "point-list" },
      });
    const { width, height } = this.#canvas;
    // Where points lie over each other, their light adds up.
    const alpha = Math.min(1, Math.max(0.01, (0.1 * width * height) / points.shape[0]));
    const sum = { srcFactor: "src-alpha", dstFactor: "one" };
    this.#pipelines = [
      pipeline("every", "blue", alpha, { blend: { color: sum, alpha: sum } }),
      pipeline("selected", "orange", 1),
    ];
  }

  #draw() {
    const [points, indices] = this.#all();
    if (!points) return;
    const device = points.device.gpu;
    const entries = [points, indices].map(
      ({ buffer, byteOffset: offset, nbytes: size }, binding) => ({
        binding,
        resource: { buffer, offset, size },
      }),
    );
    const view = this.#canvas.getContext("webgpu").getCurrentTexture().createView();
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginRenderPass({
      colorAttachments: [{ view, loadOp: "clear", storeOp: "store", clearValue: [0, 0, 0, 1] }],
    });
    pass.setBindGroup(0, device.createBindGroup({ layout: this.#layout, entries }));
    const counts = [points.shape[0], this.#model.get("selected").count ?? 0];
    for (const [i, count] of counts.entries()) {
      pass.setPipeline(this.#pipelines[i]);
      pass.draw(count);
    }
    pass.end();
    device.queue.submit([encoder.finish()]);
    this.#canvas.dataset.frames = Number(this.#canvas.dataset.frames ?? 0) + 1;
  }
}

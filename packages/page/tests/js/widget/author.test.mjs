// Widgets of authors: anywidget's form, the page behind it, and what ends when.
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { fakeDevice } from "../../../../../tests/js/fake_device.mjs";
import { widget } from "../../../js/dist/widget/index.js";

/** Anywidget's model; `say` is what the kernel sends. */
function fakeModel() {
  const listeners = new Set();
  const sent = [];
  return {
    sent,
    listeners,
    on: (type, listener) => type === "msg:custom" && listeners.add(listener),
    off: (type, listener) => type === "msg:custom" && listeners.delete(listener),
    send: (content) => sent.push(content),
    say(content) {
      const head = { dlpack_web: "1", to: sent.at(-1).from, from: "kernel" };
      for (const listener of listeners) listener({ ...head, ...content }, []);
    },
    /** As the kernel does for its first page; operations follow. */
    async meet(...operations) {
      while (!sent.some((message) => "hello" in message)) await ticks();
      this.say({ welcome: 10000 });
      for (const [i, operation] of operations.entries()) {
        this.say({ n: i + 1, got: 0, do: operation });
      }
    },
  };
}

function fakeElement() {
  const element = {
    children: [],
    style: {},
    hidden: false,
    textContent: "",
    setAttribute() {},
    append: (...more) => element.children.push(...more),
    ownerDocument: {
      createElement() {
        const child = fakeElement();
        child.remove = () => element.children.splice(element.children.indexOf(child), 1);
        return child;
      },
    },
  };
  return element;
}

const ticks = () => new Promise((resolve) => setImmediate(resolve));
const EMPTY = { op: "empty", id: 1, shape: [4], dtype: "float32" };
const what = { id: 1, offset: 0, shape: [4], strides: null, dtype: "float32", padded: false };
const GIVE = { op: "give", key: "x", what: { ...what, readOnly: false }, site: 1 };

// Node has a navigator from 21 on.
const own = Object.getOwnPropertyDescriptor(globalThis, "navigator");
let model;

beforeEach(() => {
  model = fakeModel();
  const limits = { maxBufferSize: 1 << 20, maxStorageBufferBindingSize: 1 << 20 };
  const adapter = { limits, features: new Set() };
  adapter.requestDevice = async () => fakeDevice();
  const gpu = { requestAdapter: async () => adapter };
  Object.defineProperty(globalThis, "navigator", { value: { gpu }, configurable: true });
});
afterEach(() => {
  if (own) Object.defineProperty(globalThis, "navigator", own);
  else delete globalThis.navigator;
});

test("a script gets tensors, and the widget's end is the end of them", async () => {
  const seen = [];
  const { initialize, render } = widget({
    initialize({ model: given, tensors }) {
      assert.equal(given, model);
      seen.push("initialize");
      return tensors.watch("x", (tensor) => seen.push(tensor?.shape));
    },
    render({ el, tensors }) {
      assert.equal(el.children.length, 2); // the status and the canvas
      seen.push(["render", tensors.get("x")?.dtype]);
      return () => seen.push("render ended");
    },
  })();
  const end = await initialize({ model });
  await model.meet(EMPTY, GIVE);
  const el = fakeElement();
  const hide = await render({ model, el });
  const [status] = el.children;
  assert.ok(status.hidden, "the author's view has no message while all is well");
  await hide();
  assert.equal(el.children.length, 0);
  await end();
  const expected = ["initialize", undefined, [4], ["render", "float32"], "render ended"];
  assert.deepEqual(seen, expected); // its cleanup stopped watching before the tensors ended
  assert.ok(model.sent.at(-1).bye);
  assert.equal(model.listeners.size, 0);
});

test("Python gets to know that the script has failed", async () => {
  const logged = mock.method(console, "error", () => {});
  const { initialize } = widget({
    initialize: ({ tensors }) =>
      tensors.watch("x", (tensor) => {
        if (tensor) throw new RangeError("too many points");
      }),
  })();
  const end = await initialize({ model });
  await model.meet(EMPTY, GIVE);
  const { fault } = model.sent.find((message) => message.do?.fault).do;
  assert.equal(fault, 'the page\'s script failed with tensor "x": RangeError: too many points');
  assert.equal(logged.mock.callCount(), 1);
  logged.mock.restore();
  await end();
});

test("a page that loses the GPU says so, and shows tensors again", async () => {
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  try {
    const seen = [];
    const { initialize, render } = widget({
      render: ({ tensors }) => tensors.watch("x", (tensor) => seen.push(tensor?.released)),
    })();
    const end = await initialize({ model });
    await model.meet(EMPTY, GIVE);
    const el = fakeElement();
    await render({ model, el });
    model.say({ ended: true });
    assert.ok(!el.children[0].hidden);
    assert.match(el.children[0].textContent, /gave up this page/);
    model.sent.length = 0;
    mock.timers.tick(1000);
    await model.meet(EMPTY, GIVE);
    assert.deepEqual(seen, [false, undefined, false]);
    assert.ok(el.children[0].hidden);
    await end();
    assert.deepEqual(seen, [false, undefined, false, undefined]);
  } finally {
    mock.timers.reset();
  }
});

test("the page's own script says which GPU is used", async () => {
  const { initialize, render } = widget({})();
  const end = await initialize({ model });
  await model.meet();
  const el = fakeElement();
  await render({ model, el });
  assert.ok(!el.children[0].hidden);
  assert.match(el.children[0].textContent, /uses this page's GPU, .* as webgpu:10000/);
  await end();
});

test("hosts without initialize() and functions that make a widget", async () => {
  const seen = [];
  const make = widget(async () => {
    let views = 0;
    return {
      initialize: () => void seen.push("initialize"),
      render: () => void seen.push(++views),
    };
  });
  const { render } = make();
  await Promise.all([1, 2].map(() => render({ model, el: fakeElement() })));
  const other = make(); // another model
  const otherModel = fakeModel();
  const end = await other.initialize({ model: otherModel });
  await other.render({ model: otherModel, el: fakeElement() });
  assert.deepEqual(seen, ["initialize", 1, 2, "initialize", 1]);
  await end();
  await model.meet();
  model.say({ closed: true }); // or its timer keeps Node alive
});

test("errors of an author are anywidget's, and leave nothing", async () => {
  const bad = widget({
    initialize() {
      throw new Error("of initialize");
    },
  })();
  await assert.rejects(bad.initialize({ model }), /of initialize/);
  assert.equal(model.listeners.size, 0);
  const { initialize, render } = widget({
    render: async () => Promise.reject(Error("of render")),
  })();
  const end = await initialize({ model });
  const el = fakeElement();
  await assert.rejects(render({ model, el }), /of render/);
  assert.equal(el.children.length, 0);
  await end();
  const { initialize: third } = widget({
    initialize: () => () => {
      throw new Error("of the end");
    },
  })();
  const last = await third({ model });
  await assert.rejects(last(), /of the end/);
  assert.equal(model.listeners.size, 0);
});

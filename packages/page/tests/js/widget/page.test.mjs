// The page's end of a widget, with a host that is a list of messages and a GPU that does nothing.
import assert from "node:assert/strict";
import { after, mock, test } from "node:test";
import { setTimeout as delay, setImmediate as turn } from "node:timers/promises";
import widget from "../../../js/dist/widget/script.js";
import { VERSION } from "../../../js/dist/widget/session.js";

const limits = {
  maxBufferSize: 1 << 20,
  maxStorageBufferBindingSize: 1 << 20,
  minStorageBufferOffsetAlignment: 256,
};
const device = () => ({
  limits,
  features: new Set(),
  adapterInfo: { vendor: "none" },
  lost: new Promise(() => {}),
  createBuffer() {},
  pushErrorScope() {},
  popErrorScope: async () => null,
  queue: { submit() {}, writeBuffer() {} },
  addEventListener() {},
  destroy() {},
});
const requestDevice = async () => device();
const gpu = { requestAdapter: async () => ({ limits, features: new Set(), requestDevice }) };
const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
Object.defineProperty(globalThis, "navigator", { value: { gpu }, configurable: true });
after(() => Object.defineProperty(globalThis, "navigator", before ?? { value: undefined }));

/** A host; `give` passes a message of the kernel on in its form. */
function hostOf(off) {
  const sent = [];
  const listeners = new Set();
  const model = {
    send: (content, _, buffers) => sent.push({ ...content, buffers }),
    on: (_, listener) => listeners.add(listener),
    ...(off ? { off: (_, listener) => listeners.delete(listener) } : {}),
  };
  const give = (content, ...buffers) => {
    const { from: to } = sent[0];
    const head = { dlpack_web: VERSION, from: "kernel", to };
    for (const listener of listeners) listener({ ...head, ...content }, ...buffers);
  };
  return { model, sent, give, listeners };
}

/** Waits until the page has sent such a message. */
async function sent(host, found) {
  for (let i = 0; i < 100_000 && !host.sent.some(found); i++) await turn();
  assert.ok(host.sent.some(found));
}

const hello = (host) => sent(host, (message) => message.hello);

for (const [form, none] of [
  ["an empty list", [[]]],
  ["nothing", []],
]) {
  test(`a message without buffers has ${form}`, async () => {
    const host = hostOf(true);
    const end = await widget().initialize({ model: host.model });
    await hello(host);
    host.give({ welcome: 10000 }, ...none);
    host.give({ ping: true }, ...none);
    host.give({ n: 1, got: 0, do: { op: "free", what: [] } }, ...none);
    await sent(host, (message) => message.got === 1);
    await sent(host, (message) => message.pong);
    await end();
    assert.equal(host.listeners.size, 0);
    assert.ok(host.sent.at(-1).bye);
  });

  test(`a frame that came with ${form} loses the device, once`, async () => {
    const host = hostOf(true);
    const end = await widget().initialize({ model: host.model });
    await hello(host);
    host.give({ frame: true }, ...none); // before there is a session
    host.give({ welcome: 10000 }, ...none);
    host.give({ frame: true }, ...none);
    host.give({ frame: true }, ...none);
    const lost = host.sent.filter((message) => message.lost).map((message) => message.lost);
    assert.deepEqual(lost, ["this notebook passes messages without their buffers"]);
    await end();
  });
}

test("hellos without an answer come later each time", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const host = hostOf(true);
  const end = await widget().initialize({ model: host.model });
  await hello(host);
  const times = [];
  for (let second = 1; second <= 130; second++) {
    const before = host.sent.length;
    mock.timers.tick(1000);
    if (host.sent.length > before) times.push(second);
  }
  assert.deepEqual(times, [2, 6, 14, 30, 62, 94, 126]);
  await end();
  mock.timers.reset();
});

test("a host without off() can end the widget", async () => {
  const host = hostOf(false);
  const end = await widget().initialize({ model: host.model });
  await hello(host);
  await end();
  const before = host.sent.length;
  host.give({ ping: true });
  host.give({ welcome: 10000 });
  assert.equal(host.sent.length, before);
});

test("a page that cannot connect directly says so", async () => {
  const host = hostOf(true);
  const end = await widget().initialize({ model: host.model });
  await hello(host);
  host.give({ welcome: 10000, direct: { url: "not an address", secret: "s" } });
  await sent(host, (message) => message.apart);
  await end();
});

test("a page that the kernel gave up begins another session", async () => {
  const host = hostOf(true);
  const end = await widget().initialize({ model: host.model });
  await hello(host);
  host.give({ welcome: 10000 });
  host.give({ ping: true });
  await sent(host, (message) => message.pong);
  host.give({ ended: true });
  const before = host.sent.length;
  host.give({ ping: true }); // nobody answers for the session that ended
  await delay(1500);
  const [again] = host.sent.slice(before);
  assert.ok(again.hello);
  assert.notEqual(again.from, host.sent[0].from);
  await end();
});

test("a page whose session ended before it got the welcome begins another one", async () => {
  const host = hostOf(true);
  const end = await widget().initialize({ model: host.model });
  await hello(host);
  const [first] = host.sent;
  host.give({ ended: true });
  await delay(1500);
  assert.ok(host.sent.some((message) => message.hello && message.from !== first.from));
  host.give({ welcome: 10000 }); // too late: it is for the first session
  host.give({ ping: true });
  assert.ok(!host.sent.some((message) => message.pong));
  await end();
});

test("a page tells the kernel that it may leave, and that it is gone", async () => {
  const events = new EventTarget();
  globalThis.addEventListener = events.addEventListener.bind(events);
  globalThis.removeEventListener = events.removeEventListener.bind(events);
  const host = hostOf(true);
  const end = await widget().initialize({ model: host.model });
  await hello(host);
  const told = () => host.sent.filter(({ leaving, bye }) => leaving || bye).length;
  events.dispatchEvent(new Event("beforeunload"));
  assert.ok(host.sent.at(-1).leaving);
  events.dispatchEvent(new Event("pagehide"));
  assert.ok(host.sent.at(-1).bye);
  await end();
  assert.equal(told(), 3); // the end of the widget is the third
  events.dispatchEvent(new Event("beforeunload"));
  events.dispatchEvent(new Event("pagehide"));
  assert.equal(told(), 3);
  delete globalThis.addEventListener;
  delete globalThis.removeEventListener;
});

// Ports and sockets carry a wire; get() waits; options that do not exist are refused by name.
import assert from "node:assert/strict";
import { test } from "node:test";
import { liveTensors, Tensor } from "../../../../../js/dist/index.js";
import { overPort, overSocket, Wire } from "../../../js/dist/wire/index.js";

test("ports carry a wire", async () => {
  const { port1, port2 } = new MessageChannel();
  const [one, other] = [overPort(port1), overPort(port2)];
  const tensor = Tensor.from(Float32Array.of(1, 2, 3));
  const remote = one.send("x", tensor);
  assert.deepEqual((await other.get("x")).data, tensor.data);
  await remote.slice([1, 2]).write(Float32Array.of(9));
  assert.deepEqual([...(await other.get("x")).data], [1, 9, 3]);
  port1.close();
  for (const end of [one, other]) end.close();
  tensor.release();
});

test("a socket that is opened again continues", async () => {
  class Socket extends EventTarget {
    readyState = 1;
    send(data) {
      const event = new Event("message");
      event.data = data.slice().buffer;
      queueMicrotask(() => this.other.readyState === 1 && this.other.dispatchEvent(event));
    }
  }
  const sockets = () => {
    const [a, b] = [new Socket(), new Socket()];
    [a.other, b.other] = [b, a];
    return [a, b];
  };
  const [a, b] = sockets();
  const [one, other] = [overSocket(a), overSocket(b)];
  const tensor = Tensor.from(Float32Array.of(1, 2, 3));
  a.readyState = b.readyState = 3;
  const { ready } = one.send("x", tensor);
  const [c, d] = sockets();
  one.reconnect(c);
  other.reconnect(d);
  await ready;
  assert.deepEqual((await other.get("x")).data, tensor.data);
  for (const end of [one, other]) end.close();
  tensor.release();
});

test("a wire that ends before it began keeps nothing, and what waits for it rejects", async () => {
  const before = liveTensors();
  const posts = [];
  const make = () => new Wire({ send: () => posts.push(0), timeout: 1, now: () => 0 });
  const [wire, other] = [make(), make()];
  const waiting = wire.get("x");
  wire.close();
  await assert.rejects(waiting, /closed/);
  await assert.rejects(wire.get("x"), /closed/);
  assert.throws(() => wire.send("x", Tensor.from(new Uint8Array(1))), /closed/);
  wire.tick();
  assert.equal(posts.length, 0);
  other.tick(); // which says hello, as connect() does
  assert.equal(posts.length, 1);
  other.close();
  assert.equal(liveTensors(), before + 1); // of this test
});

for (const options of [{ piece: 65536.5 }, { limit: 0.5 }, { window: Number.NaN }]) {
  test(`bytes are integers: ${Object.entries(options)}`, () => {
    assert.throws(() => new Wire({ send() {}, ...options }), RangeError);
  });
}

const port = { postMessage() {}, addEventListener() {} };
const CALLS = [
  ["a Wire", "ontensor", (options) => new Wire({ send() {}, ...options })],
  ["overPort()", "onerror", (options) => overPort(port, options)],
  ["overSocket()", "limit", (options) => overSocket({ ...port, send() {} }, options)],
];

for (const [what, known, call] of CALLS) {
  test(`${what} refuses options that it does not have, and what is no object`, () => {
    for (const name of ["nonsense", known.toUpperCase(), "constructor", "toString"]) {
      assert.throws(
        () => call({ [name]: undefined }),
        ({ name: kind, message }) =>
          kind === "TypeError" &&
          message.startsWith(`${what} has no option "${name}": it has `) &&
          message.includes(known),
      );
    }
    for (const options of what === "a Wire" ? [] : [5, [4], null, "x"]) {
      assert.throws(() => call(options), {
        name: "TypeError",
        message: /must be an object, e\.g\. /,
      });
    }
  });
}

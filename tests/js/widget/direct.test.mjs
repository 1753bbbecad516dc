// The page's end of the kernel's WebSocket, with one that is a list of messages.
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Direct } from "../../../js/dist/widget/direct.js";

const GIVEN = { url: "ws://127.0.0.1:1/token", proof: "the proof" };
let sockets;

class Socket {
  readyState = 0;
  sent = [];
  #listeners = {};

  constructor(url) {
    if (url === "refused") throw new DOMException("a policy", "SecurityError");
    this.url = url;
    sockets.push(this);
  }

  addEventListener(type, listener) {
    this.#listeners[type] = listener;
  }

  // As WebSockets do, it copies.
  send(data) {
    this.sent.push(typeof data === "string" ? data : data.slice());
  }

  close() {
    this.readyState = 3;
    this.isClosed = true;
  }

  /** What the other end does. */
  say(data) {
    this.readyState = 1;
    this.#listeners.message({ data });
  }

  end() {
    this.readyState = 3;
    this.#listeners.close({});
  }
}

const before = globalThis.WebSocket;
beforeEach(() => {
  sockets = [];
  globalThis.WebSocket = Socket;
  mock.timers.enable({ apis: ["setTimeout"] });
});
afterEach(() => {
  globalThis.WebSocket = before;
  mock.timers.reset();
});

function made(given = GIVEN) {
  const [received, changes, failures] = [[], [], []];
  const direct = new Direct(given, {
    receive: (content, frame) => received.push(frame ? [...frame] : content),
    onchange: (isOpen) => changes.push(isOpen),
    onfail: () => failures.push(sockets.length),
  });
  return { direct, received, changes, failures };
}

const FRAME = [new Uint8Array([1, 2]), new Uint8Array([3])];

test("nothing is sent before the kernel has proved what it is", () => {
  const { direct, changes } = made();
  const [socket] = sockets;
  assert.equal(direct.send({ ping: true }, []), false);
  socket.readyState = 1;
  assert.equal(direct.send({ ping: true }, []), false);
  socket.say(GIVEN.proof);
  assert.deepEqual(changes, [true]);
  assert.equal(direct.send({ ping: true }, []), true);
  assert.deepEqual(socket.sent, ['{"ping":true}']);
});

for (const first of ["another", "", new ArrayBuffer(9), '{"welcome":1}']) {
  test(`a program whose first message is ${JSON.stringify(first)} is left`, () => {
    const { direct, received, changes, failures } = made();
    sockets[0].say(first);
    assert.ok(sockets[0].isClosed);
    sockets[0].say(GIVEN.proof);
    assert.equal(direct.send({}, []), false);
    mock.timers.tick(1e6);
    assert.deepEqual([received, changes, failures, sockets.length], [[], [], [1], 1]);
  });
}

test("frames are binary messages, all else is text, both ways", () => {
  const { direct, received } = made();
  const [socket] = sockets;
  assert.equal(socket.binaryType, "arraybuffer");
  socket.say(GIVEN.proof);
  direct.send({ frame: true }, FRAME);
  direct.send({ frame: true }, FRAME.slice(0, 1));
  assert.deepEqual(
    socket.sent.map((data) => [...data]),
    [
      [1, 2, 3],
      [1, 2],
    ],
  );
  socket.say(new Uint8Array([4, 5]).buffer);
  socket.say('{"got":1}');
  socket.say("{");
  socket.say(GIVEN.proof);
  assert.deepEqual(received, [[4, 5], { got: 1 }, undefined, undefined]);
});

test("the memory of a frame is freed as soon as it was taken", () => {
  const { received } = made();
  sockets[0].say(GIVEN.proof);
  const { buffer } = new Uint8Array([4, 5]);
  const freed = [];
  buffer.transfer = (size) => freed.push([size, received.length]); // Node 20 has none
  sockets[0].say(buffer);
  assert.deepEqual([received, freed], [[[4, 5]], [[0, 1]]]);
  const old = new Uint8Array([6]).buffer;
  old.transfer = undefined; // nor browsers of before 2024
  sockets[0].say(old);
  assert.deepEqual(received[1], [6]);
});

test("where it was never open, it is not opened again", () => {
  const { changes, failures } = made();
  sockets[0].end();
  mock.timers.tick(1e6);
  assert.deepEqual([sockets.length, changes, failures], [1, [], [1]]);
});

test("one that was open is opened again, some times", () => {
  const { direct, changes, failures } = made();
  sockets[0].say(GIVEN.proof);
  sockets[0].end();
  assert.equal(direct.send({}, []), false);
  assert.deepEqual(changes, [true, false]);
  mock.timers.tick(999);
  assert.equal(sockets.length, 1);
  mock.timers.tick(1);
  assert.equal(sockets.length, 2);
  sockets[1].say(GIVEN.proof);
  assert.deepEqual(changes, [true, false, true]);
  sockets[1].end();
  for (let i = 0; i < 20; i++) {
    mock.timers.tick(1e6);
    if (sockets.at(-1).readyState === 0) sockets.at(-1).end();
  }
  assert.deepEqual([sockets.length, changes.length, failures], [10, 4, [10]]);
});

test("a kernel that accepts and breaks it does not set the pace", () => {
  const { direct } = made();
  const waits = [];
  for (let at = 0; at < 6; at++) {
    sockets[at].say(GIVEN.proof);
    sockets[at].end();
    for (let waited = 1; sockets.length === at + 1; waited++) {
      mock.timers.tick(1000);
      waits[at] = waited;
    }
  }
  assert.deepEqual(waits, [1, 2, 4, 8, 16, 32]);
  sockets[6].say(GIVEN.proof);
  mock.timers.tick(60_000); // it works
  sockets[6].end();
  mock.timers.tick(1000);
  assert.equal(sockets.length, 8);
  direct.end();
});

test("after its end it does nothing", () => {
  const { direct, received, changes } = made();
  sockets[0].say(GIVEN.proof);
  direct.end();
  assert.ok(sockets[0].isClosed);
  sockets[0].say('{"got":1}');
  sockets[0].end();
  mock.timers.tick(1e6);
  assert.deepEqual([received, changes, sockets.length], [[], [true], 1]);

  const other = made();
  sockets[1].say(GIVEN.proof);
  sockets[1].end();
  other.direct.end(); // while it waits
  mock.timers.tick(1e6);
  assert.equal(sockets.length, 2);
});

test("a page that may not connect goes on without it", () => {
  const { direct, failures } = made({ ...GIVEN, url: "refused" });
  assert.equal(direct.send({}, []), false);
  assert.deepEqual(failures, [0]);
  direct.end();
});

for (const given of [null, {}, { url: 5, proof: "a" }, { url: GIVEN.url }, "ws://a/"]) {
  test(`the kernel says ${JSON.stringify(given)} of it: nothing is opened`, () => {
    const { direct, failures } = made(given);
    assert.deepEqual([sockets.length, failures], [0, []]);
    assert.equal(direct.send({}, []), false);
    direct.end();
  });
}

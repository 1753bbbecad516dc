// The page's end of the kernel's WebSocket, with one that is a list of messages.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Direct } from "../../../js/dist/widget/direct.js";

const GIVEN = { url: "ws://127.0.0.1:1/", secret: "the secret" };
let [sockets, directs] = [[], []];

/** What both ends send, as the kernel makes it. */
function proofOf(who, number = 1) {
  return createHmac("sha256", GIVEN.secret).update(`${who} ${number}`).digest("hex");
}
const PROOF = proofOf("kernel");

/** Until there are so many sockets: proofs take a while. */
async function opened(count) {
  for (let i = 0; i < 1e5 && sockets.length < count; i++) await new Promise(setImmediate);
  assert.equal(sockets.length, count);
}

/** As long as a proof takes. */
async function quiet(count) {
  for (let i = 0; i < 3; i++) await crypto.subtle.digest("SHA-256", new Uint8Array(1));
  await new Promise(setImmediate);
  assert.equal(sockets.length, count);
}

class Socket {
  readyState = 0;
  sent = [];
  #listeners = {};

  constructor(url, protocols) {
    if (url === "refused") throw new DOMException("a policy", "SecurityError");
    [this.url, this.protocols] = [url, protocols];
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
  [sockets, directs] = [[], []];
  globalThis.WebSocket = Socket;
  mock.timers.enable({ apis: ["setTimeout"] });
});
afterEach(() => {
  for (const direct of directs) direct.end();
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
  directs.push(direct);
  return { direct, received, changes, failures };
}

const FRAME = [new Uint8Array([1, 2]), new Uint8Array([3])];

test("nothing is sent before the kernel has proved what it is", async () => {
  const { direct, changes } = made();
  await opened(1);
  const [socket] = sockets;
  assert.equal(direct.send({ ping: true }, []), false);
  socket.readyState = 1;
  assert.equal(direct.send({ ping: true }, []), false);
  socket.say(PROOF);
  assert.deepEqual(changes, [true]);
  assert.equal(direct.send({ ping: true }, []), true);
  assert.deepEqual(socket.sent, ['{"ping":true}']);
});

for (const first of ["another", "", new ArrayBuffer(9), '{"welcome":1}']) {
  test(`a program whose first message is ${JSON.stringify(first)} is left`, async () => {
    const { direct, received, changes, failures } = made();
    await opened(1);
    sockets[0].say(first);
    assert.ok(sockets[0].isClosed);
    sockets[0].say(PROOF);
    assert.equal(direct.send({}, []), false);
    mock.timers.tick(1e6);
    await quiet(1);
    assert.deepEqual([received, changes, failures], [[], [], [1]]);
  });
}

test("frames are binary messages, all else is text, both ways", async () => {
  const { direct, received } = made();
  await opened(1);
  const [socket] = sockets;
  assert.equal(socket.binaryType, "arraybuffer");
  socket.say(PROOF);
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
  socket.say(PROOF);
  assert.deepEqual(received, [[4, 5], { got: 1 }, undefined, undefined]);
});

test("the memory of a frame is freed as soon as it was taken", async () => {
  const { received } = made();
  await opened(1);
  sockets[0].say(PROOF);
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

test("each connection has a proof of its own, which the address does not have", async () => {
  made();
  for (let number = 1; number < 4; number++) {
    await opened(number);
    const { url, protocols } = sockets.at(-1);
    assert.deepEqual(
      [url, protocols],
      [GIVEN.url, ["dlpack-web", `${number}.${proofOf("page", number)}`]],
    );
    sockets.at(-1).say(proofOf("kernel", number));
    sockets.at(-1).end();
    mock.timers.tick(1e6);
  }
});

test("a kernel's proof for an earlier connection is refused", async () => {
  const { changes } = made();
  await opened(1);
  sockets[0].say(PROOF);
  sockets[0].end();
  mock.timers.tick(1000);
  await opened(2);
  sockets[1].say(PROOF);
  assert.deepEqual([changes, sockets[1].isClosed], [[true, false], true]);
});

test("where it was never open, it is not opened again", async () => {
  const { changes, failures } = made();
  await opened(1);
  sockets[0].end();
  mock.timers.tick(1e6);
  await quiet(1);
  assert.deepEqual([changes, failures], [[], [1]]);
});

test("one that was open is opened again, some times", async () => {
  const { direct, changes, failures } = made();
  await opened(1);
  sockets[0].say(PROOF);
  sockets[0].end();
  assert.equal(direct.send({}, []), false);
  assert.deepEqual(changes, [true, false]);
  mock.timers.tick(999);
  await quiet(1);
  mock.timers.tick(1);
  await opened(2);
  sockets[1].say(proofOf("kernel", 2));
  assert.deepEqual(changes, [true, false, true]);
  sockets[1].end();
  for (let number = 3; number <= 10; number++) {
    mock.timers.tick(1e6);
    await opened(number);
    sockets.at(-1).end();
  }
  mock.timers.tick(1e6);
  await quiet(10);
  assert.deepEqual([changes.length, failures], [4, [10]]);
});

test("a kernel that accepts and breaks it does not set the pace", async () => {
  const { direct } = made();
  await opened(1);
  for (let at = 0; at < 6; at++) {
    sockets[at].say(proofOf("kernel", at + 1));
    sockets[at].end();
    mock.timers.tick(1000 * 2 ** at - 1);
    await quiet(at + 1);
    mock.timers.tick(1);
    await opened(at + 2);
  }
  sockets[6].say(proofOf("kernel", 7));
  mock.timers.tick(60_000); // it works
  sockets[6].end();
  mock.timers.tick(1000);
  await opened(8);
  direct.end();
});

test("after its end it does nothing", async () => {
  const { direct, received, changes } = made();
  await opened(1);
  sockets[0].say(PROOF);
  direct.end();
  assert.ok(sockets[0].isClosed);
  sockets[0].say('{"got":1}');
  sockets[0].end();
  mock.timers.tick(1e6);
  await quiet(1);
  assert.deepEqual([received, changes], [[], [true]]);

  const other = made();
  await opened(2);
  sockets[1].say(PROOF);
  sockets[1].end();
  other.direct.end(); // while it waits
  mock.timers.tick(1e6);
  await quiet(2);
  made().direct.end(); // while it makes its proof
  await quiet(2);
});

test("a page that may not connect goes on without it", async () => {
  const { direct, failures } = made({ ...GIVEN, url: "refused" });
  assert.equal(direct.send({}, []), false);
  await quiet(0);
  await quiet(0);
  assert.deepEqual(failures, [0]);
  direct.end();
});

for (const given of [null, {}, { url: 5, secret: "a" }, { url: GIVEN.url }, "ws://a/"]) {
  test(`the kernel says ${JSON.stringify(given)} of it: nothing is opened`, async () => {
    const { direct, failures } = made(given);
    await quiet(0);
    assert.deepEqual(failures, []);
    assert.equal(direct.send({}, []), false);
    direct.end();
  });
}

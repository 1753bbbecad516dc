// Numbered messages over a channel that loses, repeats and reorders.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Ordered } from "../../../js/dist/widget/ordered.js";

/** Random numbers from 0 to 1 that are the same each time. */
function* numbers(seed) {
  for (let state = seed; ; ) {
    state = (state * 1103515245 + 12345) % 2147483648;
    yield state / 2147483648;
  }
}

for (let seed = 0; seed < 50; seed++) {
  test(`bodies arrive in order, each once: ${seed}`, () => {
    const random = numbers(seed);
    const next = () => random.next().value;
    const channel = [];
    const got = [[], []];
    const ends = [0, 1].map((side) => new Ordered((message) => channel.push([1 - side, message])));
    const deliver = () => {
      const [[to, message]] = channel.splice(Math.floor(next() * Math.min(channel.length, 4)), 1);
      if (next() < 0.2) return; // lost
      if (next() < 0.2) channel.push([to, message]);
      got[to].push(...ends[to].receive(structuredClone(message)));
      if (next() < 0.5) ends[to].acknowledge();
    };
    for (let i = 0; i < 40; i++) {
      ends[0].send(i);
      if (i % 2) ends[1].send({ i });
      while (channel.length > 0 && next() < 0.6) deliver();
    }
    for (let i = 0; i < 200 && (got[1].length < 40 || got[0].length < 20); i++) {
      for (const end of ends) end.resend();
      while (channel.length > 0) deliver();
    }
    assert.deepEqual(
      got[1],
      Array.from({ length: 40 }, (_, i) => i),
    );
    assert.deepEqual(
      got[0],
      Array.from({ length: 20 }, (_, i) => ({ i: 2 * i + 1 })),
    );
  });
}

for (const message of [
  { got: 1 },
  { got: -1 },
  { got: 0.5 },
  { got: "0" },
  {},
  { got: 0, n: 0 },
  { got: 0, n: 1e9 },
  { got: 0, n: 2 ** 53 },
  { got: 0, n: "1" },
]) {
  test(`numbers that cannot be are refused: ${JSON.stringify(message)}`, () => {
    const end = new Ordered(() => {});
    assert.throws(() => end.receive(message), { name: "UnsupportedError" });
    assert.deepEqual(end.receive({ got: 0, n: 1, do: 5 }), [5]);
  });
}

test("what was acknowledged is not sent again", () => {
  const sent = [];
  const end = new Ordered((message) => sent.push(message.n ?? "ack"));
  end.send("a");
  end.send("b");
  assert.deepEqual(end.receive({ got: 1, n: 1, do: "x" }), ["x"]);
  assert.deepEqual(end.receive({ got: 1, n: 1, do: "x" }), []);
  end.acknowledge();
  end.acknowledge();
  end.resend();
  assert.deepEqual(sent, [1, 2, "ack", 2]);
});

test("early messages are bounded in number and length, and the gap can be filled", () => {
  const end = new Ordered(() => {});
  const long = "x".repeat(1 << 22);
  const at = (n) => end.receive({ got: 0, n, do: long });
  for (let n = 2; n < 17; n++) at(n);
  at(2); // repeated
  assert.throws(() => at(17), { name: "UnsupportedError" });
  assert.throws(() => at(5000), { name: "UnsupportedError" });
  assert.equal(at(1).length, 16);
  assert.deepEqual(at(18), []);
  assert.equal(at(17).length, 2);
});

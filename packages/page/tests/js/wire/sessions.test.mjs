// Sessions, and names that are sent again: which frames an end answers and which it ignores,
// against a model of WIRE.md.
import assert from "node:assert/strict";
import { test } from "node:test";
import { dtypeNamed } from "../../../../../js/dist/core/dtype.js";
import { liveTensors, Tensor } from "../../../../../js/dist/index.js";
import { random } from "../../../../../tests/js/random.mjs";
import { decode, encode } from "../../../js/dist/wire/frame.js";
import { joined, Wire } from "../../../js/dist/wire/index.js";
import { pair } from "./pair.mjs";

const PIECE = 1 << 16;
const type = dtypeNamed("uint8");
const one = Tensor.from(new Uint8Array(1));

const pieceOf = (name, id = 1, version = 1, shape = [4]) => {
  return { op: "piece", name, type, shape, id, version, begin: 0, end: 4, first: 0, last: 4 };
};
const hello = { op: "hello", window: 2 ** 20, piece: PIECE };

/** A Wire whose other sides are made up. */
class Session {
  posts = [];
  news = [];
  own = "";

  constructor(options = {}) {
    const { fail = () => {}, ...more } = options;
    const says = (kind, of) => (given) => {
      this.news.push(of(given));
      fail(kind);
    };
    this.wire = new Wire({
      send: (header, payload) => {
        const { from, to, payload: _, ...body } = decode(header, payload);
        this.own ||= from;
        assert.equal(from, this.own);
        this.posts.push([body, to]);
        fail("send");
      },
      onsession: says("onsession", () => "session"),
      ontensor: says("ontensor", ({ name }) => name),
      onfree: says("onfree", (name) => `${name} freed`),
      onrefuse: says("onrefuse", () => "refused"),
      ...more,
    });
    this.wire.connect();
  }

  give(body, from, to = this.own) {
    const length = body.op === "piece" ? body.last - body.first : 0;
    const payload = Uint8Array.from({ length }, (_, i) => i);
    this.wire.receive(joined(encode({ ...body, from, to }), payload));
  }

  /** What it sent and reported since the last time. */
  told() {
    return [this.posts.splice(0), this.news.splice(0)];
  }
}

test("what is answered is what a model answers", () => {
  for (let seed = 0; seed < 60; seed++) {
    const rng = random(seed);
    const pick = (list) => list[rng(list.length)];
    const end = new Session();
    const own = end.told()[0][0][0];
    const count = pick([2, 3, 25]);
    const sessions = Array.from({ length: count }, (_, n) => `${n}`.padStart(16, "0"));
    let [peer, isConnected, there, flying, sent] = ["", false, undefined, undefined, 0];
    const past = [];
    for (let step = 1; step < 150; step++) {
      const sender = pick([...sessions.slice(-3), pick(sessions), end.own]);
      const to = pick([end.own, end.own, end.own, "", "f".repeat(16)]);
      const kind = pick(["hello", "piece", "ack", "free", "connect", "send"]);
      const [posts, news] = [[], []];
      const isIgnored = sender === end.own || past.includes(sender);
      const body = {
        hello,
        piece: pieceOf("theirs", step),
        free: { op: "free", id: there ?? 999, version: 9 },
        ack: { op: "ack", id: sent, version: 1, first: 0, last: 1 },
      }[kind];
      if (kind === "connect") {
        isConnected = false;
        posts.push([own, ""]);
        end.wire.connect();
      } else if (kind === "send") {
        if (flying === undefined) {
          end.wire.send(`mine${step}`, one).ready.catch(() => {});
          flying = ++sent;
          if (isConnected) posts.push(["mine", peer]);
        }
      } else if (kind === "hello" && !isIgnored) {
        const isAgain = sender === peer && isConnected;
        if (peer !== "" && peer !== sender) {
          past.push(peer);
          if (past.length > 16) past.shift();
          news.push("session");
          there = flying = undefined;
        }
        [peer, isConnected] = [sender, true];
        if (to !== end.own) posts.push([own, peer]);
        if (flying !== undefined && !(isAgain && to === end.own)) posts.push(["mine", peer]);
      } else if (!isIgnored && to === end.own && !isConnected) posts.push([own, ""]);
      else if (!isIgnored && to === end.own && sender === peer) {
        if (kind === "piece") {
          posts.push([{ op: "ack", id: step, version: 1, first: 0, last: 4 }, peer]);
          news.push("theirs");
          there = step;
        } else if (kind === "free") {
          posts.push([{ op: "ack", id: there ?? 999, version: 9, first: 0, last: 0 }, peer]);
          if (there !== undefined) news.push("theirs freed");
          there = undefined;
        } else flying = undefined;
      }
      if (body) end.give(body, sender, to);
      const [frames, heard] = end.told();
      const found = frames.map(([frame, to]) => [frame.op === "piece" ? "mine" : frame, to]);
      assert.deepEqual([found, heard], [posts, news], `seed ${seed}: ${step} ${kind}`);
    }
    end.wire.close();
    end.wire.tick();
    end.wire.close();
    assert.throws(() => end.wire.connect(), /closed/);
    assert.throws(() => end.wire.receive(new Uint8Array()), /closed/);
    assert.deepEqual(end.told(), [[], []]);
  }
});

test("sixteen sessions that ended are remembered", () => {
  const end = new Session();
  const sessions = Array.from({ length: 19 }, (_, n) => `${n}`.padStart(16, "0"));
  for (const session of sessions) end.give(hello, session);
  end.told();
  for (const session of sessions.slice(2, 18)) {
    end.give(hello, session);
    end.give(pieceOf("x"), session);
  }
  assert.deepEqual(end.told(), [[], []]);
  end.give(hello, sessions[1]);
  assert.deepEqual(end.told(), [[], ["session"]]);
  end.wire.close();
});

test("a wire that was closed does nothing more, and says so", async () => {
  const before = liveTensors();
  const posts = [];
  const wire = new Wire({ send: () => posts.push(0), timeout: 1, now: () => posts.length });
  wire.close();
  assert.throws(() => wire.send("x", one), /closed/);
  await assert.rejects(wire.get("x"), /closed/);
  wire.tick();
  assert.equal(posts.length, 0);
  assert.equal(liveTensors(), before);

  const other = new Wire({ send: () => posts.push(0), timeout: 1, now: () => 0 });
  other.tick(); // which says hello, as connect() does
  assert.equal(posts.length, 1);
  other.close();
});

test("hellos without an answer come later each time", () => {
  let now = 0;
  const times = [];
  const own = new Session();
  const wire = new Wire({ send: () => times.push(now), timeout: 16, now: () => now });
  wire.connect();
  for (; now < 1100; now++) wire.tick();
  const waits = times.slice(1).map((at, i) => at - times[i]);
  assert.deepEqual(waits, [0, ...Array.from({ length: 9 }, (_, n) => 2 ** (n + 1) - 1)]);
  wire.connect(); // by the application
  assert.equal(times.at(-1), now);
  wire.close();

  const none = new Session();
  const [[frame]] = none.told()[0].slice(0, 1);
  assert.equal(frame.op, "hello");
  none.wire.tick(); // without a timeout
  assert.deepEqual(none.told(), [[], []]);
  for (const end of [own, none]) end.wire.close();
});

test("frames for a session that it does not know do not set the pace of its hellos", () => {
  let now = 0;
  const end = new Session({ timeout: 16, now: () => now });
  const ack = { op: "ack", id: 1, version: 1, first: 0, last: 0 };
  end.told();
  for (; now < 1100; now++) end.give(ack, "0".repeat(16));
  assert.ok(end.told()[0].length <= 10);
  end.wire.close();
});

test("what is not acknowledged in time is sent again", () => {
  let now = 0;
  const end = new Session({ timeout: 5, now: () => now });
  const peer = "0".repeat(16);
  end.give(hello, peer);
  end.wire.send("x", one);
  end.told();
  for (const [at, count] of [
    [4, 0],
    [5, 1],
    [10, 0],
    [14, 0],
    [15, 1],
    [34, 0],
    [35, 1],
  ]) {
    now = at;
    end.wire.tick();
    assert.equal(end.told()[0].length, count, `at ${at}`);
  }
  end.give({ op: "ack", id: 1, version: 1, first: 0, last: 1 }, peer);
  now = Number.POSITIVE_INFINITY;
  end.wire.tick();
  assert.deepEqual(end.told(), [[], []]);
  end.wire.close();
});

for (const where of ["ontensor", "onsession", "onrefuse", "send"]) {
  test(`an exception of ${where} changes nothing else`, async () => {
    let fails = false;
    const end = new Session({
      limit: 4,
      fail(kind) {
        if (kind === where && fails) throw new Error(kind);
      },
    });
    const give = (...args) => {
      fails = true;
      try {
        end.give(...args);
      } catch ({ message }) {
        assert.equal(message, where);
      }
      fails = false;
    };
    const [peer, other] = ["0".repeat(16), "1".repeat(16)];
    give(hello, peer);
    end.told();
    give(pieceOf("x"), peer);
    const [[[ack]], news] = end.told();
    assert.deepEqual([ack.op, news], ["ack", ["x"]]);
    assert.deepEqual((await end.wire.get("x")).shape, [4]);
    give(pieceOf("x", 2), peer); // over the limit until the first one is gone
    assert.equal(end.told()[0][0][0].op, "refuse");
    give(hello, other);
    end.told();
    give(pieceOf("y"), other);
    assert.equal(end.told()[0][0][0].op, "ack");
    assert.deepEqual((await end.wire.get("y")).shape, [4]);
    end.wire.close();
  });
}

// --- names --------------------------------------------------------------------------------------

const filled = (value, length = 100) => Tensor.from(new Float64Array(length).fill(value));

for (const isAtOnce of [false, true]) {
  test(`a name that is sent again replaces the tensor${isAtOnce ? ", all at once" : ""}`, async () => {
    const before = liveTensors();
    const { ends, carry, freed } = pair({ limit: 2000 });
    const remotes = [];
    for (let value = 0; value < 50; value++) {
      for (const [at, end] of ends.entries()) {
        const tensor = filled(at ? -value : value);
        remotes.push(end.send("y", tensor));
        tensor.release();
      }
      if (isAtOnce) continue;
      carry();
      assert.equal((await ends[1].get("y")).data[5], value);
      assert.equal((await ends[0].get("y")).data[5], -value);
    }
    carry();
    for (const { ready } of remotes) await ready;
    for (const remote of remotes.slice(0, -2)) {
      await assert.rejects(
        remote.write(new Float64Array(100)),
        /was sent again: write to the newer/,
      );
      remote.free();
    }
    carry();
    assert.equal(liveTensors(), before + 4); // two for each tensor
    assert.deepEqual(freed, []);
    const last = remotes.at(-2);
    const part = last.slice([1, 2]).write(Float64Array.of(7));
    carry();
    await part;
    assert.deepEqual([...(await ends[1].get("y")).data.subarray(0, 3)], [49, 7, 49]);
    last.free();
    carry();
    assert.deepEqual(freed, ["y"]);
    for (const end of ends) end.close();
    assert.equal(liveTensors(), before);
  });
}

test("what the application holds outlives the next tensor", async () => {
  const { ends, carry } = pair();
  ends[0].send("y", filled(1, 3));
  carry();
  const shown = await ends[1].get("y");
  const hold = shown.slice();
  ends[0].send("y", filled(2, 5));
  carry();
  assert.ok(shown.released);
  assert.deepEqual((await ends[1].get("y")).shape, [5]);
  assert.deepEqual([...hold.data], [1, 1, 1]);
  hold.release();
  for (const end of ends) end.close();
});

test("a tensor is replaced when all of the next one is there", async () => {
  const { ends, queues, carry } = pair({ piece: PIECE, window: PIECE });
  const old = ends[0].send("y", filled(1, 4));
  carry();
  let isReady = false;
  const { ready } = ends[0].send("y", filled(2, PIECE / 4)); // two pieces
  ready.then(() => {
    isReady = true;
  });
  let seen = 0;
  while (!isReady) {
    const { size } = await ends[1].get("y");
    if (size === 4) seen++;
    if (queues[0].length > 0) ends[1].receive(queues[0].shift());
    else ends[0].receive(queues[1].shift());
    await null;
    await null;
  }
  assert.ok(seen > 1);
  assert.equal((await ends[1].get("y")).size, PIECE / 4);
  await assert.rejects(old.write(new Float64Array(4)), /sent again/);
  for (const end of ends) end.close();
});

test("where the next tensor is refused, the one before stays", async () => {
  const { ends, carry, freed } = pair({ limit: 100 });
  const old = ends[0].send("y", filled(1, 10));
  carry();
  const next = ends[0].send("y", filled(2, 10));
  carry();
  await assert.rejects(next.ready, /limit of 100/);
  const part = old.slice([0, 1]).write(Float64Array.of(5));
  carry();
  await part;
  assert.deepEqual([...(await ends[1].get("y")).data.subarray(0, 2)], [5, 1]);
  assert.deepEqual(freed, []);
  old.free();
  carry();
  assert.deepEqual(freed, ["y"]);
  for (const end of ends) end.close();
});

test("an earlier tensor that arrives late is acknowledged and not shown", () => {
  const end = new Session();
  const peer = "0".repeat(16);
  end.give(hello, peer);
  end.told();
  const ack = (id, version, last) => [[{ op: "ack", id, version, first: 0, last }, peer]];
  for (const [body, ...answer] of [
    [pieceOf("y", 5), ack(5, 1, 4), ["y"]],
    [pieceOf("y", 4), ack(4, 1, 4), []],
    [{ op: "free", id: 4, version: 2 }, ack(4, 2, 0), []],
    [pieceOf("z", 4), ack(4, 1, 4), []], // freed for ever
    [pieceOf("y", 5, 3), ack(5, 3, 4), ["y"]],
  ]) {
    end.give(body, peer);
    assert.deepEqual(end.told(), answer);
  }
  end.give(pieceOf("y", 5, 4, [5]), peer);
  const [[[refuse]], news] = end.told();
  assert.deepEqual([refuse.op, refuse.id, refuse.version, news], ["refuse", 5, 4, ["refused"]]);
  end.wire.close();
});

test("as many early writes as a peer may send are all reported, and the first error is thrown", () => {
  let thrown = 0;
  const fail = (kind) => {
    if (kind === "ontensor") throw new Error(`${++thrown}`);
  };
  const [end, peer] = [new Session({ fail }), "0".repeat(16)];
  end.give(hello, peer);
  const give = (version, first) => {
    const [begin, last] = [first, first + 1];
    end.give({ ...pieceOf("x", 1, version, [2]), begin, end: last, first, last }, peer);
  };
  for (let version = 1; version <= 20_000; version++) give(version, 0);
  assert.throws(() => give(20_001, 1), { message: "1" });
  assert.equal(thrown, 20_001);
  end.wire.close();
});

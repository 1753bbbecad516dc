// A session of a page with a kernel: messages of any form, and what is sent again. The device is a
// fake.
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { liveTensors } from "../../../../../js/dist/index.js";
import { fakeDevice } from "../../../../../tests/js/fake_device.mjs";
import { Session } from "../../../js/dist/widget/session.js";
import { NamedTensors } from "../../../js/dist/widget/tensors.js";

let now;
let posts;
let session;
let isBroken;

beforeEach(() => {
  mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
  mock.method(performance, "now", () => now);
  mock.method(console, "error", () => {});
  [now, posts, isBroken] = [0, [], false];
  const post = (content) => {
    if (isBroken) throw new Error("the channel is closed");
    posts.push([now, JSON.parse(JSON.stringify(content))]);
  };
  session = new Session(fakeDevice(), post, new NamedTensors(), async () => {});
});

afterEach(() => {
  session.end();
  mock.timers.reset();
  mock.restoreAll();
});

function pass(seconds) {
  for (let i = 0; i < seconds; i++) {
    now += 1000;
    mock.timers.tick(1000);
  }
}

const answers = () => posts.flatMap(([, { do: body }]) => (body ? [body] : []));

test("bodies of any form are each reported once, and the next one is done", async () => {
  const before = liveTensors();
  const bodies = [
    null,
    5,
    "run",
    true,
    [],
    [1],
    {},
    { op: null },
    { op: { toString: 1 } },
    { op: 5 },
  ];
  bodies.forEach((body, i) => {
    session.receive({ n: i + 1, got: 0, do: body }, []);
  });
  session.receive(
    { n: 11, got: 0, do: { op: "cancel", name: { a: 1 }, why: { toString: 1 }, to: [] } },
    [],
  );
  session.receive({ n: 12, got: 0, do: { op: "settle", reply: 3 } }, []);
  await turn();
  assert.equal(answers().filter((body) => "fault" in body).length, bodies.length);
  assert.deepEqual(answers().at(-1), { reply: 3 });
  session.end();
  assert.equal(liveTensors(), before);
});

test("a failed operation whose answer cannot be sent is answered later, once", async () => {
  isBroken = true;
  session.receive({ n: 1, got: 0, do: { op: "read", what: 5, reply: 1 } }, []);
  session.receive({ n: 2, got: 0, do: { op: "settle", reply: 2 } }, []);
  await turn();
  assert.deepEqual(posts, []);
  isBroken = false;
  session.reconnect();
  const [failed, settled, ...more] = answers();
  assert.deepEqual([failed.reply, settled.reply, more.length], [1, 2, 0]);
  assert.match(failed.error.message, /a list, not 5/);
});

test("what is thrown in a page arrives as text", () => {
  const odd = Object.assign(new Error(), { message: { a: 1n }, label: Symbol("x"), line: "3" });
  for (const error of [odd, "text", undefined, null, 5, Object.create(null)]) session.report(error);
  const faults = answers().map(({ fault }) => fault);
  assert.ok(faults.every((fault) => typeof fault === "string"));
  assert.deepEqual(faults.slice(1, 5), ["text", "undefined", "null", "5"]);
});

test("errors of many lines arrive as a whole, up to 10000 characters", () => {
  const line = "line 3:9: unresolved value 'values'\n";
  for (const count of [20, 1000]) session.report(new Error(line.repeat(count)));
  const [{ fault }, long] = answers();
  assert.equal(fault, line.repeat(20));
  assert.equal(long.fault.length, 10_000);
});

test("what is not acknowledged is sent again, each time after twice the time", () => {
  session.report(new Error("first"));
  for (let n = 1; n <= 600; n++) {
    session.receive({ n, got: 0, do: { op: "free", what: [] } }, []); // the kernel works on
    pass(1);
  }
  const times = posts.filter(([, { n }]) => n === 1).map(([at]) => at / 1000);
  assert.deepEqual(times, [0, 35, 100, 225, 470]);
  session.receive({ got: 1 }, []);
  pass(600);
  assert.equal(posts.filter(([, { n }]) => n).length, 5);
  session.report(new Error("second"));
  const at = now / 1000;
  pass(40);
  const again = posts.filter(([, { n }]) => n === 2).map(([time]) => time / 1000 - at);
  assert.deepEqual(again, [0, 35]);
});

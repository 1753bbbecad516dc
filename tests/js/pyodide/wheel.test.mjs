// Which wheels connect() takes, and what it says of the others. tests/package has the tarball's own.
// Looks inside: what connect() turned on (net), and which wheel belongs to this build.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import process from "node:process";
import { after, test } from "node:test";
import { net } from "../../../js/dist/core/realm.js";
import { connect } from "../../../js/dist/index.js";
import { ABIS, VERSION } from "../../../js/dist/pyodide/generated.js";
import { found } from "../../package/wheel/found.js";

const DIST = new URL("../../../dist/", import.meta.url);
const { file: NAME } = JSON.parse(readFileSync(new URL("wheel.json", DIST), "utf8"));
const WHEEL = readFileSync(new URL(NAME, DIST));
const PAGE = Buffer.from("\n<!doctype html><title>Home</title>");

/** Bytes with other bytes of the same length in them. */
const changed = (from, to) => Buffer.from(WHEEL.toString("latin1").replaceAll(from, to), "latin1");

const ANSWERS = {
  "/renamed.HASH.bin": WHEEL,
  "/older.whl": changed(`dlpack_web-${VERSION}.d`, `dlpack_web-${VERSION.replace(/\d/, 9)}.d`),
  "/other.whl": changed("dlpack_web-", "somethings-"),
  "/text.whl": Buffer.from("moved"),
  "/empty.whl": Buffer.alloc(0),
};
const server = createServer(({ url }, response) => {
  if (url === "/missing.whl") response.writeHead(404, "Not Found").end(PAGE);
  else response.end(ANSWERS[url] ?? PAGE);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
after(() => server.close());
const at = (path) => `http://127.0.0.1:${server.address().port}${path}`;

for (const [path, message] of [
  ["/spa/dlpack_web.whl", /dlpack_web\.whl is an HTML page, as servers send/],
  ["/missing.whl", /missing\.whl cannot be loaded \(404 Not Found\)/],
  ["/older.whl", /older\.whl is dlpack_web 9\.[\d.]+\. Pass/],
  ["/other.whl", /other\.whl is a wheel of another package/],
  ["/text.whl", /text\.whl is not a wheel, but 5 other bytes/],
  ["/empty.whl", /empty\.whl is not a wheel, but 0 other bytes/],
]) {
  test(`${path} is refused before Python sees it`, async () => {
    const told = await found(connect, { wheel: at(path) });
    assert.match(told, message);
    assert.match(told, /Pass the URL of dist\/\*\.whl of the npm/);
  });
}

test("a Pyodide of another ABI is refused before anything is loaded", async () => {
  assert.deepEqual(
    ABIS,
    [...NAME.matchAll(/pyemscripten_(\d+_\d+)/g)].map(([, abi]) => abi),
  );
  const wheel = at("/missing.whl");
  assert.equal(
    await found(connect, { wheel }, "2027_0"),
    `Pyodide 314 has the ABI 2027_0, and dlpack-web ${VERSION} is built for ${ABIS.join(", ")}: it ` +
      "serves Pyodide 0.29 and 314",
  );
  for (const abi of [...ABIS, undefined]) {
    assert.match(await found(connect, { wheel }, abi), /missing\.whl cannot be loaded/);
  }
});

test("whatever its file is called, and however it is named, it is the same wheel", async () => {
  const path = new URL(NAME, DIST);
  const ways = [
    undefined,
    path,
    path.href,
    at("/renamed.HASH.bin"),
    new URL(at("/renamed.HASH.bin")),
  ];
  const hashes = await Promise.all(ways.map((wheel) => found(connect, { wheel })));
  assert.match(hashes[0], /^[\da-f]{64}$/);
  assert.deepEqual(new Set(hashes).size, 1);
});

test("where there are no files, bundlers are named only if the wheel was not", async () => {
  const { getBuiltinModule } = process;
  const { fetch } = globalThis;
  process.getBuiltinModule = undefined;
  globalThis.fetch = async () => {
    throw new Error("offline");
  };
  try {
    const [alone, given] = [await found(connect, {}), await found(connect, { wheel: "x.whl" })];
    assert.match(
      alone,
      /^no wheel of dlpack_web [\d.]+ was found: file:.*\.whl cannot be loaded \(offline\)\. /,
    );
    assert.ok(
      alone.endsWith(
        ". Bundlers without new URL(file, import.meta.url) leave it out: copy dist/*.whl of the npm " +
          `package dlpack-web@${VERSION} to your site, and use connect(pyodide, { wheel: url }). For Vite's ` +
          'development server set optimizeDeps: { exclude: ["dlpack-web"] } in its configuration instead',
      ),
    );
    assert.equal(
      given,
      `no wheel of dlpack_web ${VERSION} was found: x.whl cannot be loaded (offline). Pass the URL of ` +
        `dist/*.whl of the npm package dlpack-web@${VERSION}: connect(pyodide, { wheel })`,
    );
  } finally {
    process.getBuiltinModule = getBuiltinModule;
    globalThis.fetch = fetch;
  }
});

test("forgotten tensors are watched if it is asked for, and not before", async () => {
  await found(connect, { wheel: at("/text.whl") });
  assert.deepEqual([net.registry, net.onView], [null, undefined]);
  await found(connect, { wheel: at("/text.whl"), debug: true });
  assert.ok(net.registry instanceof FinalizationRegistry);
  assert.equal(typeof net.onView, "function");
});

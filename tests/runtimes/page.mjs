// A page for the cases of tests/browser in this process: WebGPU, Pyodide, the harness, and no server.
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const SITE = `${ROOT}build/site/`;
const DAWN = `${ROOT}build/dawn/node_modules/webgpu/index.js`;
/** The driver for tests, which Debian's package chromium brings along. */
const SWIFTSHADER = "/usr/lib/chromium/vk_swiftshader_icd.json";
const COMPILERS = JSON.parse(
  readFileSync(new URL("suite.json", import.meta.url), "utf8"),
).compilers;

/** Chooses SwiftShader, unless the environment names a driver; says which adapter is expected. */
function chooseDriver() {
  const { env } = process;
  env.XDG_RUNTIME_DIR ??= tmpdir(); // the loader complains where there is none
  if (env.VK_DRIVER_FILES || !existsSync(SWIFTSHADER)) return /./;
  env.VK_DRIVER_FILES = env.VK_ICD_FILENAMES = SWIFTSHADER; // the second is that of older loaders
  return /swiftshader/i;
}

/** What is missing here, which `make suite NAME=js` would set up; null: nothing. */
async function missing() {
  if (!existsSync(DAWN)) return "build/dawn is missing: `make suite NAME=js` installs it";
  if (!existsSync(`${SITE}wheel/wheel.json`)) return "build/site is not complete: run `make site`";
  const problem = await import("./node.mjs").then(
    () => null,
    (error) => `Dawn does not load: ${error.message}`,
  );
  if (problem) return problem;
  if (await navigator.gpu.requestAdapter()) return null;
  return `Dawn finds no adapter: install a Vulkan driver, such as ${SWIFTSHADER}, and libvulkan`;
}

/**
 * Starts the harness of the test pages in this process.
 *
 * @returns `{ missing }` where there is no WebGPU: why
 * @throws Error in place of that where the environment variable WEBGPU is "required"
 */
export async function openPage() {
  const driver = chooseDriver();
  Object.assign(process.env, {
    PAGE_URL: "http://page.invalid/",
    PAGE_ROOT: ROOT,
    PAGE_WEBGPU: DAWN,
  });
  const reason = await missing();
  if (reason !== null) {
    if (process.env.WEBGPU === "required") throw new Error(reason);
    return { missing: reason };
  }
  setFlagsFromString("--expose-gc");
  globalThis.gc ??= runInNewContext("gc"); // cases look for it
  const { where } = await import("./where.mjs");
  const { webgpu, compiler } = await where();
  await import("/tests/browser/hosts/harness.mjs");
  const { harness } = globalThis;
  const { file } = JSON.parse(readFileSync(`${SITE}wheel/wheel.json`, "utf8"));
  await harness.start({
    pyodideDir: "/pyodide/",
    wheel: `/wheel/${file}`,
    root: SITE.slice(0, -1),
  });
  return {
    missing: null,
    where: webgpu,
    compiler,
    expected: { compiler: new RegExp(COMPILERS.Dawn), driver },
    names: async (url) => Object.keys(await import(url)),
    context: harness.context,
    run: async (url, name) => (await harness.cases(url, name)).reports[0],
    withoutProcess,
  };
}

/** Runs `block` as in a page: libraries look for `process` to tell Node, and use no WebGPU there. */
async function withoutProcess(block) {
  const { process, self, WorkerGlobalScope } = globalThis;
  Object.assign(globalThis, { process: undefined, self: globalThis });
  globalThis.WorkerGlobalScope = class {};
  try {
    return await block();
  } finally {
    Object.assign(globalThis, { process, self, WorkerGlobalScope });
  }
}

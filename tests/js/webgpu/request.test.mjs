// Requests of devices: what an adapter is asked for, and which devices are reused. The adapter is a fake;
// tests/browser has the real one.
// Looks inside: the one request that runs is counted, which requestDevice() hides.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { webgpu } from "../../../js/dist/index.js";
import { requestOnce } from "../../../js/dist/webgpu/device/request.js";
import { fakeBuffer, fakeDevice as idleDevice } from "../fake_device.mjs";

const PAGE = Symbol.for("dlpack.device");
const LIMITS = {
  maxBufferSize: 4096,
  maxStorageBufferBindingSize: 1024,
  maxBindGroups: 4,
  minUniformBufferOffsetAlignment: 256,
};

function fakeDevice({ requiredFeatures = [], requiredLimits = {}, label = "" } = {}) {
  const device = {
    ...idleDevice(),
    label,
    features: new Set(requiredFeatures),
    limits: {
      maxBindGroups: 2,
      minUniformBufferOffsetAlignment: 256,
      maxBufferSize: 256,
      ...requiredLimits,
    },
    isLost: false,
    createBuffer: ({ size }) =>
      Object.assign(fakeBuffer(size), {
        mapAsync: async () => {
          if (device.isLost) throw new Error("lost");
        },
      }),
  };
  return device;
}

/** Puts an adapter there, and notes what it and the page are asked for. */
function adapterWith({ features = [], limits = LIMITS, refuse } = {}) {
  const asked = { adapters: [], devices: [] };
  const adapter = {
    features: new Set(features),
    limits,
    async requestDevice(descriptor) {
      asked.devices.push(descriptor);
      if (refuse) throw new Error(refuse);
      return fakeDevice(descriptor);
    },
  };
  const gpu = {
    async requestAdapter(options) {
      asked.adapters.push(options);
      return adapter;
    },
  };
  navigate({ gpu });
  return asked;
}

const own = Object.getOwnPropertyDescriptor(globalThis, "navigator");
const navigate = (value) =>
  Object.defineProperty(globalThis, "navigator", { value, configurable: true });

afterEach(() => {
  delete globalThis[PAGE];
  if (own) Object.defineProperty(globalThis, "navigator", own);
  else delete globalThis.navigator;
});

test("without options a device has the adapter's room and the features that it has of ours", async () => {
  const asked = adapterWith({ features: ["subgroups", "texture-compression-bc"] });
  await webgpu.requestDevice();
  assert.deepEqual(asked, {
    adapters: [{}],
    devices: [
      {
        label: "",
        requiredFeatures: ["subgroups"],
        requiredLimits: { maxBufferSize: 4096, maxStorageBufferBindingSize: 1024 },
      },
    ],
  });
});

test("options name features, limits, the kind of adapter and a label", async () => {
  const asked = adapterWith({ features: ["shader-f16", "subgroups"] });
  const device = await webgpu.requestDevice({
    features: new Set(["shader-f16"]),
    maxBufferSize: 512,
    maxBindGroups: Number.POSITIVE_INFINITY,
    minUniformBufferOffsetAlignment: 512, // larger is less: the browser checks it
    maxStorageBufferBindingSize: undefined,
    powerPreference: "low-power",
    featureLevel: "compatibility",
    forceFallbackAdapter: true,
    label: "mine",
  });
  assert.equal(device.label, "mine");
  assert.deepEqual(asked, {
    adapters: [
      { powerPreference: "low-power", featureLevel: "compatibility", forceFallbackAdapter: true },
    ],
    devices: [
      {
        label: "mine",
        requiredFeatures: ["shader-f16"],
        requiredLimits: {
          maxBufferSize: 512,
          maxStorageBufferBindingSize: 1024,
          maxBindGroups: 4,
          minUniformBufferOffsetAlignment: 512,
        },
      },
    ],
  });
});

for (const [what, options, error] of [
  [
    "a single feature",
    { features: "shader-f16" },
    {
      name: "TypeError",
      message: 'features must be a list of names: ["shader-f16"], not "shader-f16"',
    },
  ],
  ["another adapter", { powerPreference: "fast" }, { message: /^powerPreference .* not "fast"$/ }],
  ["a level", { featureLevel: "full" }, { message: /^featureLevel must be core or compatibility/ }],
  ["no flag", { forceFallbackAdapter: 1 }, { message: /^forceFallbackAdapter must be a boolean/ }],
  ["a limit below 0", { maxBufferSize: -1 }, { message: /-1 is not a number from 0 on$/ }],
  [
    "an unknown option",
    { maxBuffers: 3 },
    {
      name: "TypeError",
      message: "a request of a device has no option maxBuffers: use maxBufferSize",
    },
  ],
  [
    "limits as WebGPU takes them",
    { limits: { maxBufferSize: 512 } },
    {
      name: "TypeError",
      message: /no option limits: use each limit by its own name, for example maxBufferSize/,
    },
  ],
  [
    "a limit that is no number",
    { maxBufferSize: "512" },
    { name: "TypeError", message: /^maxBufferSize: 512 is not a number/ },
  ],
  [
    "more than the adapter has",
    { maxBufferSize: 4097 },
    {
      name: "UnsupportedError",
      message: "maxBufferSize: 4097 is more than this adapter has (4096); Infinity asks for that",
      given: 4097,
      needed: 4096,
    },
  ],
]) {
  test(`${what} is refused before a device is asked for`, async () => {
    const asked = adapterWith();
    await assert.rejects(webgpu.requestDevice(options), error);
    globalThis[PAGE] = fakeDevice();
    await assert.rejects(webgpu.pageDevice(options), error);
    assert.deepEqual(asked.devices, []);
  });
}

test("what is missing is named: WebGPU, an adapter, a device", async () => {
  navigate({});
  await assert.rejects(webgpu.requestDevice(), {
    name: "DeviceError",
    message:
      "no WebGPU here (navigator.gpu is missing): use a browser that has it, on https:// or " +
      "localhost; Chrome on Linux may need chrome://flags/#enable-unsafe-webgpu",
  });
  navigate({ gpu: { requestAdapter: async () => null } });
  await assert.rejects(webgpu.requestDevice(), {
    name: "DeviceError",
    message:
      "WebGPU found no adapter: the driver may be blocked or missing; see chrome://gpu or " +
      "about:support",
  });
  adapterWith({ refuse: "no memory" });
  const error = await webgpu.requestDevice().catch((thrown) => thrown);
  assert.deepEqual(
    [error.name, error.message, error.cause.message],
    ["DeviceError", "the adapter gave no device: no memory", "no memory"],
  );
});

test("too large a tensor names what its adapter has", async () => {
  adapterWith();
  const device = await webgpu.requestDevice({ maxBufferSize: 256 });
  const record = (await import("../../../js/dist/webgpu/device/device.js")).useDevice(device);
  const { obtain } = await import("../../../js/dist/webgpu/buffers/pool.js");
  const name = `${record.named}`;
  assert.throws(() => obtain(record, 1024, 140), {
    message:
      `1024 bytes are needed, ${name} allows 256 (maxBufferSize) in one buffer and its adapter ` +
      "4096: use a device from requestDevice({ maxBufferSize: 1024 })",
  });
  assert.throws(() => obtain(record, 8192, 140), {
    message:
      `8192 bytes are needed, ${name} allows 256 (maxBufferSize) in one buffer and its adapter ` +
      "4096: no device of that has more: use several tensors",
    given: 8192,
    needed: 256,
    device: name,
  });
});

test("Python's requests reuse a device of the same options that works", async () => {
  const asked = adapterWith();
  const one = await requestOnce({ maxBufferSize: 512, maxBindGroups: 3, label: undefined });
  assert.equal(await requestOnce({ maxBindGroups: 3, maxBufferSize: 512 }), one);
  const two = await requestOnce({ maxBufferSize: 1024 });
  assert.notEqual(two, one);
  assert.equal(await requestOnce({ maxBufferSize: 1024 }), two);
  assert.equal(asked.devices.length, 2);
  const any = await requestOnce({});
  assert.equal(await requestOnce({ label: undefined }), any);
  assert.equal(asked.devices.length, 2);
  two.isLost = true;
  const three = await requestOnce({ maxBufferSize: 1024 });
  assert.notEqual(three, two);
  assert.equal(asked.devices.length, 3);
});

test("of two requests at once the second gets the first one's device, also after one that fails", async () => {
  adapterWith({ refuse: "busy" });
  const refused = requestOnce({ maxBindGroups: 1 });
  const asked = adapterWith();
  const [first, second] = [requestOnce({ maxBindGroups: 1 }), requestOnce({ maxBindGroups: 1 })];
  await refused.catch(() => {});
  assert.equal(await first, await second);
  assert.ok(asked.devices.length <= 1);
});

test("the page's device has all that its adapter has, and everybody gets it", async () => {
  const limits = { ...LIMITS, toString: () => "no limit" };
  const asked = adapterWith({ features: ["shader-f16", "subgroups"], limits });
  const request = webgpu.pageDevice({ powerPreference: "high-performance" });
  assert.equal(typeof globalThis[PAGE].then, "function");
  const device = await request;
  assert.equal(await globalThis[PAGE], device);
  assert.deepEqual(asked, {
    adapters: [{ powerPreference: "high-performance" }],
    devices: [{ requiredFeatures: ["shader-f16", "subgroups"], requiredLimits: LIMITS }],
  });
  assert.equal(await webgpu.pageDevice(), device);
  assert.equal(await webgpu.pageDevice({ features: ["subgroups"], maxBufferSize: 4096 }), device);
  assert.equal(await webgpu.pageDevice({ maxBindGroups: Number.POSITIVE_INFINITY }), device);
  assert.equal(await webgpu.pageDevice({ minUniformBufferOffsetAlignment: 512 }), device);
  assert.equal(asked.devices.length, 1);
  assert.notEqual(await webgpu.pageDevice({ forceFallbackAdapter: true }), device);
  Object.assign(device, { adapterInfo: { isFallbackAdapter: true } });
  assert.equal(await webgpu.pageDevice({ forceFallbackAdapter: true }), device);
});

test("a wrong option fails for its caller, and not for all who share the page's device", async () => {
  const asked = adapterWith();
  const request = webgpu.pageDevice({ powerPreference: "fast" });
  await assert.rejects(request, { name: "TypeError", message: /^powerPreference must be/ });
  assert.deepEqual(asked.adapters, [{}]);
  assert.equal(await webgpu.pageDevice(), await globalThis[PAGE]);
});

for (const options of [
  { features: ["subgroups"] },
  { maxBufferSize: 4096 },
  { minUniformBufferOffsetAlignment: 128 },
  { features: new Set(["subgroups"]).values() },
  { maxBindGroups: Number.POSITIVE_INFINITY },
]) {
  test(`what the page's device lacks gets a device of its own: ${JSON.stringify(options)}`, async () => {
    const asked = adapterWith({ features: ["subgroups"] });
    const theirs = fakeDevice();
    globalThis[PAGE] = theirs;
    assert.equal(await webgpu.pageDevice({ maxBufferSize: 256 }), theirs);
    const own = await webgpu.pageDevice(options);
    assert.notEqual(own, theirs);
    assert.ok(own.features.has("subgroups"));
    assert.equal(asked.devices.length, 1);
    assert.equal(globalThis[PAGE], theirs);
  });
}

test("a page's device that is lost, or whose request failed, is replaced", async () => {
  const asked = adapterWith();
  globalThis[PAGE] = Object.assign(fakeDevice(), { isLost: true });
  const device = await webgpu.pageDevice();
  assert.equal(await globalThis[PAGE], device);
  assert.equal(asked.devices.length, 1);
  globalThis[PAGE] = Promise.reject(new Error("theirs"));
  assert.notEqual(await webgpu.pageDevice(), device);
  assert.equal(asked.devices.length, 2);
});

test("a request that failed removes nothing that another library put there meanwhile", async () => {
  const asked = adapterWith();
  globalThis[PAGE] = Promise.reject(new Error("theirs"));
  const waiting = webgpu.pageDevice();
  const next = fakeDevice();
  globalThis[PAGE] = next;
  assert.equal(await waiting, next);
  assert.equal(globalThis[PAGE], next);
  assert.equal(asked.devices.length, 0);
});

test("a request for the page's device that fails leaves none", async () => {
  adapterWith({ refuse: "no memory" });
  const [one, two] = await Promise.allSettled([webgpu.pageDevice(), webgpu.pageDevice()]);
  assert.match(one.reason.message, /no memory/);
  assert.match(two.reason.message, /no memory/);
  assert.equal(PAGE in globalThis, false);
});

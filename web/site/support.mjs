// What every page shares and what needs neither Python nor the library: is WebGPU there, was
// the page opened to run automatically, and where does its result go.

/** True when the page was opened to run automatically. */
export function opensByItself() {
  return location.hash === "#auto" || new URLSearchParams(location.search).has("auto");
}

/** Leaves the result where the driver of the page (web/demo.py, the tests) looks for it. */
export function publish(result) {
  globalThis.__result = result;
  dispatchEvent(new Event("result"));
}

/** Why WebGPU cannot be used here and what to do about it; null when it can. */
export async function webgpuProblem() {
  if (!globalThis.isSecureContext) {
    return "Browsers offer WebGPU only over https or on localhost: open the page there.";
  }
  if (!navigator.gpu) {
    return (
      "This browser has no WebGPU. Use Chrome or Edge 113 or later, Safari 26 or later, or " +
      "Firefox 141 or later (where it is off: about:config, dom.webgpu.enabled)."
    );
  }
  if (!(await navigator.gpu.requestAdapter())) {
    return (
      "WebGPU is there, but it offers no adapter: the graphics driver is missing or blocked. " +
      "Turn hardware acceleration on (chrome://gpu shows its state), or start Chrome with " +
      "--enable-unsafe-webgpu --use-webgpu-adapter=swiftshader to use the software one."
    );
  }
  return null;
}

/**
 * Says what is missing before anybody presses Run: the button stays off until it is there, and a
 * press of "Look again" asks once more.
 */
export async function showMissing(box, button) {
  button.disabled = true;
  const problem = await webgpuProblem();
  button.disabled = problem !== null;
  box.hidden = problem === null;
  if (problem === null) return true;
  const again = Object.assign(document.createElement("button"), {
    type: "button",
    className: "small",
    textContent: "Look again",
  });
  again.addEventListener("click", () => showMissing(box, button));
  box.replaceChildren(`This page cannot run here. ${problem} `, again);
  return false;
}

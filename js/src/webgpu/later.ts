/** All that is asynchronous, loaded at the first use of any of it. */
export { explain } from "./compiling.js";
export { fromImage, toCanvas, toTexture } from "./image.js";
export { requestDevice } from "./request.js";
export { timed } from "./timing.js";

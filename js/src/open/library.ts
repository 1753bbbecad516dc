/** What the first file loads. */
export { open } from "./open.js";
export { save } from "./save.js";

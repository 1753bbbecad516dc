export { default as tgpu } from "typegpu";
export * as d from "typegpu/data";

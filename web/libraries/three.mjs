export * as TSL from "three/tsl";
export * from "three/webgpu";

export * from "three/webgpu";
export * as TSL from "three/tsl";

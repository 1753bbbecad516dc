// TensorFlow.js with the two backends that tensors are shared with.
import "@tensorflow/tfjs-backend-cpu";
import "@tensorflow/tfjs-backend-webgpu";

export * from "@tensorflow/tfjs-core";

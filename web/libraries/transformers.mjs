// transformers.js 4 with the onnxruntime-web that it asks for. Version 3 is used as its package has it,
// in one file. What both need in Node alone, onnxruntime-node and sharp, is hundreds of megabytes:
// package.json overrides them with something small.
export * from "@huggingface/transformers";

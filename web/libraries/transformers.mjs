// transformers.js 4 with a copy of onnxruntime-web of its own. Version 3 is used as its package has
// it, in one file. What both need in Node alone, onnxruntime-node and sharp, is hundreds of
// megabytes: package.json overrides them with something small.
export * from "@huggingface/transformers";

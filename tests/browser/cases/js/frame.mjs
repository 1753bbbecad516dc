// What an iframe runs: the library once more, in a realm of its own (realm_cases.mjs).
globalThis.loaded = import("/js/index.js");

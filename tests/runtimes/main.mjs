// What a test page is to a browser, for runtimes without pages: the same harness, which runtime.py
// or the kit's runtime.mjs calls.
import { answer } from "./host.mjs";

await import("/tests/browser/hosts/harness.mjs");
await answer(globalThis.harness);

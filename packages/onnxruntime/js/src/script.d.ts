/** calls.ts with all that it imports, as a function: tools/bundle_scripts.mjs makes it. */
declare const script: import("dlpack-web").Package["script"];
export default script;

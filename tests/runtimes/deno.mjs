// What Pyodide 0.29 asks for in Deno, and Deno lacks.
import { createRequire } from "node:module";

globalThis.require ??= createRequire("/");
globalThis.__dirname ??= "/";

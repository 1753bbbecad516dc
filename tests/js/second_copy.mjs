// Another copy of the library in this realm, as a wheel and an npm package make two.
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const folder = mkdtempSync(join(tmpdir(), "dlpack-web-"));
after(() => rmSync(folder, { recursive: true }));
cpSync(fileURLToPath(new URL("../../js/dist", import.meta.url)), folder, { recursive: true });
writeFileSync(join(folder, "package.json"), '{"type": "module"}');

export const load = (path) => import(pathToFileURL(join(folder, path)));

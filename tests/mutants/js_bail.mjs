// Imported before a file of tests (node --import): the first test that fails ends it.
import process from "node:process";
import { afterEach } from "node:test";

afterEach((test) => {
  if (test.passed === false) process.exit(1);
});

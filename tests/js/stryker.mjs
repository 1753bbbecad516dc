// Configures StrykerJS for `make mutants WHAT=js`, which runs it in a copy of this project.
const [js] = /^(packages\/[\w-]+\/)?js\//.exec(process.env.FILE);
export default {
  mutate: [process.env.FILE],
  testRunner: "tap",
  plugins: ["@stryker-mutator/tap-runner"],
  tap: { testFiles: process.env.TESTS.split(" ").map((folder) => `${folder}/**/*.test.mjs`) },
  buildCommand: `node_modules/.bin/esbuild ${js}src/**/*.ts --outdir=${js}dist --outbase=${js}src --target=es2022 --log-level=warning`,
  inPlace: true,
  tsconfigFile: "none", // TypeScript 7 has no API for Stryker
  reporters: ["clear-text"],
  concurrency: 2,
};

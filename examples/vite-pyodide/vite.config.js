// The top-level await of main.ts: Vite 6 builds for browsers without it, unless it is told otherwise.
export default { build: { target: "es2022" } };

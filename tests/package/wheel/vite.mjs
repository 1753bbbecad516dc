// vite.mjs NAME CONFIG: a development server of the Vite that is installed by that name. Says where
// it is, and ends with its input.
const [, , name, config] = process.argv;
const { createServer } = await import(name);
const server = await createServer({
  configFile: false,
  logLevel: "warn",
  cacheDir: `node_modules/.${name}`,
  ...JSON.parse(config),
  server: { host: "127.0.0.1" },
});
await server.listen();
console.log(server.resolvedUrls.local[0]);
process.stdin.on("end", () => process.exit()).resume();

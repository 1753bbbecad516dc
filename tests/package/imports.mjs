// imports.mjs none|thrower NAME...: imports entry points as a server does that renders pages. What
// pages and browsers have is not there, or throws when it is touched.
const [how, ...names] = process.argv.slice(2);

const OF_BROWSERS = [
  "navigator",
  "document",
  "location",
  "self",
  "window",
  "GPU",
  "GPUBufferUsage",
  "GPUMapMode",
  "GPUTextureUsage",
];
const touched = [];
for (const name of OF_BROWSERS) {
  const get = () => {
    touched.push(name);
    throw new Error(`${name} was touched`);
  };
  const property = how === "none" ? { value: undefined } : { get };
  Object.defineProperty(globalThis, name, { ...property, configurable: true });
}

const found = {};
for (const name of names) {
  try {
    found[name] = Object.keys(await import(name)).length;
  } catch (error) {
    found[name] = `${error}`;
  }
}
console.log(JSON.stringify({ found, touched }));

// The kit's site on 127.0.0.1, as pages find ours: Deno's modules come by URLs.
import { createReadStream } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, sep } from "node:path";

const TYPES = {
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

async function fileOf(root, url) {
  const { pathname } = new URL(url, "http://127.0.0.1");
  const file = await realpath(join(root, decodeURIComponent(pathname)));
  const known = file.startsWith(root + sep) && (await stat(file)).isFile();
  return known ? file : null;
}

/** Resolves to `{url, close}`. */
export async function serve(folder) {
  const root = await realpath(folder);
  const server = createServer(async (request, response) => {
    const file = await fileOf(root, request.url).catch(() => null);
    if (file === null) {
      response.writeHead(404).end("There is no such file\n");
      return;
    }
    const type = TYPES[extname(file)] ?? "application/octet-stream";
    response.writeHead(200, { "content-type": type });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close: () => server.close(),
  };
}

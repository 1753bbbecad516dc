// Resolves paths from the site's root to files, as the server of the pages does. It is loaded by
// node.mjs, in older Nodes into a thread of its own, with the environment that node.mjs reads.
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const { PAGE_URL, PAGE_ROOT } = process.env;
const SITE = join(PAGE_ROOT, "build", "site");
/** Folders outside the site, by the paths at which the server has them. */
const MOUNTS = {
  "/tests/": join(PAGE_ROOT, "tests"),
  "/packages/": join(PAGE_ROOT, "packages"),
  "/js-source/": join(PAGE_ROOT, "js"),
};

/** The file that a path, or a URL of the server, names; null for all others. */
export function fileOf(specifier) {
  const [path] = specifier.replace(PAGE_URL, "/").split(/[?#]/);
  if (!path.startsWith("/")) return null;
  const mount = Object.keys(MOUNTS).find((each) => path.startsWith(each));
  const file = mount ? join(MOUNTS[mount], path.slice(mount.length)) : join(SITE, path);
  return existsSync(file) ? realpathSync(file) : null;
}

/** Marks the modules below /js-source/: the library once more, which a page has there by its URLs. */
const AGAIN = "?again";

/** A module hook of Node. A query makes another copy of a module, as it does in a page. */
export function resolve(specifier, context, next) {
  const { parentURL } = context;
  if (specifier.startsWith(".") && parentURL?.endsWith(AGAIN)) {
    const url = new URL(specifier, parentURL).href + AGAIN;
    return { url, format: "module", shortCircuit: true };
  }
  const file = fileOf(specifier);
  if (file === null) return next(specifier, context);
  const [query = specifier.startsWith("/js-source/") ? AGAIN : ""] = /\?.*/.exec(specifier) ?? [];
  return { url: pathToFileURL(file).href + query, format: "module", shortCircuit: true };
}

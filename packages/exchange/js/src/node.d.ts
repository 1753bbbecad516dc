/** The little of Node that the command line uses, which Deno and Bun have as well. */
declare module "node:process" {
  const process: { readonly argv: readonly string[]; exit(code: number): never };
  export default process;
}
declare module "node:url" {
  export function pathToFileURL(path: string): { readonly href: string };
}

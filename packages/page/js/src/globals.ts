/** Browser types that your TypeScript may lack: each is your own type if there is one. */
type Known<Name extends string, Otherwise> = typeof globalThis extends {
  [name in Name]: { prototype: infer T };
}
  ? T
  : Otherwise;

export type HTMLElement = Known<"HTMLElement", never>;
export type AbortSignal = Known<
  "AbortSignal",
  { readonly aborted: boolean; readonly reason: unknown }
>;

/** Browser types that a TypeScript may lack: its own where it has them, else the members declared here. */
type Known<Name extends string, Otherwise> = typeof globalThis extends {
  [name in Name]: { prototype: infer T };
}
  ? T
  : Otherwise;

export type AbortSignal = Known<
  "AbortSignal",
  { readonly aborted: boolean; readonly reason: unknown }
>;
export type GPUBuffer = Known<
  "GPUBuffer",
  { label: string; readonly size: number; readonly usage: number; destroy(): void }
>;
export type GPUDevice = Known<
  "GPUDevice",
  { label: string; readonly queue: object; readonly lost: Promise<unknown>; destroy(): void }
>;

/** The index of a model in several safetensors files, which says in which shard each tensor is. */
import { concat } from "../core/bytes.js";
import { cut, textOf } from "../core/errors.js";
import type { Cursor } from "./cursor.js";
import { malformed, textIn } from "./entry.js";
import type { Contents } from "./file.js";
import { strictJSON } from "./json.js";
import type { Source } from "./source.js";

/** Bytes that an index has at most. */
const MOST = 100_000_000;
/** Shards whose headers are read at the same time. */
const AT_ONCE = 6;
/** The names of shards: their common beginning, their number, and how many there are. */
const NUMBERED = /^(.*)-(\d{1,6})-of-(\d{1,6})(\.\w+)$/s;

/** What an index says. */
export interface Index {
  /** The names of the shards, in the order of the first tensor of each. */
  readonly shards: readonly string[];
  /** The shard of each tensor. */
  readonly shardOf: ReadonlyMap<string, string>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The index at a cursor that is at its start. */
export async function indexFrom(source: Source, cursor: Cursor) {
  const { name } = source;
  if (!source.sibling) {
    throw malformed(
      name,
      "it is the index of a sharded model, and its shards are not known: open its URL, the list of all " +
        "files, or the directory handle",
    );
  }
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of cursor.rest()) {
    size += chunk.length;
    if (size > MOST) throw malformed(name, `an index of more than ${MOST} bytes`);
    parts.push(chunk.slice());
  }
  const index = parseIndex(concat(parts), name);
  checkNames(index.shards, source.beside ?? [], name);
  return { ...index, siblingOf: source.sibling };
}

/** Parses an index; of each name the shard must be a file beside it. */
export function parseIndex(bytes: Uint8Array, what: string): Index {
  const fields = new Map(strictJSON(textIn(bytes, what, "UTF-8"), what, /^/));
  const map = fields.get("weight_map");
  if (!isPlain(map)) {
    throw malformed(what, "it is no index of a sharded model: weight_map, an object, is needed");
  }
  const shardOf = new Map<string, string>();
  for (const [name, shard] of Object.entries(map)) {
    if (typeof shard !== "string" || !/^(?!\.\.?$)[^/\\\0]{1,255}$/.test(shard)) {
      throw malformed(
        what,
        `the shard of "${cut(name)}" is ${cut(textOf(shard))}, which is not the name of a file beside it`,
      );
    }
    shardOf.set(name, shard);
  }
  const given = fields.get("metadata") ?? {};
  if (!isPlain(given)) throw malformed(what, "its metadata is not an object");
  const metadata = Object.entries(given).map(([key, value]) => [
    key,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
  const shards = [...new Set(shardOf.values())];
  return { shards, shardOf, metadata: Object.fromEntries(metadata) };
}

function isPlain(given: unknown): given is Record<string, unknown> {
  return typeof given === "object" && given !== null && !Array.isArray(given);
}

/** Throws for numbered shards of which one is not in the index, or that count themselves otherwise. */
export function checkNames(shards: readonly string[], beside: readonly string[], what: string) {
  const listed = new Set(shards);
  const found = new Map<string, string>(); // what they have in common, and the last of them
  for (const shard of shards) {
    const [, stem, , count, suffix] = NUMBERED.exec(shard) ?? [];
    if (stem === undefined) continue;
    const other = found.get(stem + suffix);
    if (other !== undefined && NUMBERED.exec(other)?.[3] !== count) {
      throw malformed(what, `its shards "${cut(other)}" and "${cut(shard)}" contradict each other`);
    }
    found.set(stem + suffix, shard);
  }
  for (const shard of found.values()) {
    const [, stem, number, count, suffix] = NUMBERED.exec(shard) as unknown as string[];
    const width = (number as string).length;
    const named = (i: number) => `${stem}-${String(i).padStart(width, "0")}-of-${count}${suffix}`;
    const first = listed.has(named(0)) ? 0 : 1;
    for (let i = first; i < Number(count) + first; i++) {
      if (listed.has(named(i))) continue;
      throw malformed(what, `it lacks shard "${cut(named(i))}"`);
    }
  }
  for (const name of beside) {
    const [, stem, , , suffix] = NUMBERED.exec(name) ?? [];
    if (stem !== undefined && found.has(stem + suffix) && !listed.has(name)) {
      throw malformed(what, `shard "${cut(name)}" is beside it, and not in it`);
    }
  }
}

/** Throws unless the shards have the tensors that the index lists, and no others. */
export function checkShards(
  { shards, shardOf }: Pick<Index, "shards" | "shardOf">,
  found: readonly (Pick<Contents, "entries"> & { shard: string })[],
  what: string,
): void {
  const there = new Map(shards.map((shard) => [shard, new Set<string>()]));
  for (const { shard, entries } of found) {
    for (const { name } of entries) {
      const listed = shardOf.get(name);
      if (listed !== shard) {
        const says = listed === undefined ? "does not list" : `says is in "${cut(listed)}"`;
        throw malformed(
          what,
          `shard "${cut(shard)}" has tensor "${cut(name)}", which the index ${says}`,
        );
      }
      there.get(shard)?.add(name);
    }
  }
  for (const [name, shard] of shardOf) {
    if (there.get(shard)?.has(name)) continue;
    throw malformed(
      what,
      `shard "${cut(shard)}" lacks tensor "${cut(name)}", which the index lists`,
    );
  }
}

/** What is opened for some names, a few at a time; an error closes those that are open. */
export async function opened<C extends Contents>(
  names: readonly string[],
  open: (name: string) => Promise<C>,
): Promise<C[]> {
  const found: C[] = [];
  let next = 0;
  let failed = false;
  const work = async () => {
    while (next < names.length && !failed) {
      const i = next++;
      try {
        found[i] = await open(names[i] as string);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const done = await Promise.allSettled(Array.from({ length: AT_ONCE }, work));
  const failure = done.find(({ status }) => status === "rejected");
  if (failure === undefined) return found;
  for (const each of found) each?.reader.close();
  throw (failure as PromiseRejectedResult).reason;
}

import { OURS, PREDECLARED, RESERVED } from "./generated.js";

const isIn = (name: string, words: string) => words.split(" ").includes(name);

/**
 * Why a parameter of a formula cannot have a name: "it is …"; undefined if it can.
 *
 * @param raw - a raw parameter is a variable of the module, and would take the place of what WGSL declares;
 * others are variables of a function
 */
export function reasonAgainst(name: string, raw: boolean, more: string): string | undefined {
  if (isIn(name, RESERVED)) return "reserved in WGSL";
  if (name.startsWith("_") || isIn(name, OURS) || isIn(name, more)) return "reserved";
  return raw && PREDECLARED.test(name) ? "declared by WGSL itself" : undefined;
}

/** Whether two types are one and the same, `any` being no other's. */
export type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Does not compile unless they are: `same<A, B>(true)`. */
export function same<A, B>(_yes: Same<A, B>): void {}

/** What scripts of packages are given. */
export * as internal from "../internal.js";

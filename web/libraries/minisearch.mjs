// The documentation's search.
export { default as MiniSearch } from "minisearch";

// DuckDB-wasm as it runs on the page itself, with the Arrow that it asks for. Its package names no
// module for that; its WebAssembly is beside this in the folder `duckdb`.
export * from "./node_modules/@duckdb/duckdb-wasm/dist/duckdb-browser-blocking.mjs";

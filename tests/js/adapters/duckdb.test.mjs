// DuckDB-wasm (the real one, with the Arrow of its own): columns of its results are tensors.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { before, test } from "node:test";
import * as arrow from "../../../build/libraries/site/arrow.mjs";
import { fromArrow } from "../../../js/dist/adapters/arrow.js";
import "../nothing_leaks.mjs";

const require = createRequire(new URL("../../../build/libraries/package.json", import.meta.url));
const duckdb = require("@duckdb/duckdb-wasm/blocking");
const folder = dirname(require.resolve("@duckdb/duckdb-wasm/dist/duckdb-eh.wasm"));
const same = (a, b) => a.buffer === b.buffer && a.byteOffset === b.byteOffset;

let connection;
before(async () => {
  const bundles = Object.fromEntries(
    ["mvp", "eh"].map((name) => [name, { mainModule: `${folder}/duckdb-${name}.wasm` }]),
  );
  const logger = new duckdb.VoidLogger();
  const database = await duckdb.createDuckDB(bundles, logger, duckdb.NODE_RUNTIME);
  await database.instantiate(() => {});
  connection = database.connect();
});

/** What DuckDB itself makes of a query's only number. */
const number = (sql) => Number(connection.query(sql).get(0).toArray()[0]);

/** What a column of n rows is over, and DuckDB's type of it. */
const column = (sql, n) => connection.query(`SELECT ${sql} AS x FROM range(${n}) AS _(i)`);

test("a column of one chunk is a tensor without a copy", () => {
  const types = {
    TINYINT: "int8",
    SMALLINT: "int16",
    INTEGER: "int32",
    BIGINT: "int64",
    UTINYINT: "uint8",
    USMALLINT: "uint16",
    UINTEGER: "uint32",
    UBIGINT: "uint64",
    FLOAT: "float32",
    DOUBLE: "float64",
  };
  for (const [type, dtype] of Object.entries(types)) {
    const table = column(`CAST(i AS ${type})`, 100);
    assert.ok(!(table instanceof arrow.Table), "it is of another copy of Arrow");
    const tensor = fromArrow(null, table, { copy: false });
    assert.deepEqual([tensor.dtype, tensor.shape], [dtype, [100]]);
    assert.ok(same(tensor.data, table.getChild("x").data[0].values));
    assert.deepEqual(
      [...tensor].map(Number),
      Array.from({ length: 100 }, (_, i) => i),
    );
    tensor.release();
  }
});

test("columns of several chunks are joined, with one copy", () => {
  const table = column("CAST(i * 0.5 AS FLOAT)", 5000);
  assert.ok(table.batches.length > 1);
  const refuse = () => fromArrow(null, table, { copy: false });
  assert.throws(refuse, { name: "CopyError", message: /chunks of float32/ });
  const tensor = fromArrow(null, table);
  const sum = tensor.data.reduce((a, b) => a + b, 0);
  assert.equal(sum, number("SELECT sum(CAST(i * 0.5 AS FLOAT)) FROM range(5000) AS _(i)"));
  tensor.release();
});

test("NULL is what is not valid", () => {
  const table = column("CASE WHEN i % 3 = 1 THEN NULL ELSE CAST(i AS DOUBLE) END", 4000);
  const pair = fromArrow(null, table, { column: "x", nulls: "mask" });
  const sum = pair.values.data.reduce((a, b, i) => (pair.valid.data[i] ? a + b : a), 0);
  const valid = pair.valid.data.reduce((a, b) => a + b, 0);
  const from =
    "FROM (SELECT CASE WHEN i % 3 = 1 THEN NULL ELSE i END AS x FROM range(4000) AS _(i))";
  assert.equal(valid, number(`SELECT count(x) ${from}`));
  assert.equal(sum, number(`SELECT CAST(sum(x) AS DOUBLE) ${from}`));
  const refuse = () => fromArrow(null, table);
  assert.throws(refuse, { name: "UnsupportedError", message: /1333 of 4000 elements are null/ });
  for (const each of [pair.values, pair.valid]) each.release();
});

test("BOOLEAN is bytes, and an ARRAY is an axis", () => {
  const flags = fromArrow(null, column("i % 3 = 0", 10));
  assert.deepEqual([flags.dtype, ...flags.data], ["bool", 1, 0, 0, 1, 0, 0, 1, 0, 0, 1]);
  const rows = fromArrow(null, column("CAST([i, i + 1, i + 2] AS FLOAT[3])", 4), { copy: false });
  assert.deepEqual([rows.shape, rows.at(3, 2)], [[4, 3], 5]);
  for (const each of [flags, rows]) each.release();
});

test("dates, times and timestamps are counts of their unit", () => {
  for (const [sql, dtype, count] of [
    ["DATE '1970-01-08'", "int32", 7],
    ["TIME '00:00:07'", "int64", 7e6],
    ["TIMESTAMP '1970-01-01 00:00:07'", "int64", 7e6],
    ["TIMESTAMP_MS '1970-01-01 00:00:07'", "int64", 7000],
    ["TIMESTAMPTZ '1970-01-01 00:00:07+00'", "int64", 7e6],
  ]) {
    const tensor = fromArrow(null, column(sql, 2), { copy: false });
    assert.deepEqual([tensor.dtype, ...[...tensor].map(Number)], [dtype, count, count]);
    tensor.release();
  }
});

test("types without a dtype are refused, with what to write in SQL", () => {
  for (const [sql, way] of [
    ["CAST(i AS DECIMAL(10, 2))", /Decimal.*CAST\(x AS DOUBLE\)/],
    ["sum(i) OVER ()", /Decimal.*CAST\(x AS DOUBLE\)/],
    ["INTERVAL 1 DAY", /Interval.*its parts/],
    ["'text'", /Utf8.*encode it/],
    ["[i]", /List.*FLOAT\[3\]/],
    ["{'a': i}", /Struct.*one of its fields/],
    ["CAST('x' AS ENUM('x', 'y'))", /Dictionary.*its indices/],
    ["CAST('x' AS BLOB)", /Binary/],
  ]) {
    const table = column(sql, 3);
    assert.throws(() => fromArrow(null, table), { name: "UnsupportedError", message: way });
  }
  const table = connection.query("SELECT i, i AS j FROM range(3) AS _(i)");
  assert.throws(() => fromArrow(null, table), { message: /2 columns: \["i","j"\]; name one/ });
});

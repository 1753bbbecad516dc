"""Arrow's libraries and we hand memory to each other, in place where that can be."""

import datetime
import decimal
import gc
from importlib import import_module

import numpy as np
import pytest

import dlpack_web as dlw

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
DTYPES += ["float16", "float32", "float64", "bool"]
A = np.arange(12, dtype="f4")


def wanted(name):
    return pytest.importorskip(name, reason=f"{name} is not installed")


@pytest.fixture
def pa():
    pa = wanted("pyarrow")
    before = pa.total_allocated_bytes()
    yield pa
    gc.collect()
    assert pa.total_allocated_bytes() == before


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("cut", [slice(None), slice(3, 9), slice(5, 5)], ids=str)
def test_every_type(pa, name, cut):
    values = (np.arange(12) % 3).astype(name)
    array = pa.array(values)[cut]
    with dlw.from_arrow(array) as t:
        assert (t.dtype, t.read_only, t.validity) == (name, name != "bool", None)
        np.testing.assert_array_equal(t.numpy(), values[cut])
        if name != "bool" and len(array):
            start = array.buffers()[1].address + array.offset * t.itemsize
            assert address(t.numpy()) == start
        back = pa.array(t)
    back.validate(full=True)
    assert back.equals(array)


@pytest.mark.parametrize("name", DTYPES)
def test_nulls(pa, name):
    valid = np.arange(70) % 7 != 3
    values = (np.arange(70) % 2).astype(name)
    array = pa.array(values, mask=~valid)
    for cut in (slice(None), slice(5, 60), slice(9, 12)):
        t = dlw.from_arrow(array[cut])
        np.testing.assert_array_equal(t.validity.numpy(), valid[cut])
        there = valid[cut]
        np.testing.assert_array_equal(t.numpy()[there], values[cut][there])
        back = pa.array(t)
        back.validate(full=True)
        assert back.equals(array[cut])
    with pytest.raises(BufferError, match="10 of 70 elements are null"):
        dlw.from_arrow(array, nulls="refuse")
    assert dlw.from_arrow(array[4:9]).validity is None


def test_lists_are_axes(pa):
    values = np.arange(24, dtype="i2").reshape(4, 3, 2)
    with dlw.from_dlpack(values) as t:
        array = pa.array(t)
    array.validate(full=True)
    assert str(array.type) == "fixed_size_list<: fixed_size_list<: int16>[2]>[3]"
    assert array.to_pylist() == values.tolist()
    with dlw.from_arrow(array[1:3]) as part:
        np.testing.assert_array_equal(part.numpy(), values[1:3])
        assert address(part.numpy()) == address(values) + values[0].nbytes
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(values.astype("f4"))
    assert dlw.from_arrow(tensors).shape == (4, 6)


def test_chunks_and_tables(pa):
    chunks = pa.chunked_array([[1, 2], [], [3, None], [5]], pa.int32())
    with dlw.from_arrow(chunks) as t:
        assert t.numpy()[[0, 1, 2, 4]].tolist() == [1, 2, 3, 5]
        assert t.validity.numpy().tolist() == [True, True, True, False, True]
    table = pa.table({"a": A, "b": -A})
    column = table.column("b").chunk(0)
    with dlw.from_arrow(table, column="b") as t:
        assert address(t.numpy()) == column.buffers()[1].address
    for part in (table.slice(2, 5), table.to_batches()[0].slice(2, 5)):
        with dlw.from_arrow(part, column="b") as t:
            np.testing.assert_array_equal(t.numpy(), -A[2:7])
    with pytest.raises(BufferError, match="several columns"):
        dlw.from_arrow(table)
    assert dlw.from_arrow(table.select(["a"])).shape == (12,)


def test_types_without_a_dtype(pa):
    moment = datetime.datetime(2026, 1, 2)
    for array, said in (
        (pa.array(["a"]), "string"),
        (pa.array(["a"], pa.string_view()), "string view"),
        (pa.array(["a"]).dictionary_encode(), "dictionary"),
        (pa.array([decimal.Decimal("1.5")]), "decimal"),
        (pa.array([moment]), "timestamp"),
        (pa.array([moment.date()]), "date"),
        (pa.array([[1], [2, 3]]), "list"),
        (pa.array([{"a": 1, "b": 2}]), "columns"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())), "map"),
        (pa.RunEndEncodedArray.from_arrays([2, 3], [1, 2]), "run-end"),
        (pa.nulls(3), "null"),
    ):
        with pytest.raises(BufferError, match=said):
            dlw.from_arrow(array)


def test_an_array_outlives_us_and_we_outlive_it(pa):
    array = pa.array(A)
    t = dlw.from_arrow(array)
    seen = t.numpy()
    del array, t
    gc.collect()
    np.testing.assert_array_equal(seen, A)
    mine = np.arange(5.0)
    array = pa.array(dlw.from_dlpack(mine))
    mine[2] = 77
    assert array[2].as_py() == 77  # the same memory
    del mine
    gc.collect()
    assert array.to_pylist() == [0, 1, 77, 3, 4]


PRODUCERS = {
    "polars.Series": lambda lib: lib.Series("a", A),
    "polars.DataFrame": lambda lib: lib.DataFrame({"a": A}),
    "pandas.Series": lambda lib: lib.Series(A),
    "pandas.DataFrame": lambda lib: lib.DataFrame({"a": A}),
    "duckdb.sql": lambda lib: lib.sql("select range::float as a from range(12)"),
    "nanoarrow.Array": lambda lib: lib.Array(A.tolist(), lib.float32()),
    "nanoarrow.c_array": lambda lib: lib.c_array(A.tolist(), lib.float32()),
    "arro3.core.Array": lambda lib: lib.Array(A.tolist(), lib.DataType.float32()),
    "pyarrow.array": lambda lib: lib.array(A),
}


@pytest.mark.parametrize("name", PRODUCERS)
def test_producers(name):
    wanted(name.partition(".")[0])
    library = import_module(name.rpartition(".")[0])
    with dlw.from_arrow(PRODUCERS[name](library)) as t:
        assert t.dtype == "float32"
        np.testing.assert_array_equal(t.numpy(), A)


CONSUMERS = {
    "polars": lambda lib, t: lib.Series(t).to_list(),
    "pandas": lambda lib, t: lib.Series(t).tolist(),
    "nanoarrow": lambda lib, t: lib.array(t).to_pylist(),
    "arro3.core": lambda lib, t: [x.as_py() for x in lib.Array(t)],
    "pyarrow": lambda lib, t: lib.array(t).to_pylist(),
}


@pytest.mark.parametrize("name", CONSUMERS)
@pytest.mark.parametrize("way", [lambda t: t, dlw.to_arrow], ids=["tensor", "to_arrow"])
def test_consumers(name, way):
    library = wanted(name)
    if name == "pandas" and way is dlw.to_arrow:
        pytest.skip("pandas takes Tensors by __array__, Arrow's by pyarrow")
    for values in (A, A[::-2], A[:0]):
        with dlw.from_dlpack(values) as t:
            assert CONSUMERS[name](library, way(t)) == values.tolist()


def test_duckdb_computes_over_a_tensor(pa):
    duckdb = wanted("duckdb")
    with dlw.from_dlpack(np.arange(5000.0)) as t:
        rows = pa.table({"x": pa.array(t)})
        assert duckdb.sql("select sum(x), max(x) from rows").fetchall() == [
            (12497500.0, 4999.0)
        ]
    del rows


def test_matrices_in_polars():
    pl = wanted("polars")
    values = np.arange(6.0).reshape(3, 2)
    with dlw.from_dlpack(values) as t:
        series = pl.Series(t)
    assert series.dtype == pl.Array(pl.Float64, 2)
    with dlw.from_arrow(series) as t:
        np.testing.assert_array_equal(t.numpy(), values)

"""Arrow's libraries and we hand memory to each other, in place where that can be."""

import datetime
import decimal
import gc
import random
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
        assert (t.dtype, t.read_only) == (name, name != "bool")
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
        t, there = dlw.from_arrow(array[cut], nulls="mask")
        there = there.numpy()
        np.testing.assert_array_equal(there, valid[cut])
        np.testing.assert_array_equal(t.numpy()[there], values[cut][there])
        back = pa.array(dlw.to_arrow(t, there))
        back.validate(full=True)
        assert back.equals(array[cut])
    with pytest.raises(BufferError, match="10 of 70 elements are null"):
        dlw.from_arrow(array)
    dlw.from_arrow(array[4:9])
    assert all(dlw.from_arrow(array[4:9], nulls="mask").valid.numpy())


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


def test_tensors_have_their_shape(pa):
    values = np.arange(24, dtype="f4").reshape(4, 3, 2)
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(values)
    with dlw.from_arrow(tensors) as t:
        np.testing.assert_array_equal(t.numpy(), values)
        assert address(t.numpy()) == address(values)
    with dlw.from_arrow(tensors[1:3]) as t:
        np.testing.assert_array_equal(t.numpy(), values[1:3])


@pytest.mark.parametrize("permutation", [(0, 1, 2), (2, 1, 0), (2, 0, 1), (1, 2, 0)])
def test_tensors_have_their_permutation(pa, permutation):
    """The same axes and strides as pyarrow's own ndarray has, for those permutations that
    are their own inverse; for others the elements of pyarrow 26 overlap each other, and
    the specification says what is right."""
    kind = pa.fixed_shape_tensor(
        pa.int16(), [2, 3, 4], permutation=permutation, dim_names=list("abc")
    )
    values = np.arange(48, dtype="i2").reshape(2, 24)
    lists = pa.array(values.tolist(), pa.list_(pa.int16(), 24))
    tensors = pa.ExtensionArray.from_storage(kind, lists)
    logical = values.reshape(2, 2, 3, 4).transpose(0, *(1 + i for i in permutation))
    with dlw.from_arrow(tensors) as t:
        mine = t.numpy()
        assert (mine.shape, mine.strides) == (logical.shape, logical.strides)
        np.testing.assert_array_equal(mine, logical)
        assert address(mine) == lists.values.buffers()[1].address
    if permutation != (2, 0, 1) and permutation != (1, 2, 0):
        np.testing.assert_array_equal(tensors.to_numpy_ndarray(), logical)
    table = pa.table({"x": pa.chunked_array([tensors, tensors[1:]]), "n": [1, 2, 3]})
    with dlw.from_arrow(table, column="x") as t:
        both = np.concatenate([logical, logical[1:]])
        np.testing.assert_array_equal(t.numpy(), both)
    del mine


def test_bools_of_a_byte(pa):
    for values, shared in (([0, 1, 1, 0], True), ([0, 2, -1, 1, None], False)):
        storage = pa.array(values, pa.int8())
        array = pa.ExtensionArray.from_storage(pa.bool8(), storage)
        t, valid = dlw.from_arrow(array, nulls="mask")
        with t:
            assert t.dtype == "bool"
            here = [bool(x) for x in values if x is not None]
            assert t.numpy()[: len(here)].tolist() == here
            assert valid.numpy().all() == shared
            same = address(t.numpy()) == storage.buffers()[1].address
            assert same == shared


def test_rows_that_are_null(pa):
    rows = pa.array([{"a": 1}, None, {"a": None}, {"a": 4}])
    values, valid = dlw.from_arrow(rows, column="a", nulls="mask")
    assert valid.numpy().tolist() == [True, False, False, True]
    assert values.numpy()[[0, 3]].tolist() == [1, 4]
    with pytest.raises(BufferError, match="2 of 4 elements are null"):
        dlw.from_arrow(rows, column="a")


def test_types_that_are_requested(pa):
    with dlw.from_dlpack(np.arange(6, dtype="i2").reshape(3, 2)) as t:
        assert pa.array(t, pa.list_(pa.int16(), 2)).to_pylist() == t.numpy().tolist()
        for wrong in (pa.list_(pa.int32(), 2), pa.binary(4), pa.int16()):
            with pytest.raises(BufferError, match="requested_schema is Arrow's type"):
                pa.array(t, wrong)


@pytest.mark.parametrize("make", [lambda t: t, dlw.to_arrow], ids=["t", "to_arrow"])
def test_pyarrow_loses_no_mask(pa, make):
    """Of what speaks only the PyCapsule protocol pyarrow ignores `mask` and `size`."""
    with dlw.from_dlpack(np.arange(3)) as t:
        x = make(t)
        for given in ({"mask": np.array([True, False, True])}, {"size": 2}):
            with pytest.raises(ValueError, match="Cannot specify a mask or a size"):
                pa.array(x, **given)
        assert pa.array(x).to_pylist() == [0, 1, 2]
        assert pa.array(x, pa.int64()).type == pa.int64()
        assert address(t.numpy()) == pa.array(x).buffers()[1].address
        with pytest.raises(BufferError, match="requested_schema is Arrow's type"):
            pa.array(x, pa.int8())


def test_nanoarrow_arrays_of_several_chunks(pa):
    """Their `__arrow_c_array__` refuses, their `__arrow_c_stream__` does not."""
    na = wanted("nanoarrow")
    chunks = na.Array(pa.chunked_array([[1, 2], [], [3]], pa.int32()))
    with dlw.from_arrow(chunks) as t:
        assert t.numpy().tolist() == [1, 2, 3]
    table = na.Array(pa.table({"x": pa.chunked_array([[1], [2]]), "y": [1, 2]}))
    with dlw.from_arrow(table, column="x") as t:
        assert t.numpy().tolist() == [1, 2]


def test_requests_of_nanoarrow():
    na = wanted("nanoarrow")
    with dlw.from_dlpack(A) as t:
        assert na.Array(t, na.float32()).to_pylist() == A.tolist()
        # Its own words are before ours.
        with pytest.raises(TypeError, match="type 'g', the Tensor is 'f'"):
            na.Array(t, na.float64())


def test_a_reader_is_read_once(pa):
    """A generator behind a stream that takes the same stream again."""
    schema = pa.schema({"x": pa.int32()})
    refused = []

    class Column:
        def __arrow_c_stream__(self, requested_schema=None):
            return once

    def batches():
        for first in (1, 3):
            try:
                dlw.from_arrow(Column())
            except BufferError as error:
                refused.append(str(error))
            yield pa.record_batch({"x": pa.array([first, first + 1], pa.int32())})

    once = pa.RecordBatchReader.from_batches(schema, batches()).__arrow_c_stream__()
    with dlw.from_arrow(Column()) as t:
        assert t.numpy().tolist() == [1, 2, 3, 4]
    assert len(refused) == 2
    assert all("taken already" in text for text in refused)


def test_chunks_and_tables(pa):
    chunks = pa.chunked_array([[1, 2], [], [3, None], [5]], pa.int32())
    values, valid = dlw.from_arrow(chunks, nulls="mask")
    assert values.numpy()[[0, 1, 2, 4]].tolist() == [1, 2, 3, 5]
    assert valid.numpy().tolist() == [True, True, True, False, True]
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


def random_array(pa, rng, length):
    """A random type, and an array of it in which some elements are null."""
    inner = rng.choice([pa.int8(), pa.int32(), pa.float64(), pa.bool_()])
    kind, sparse = inner, rng.random()
    for _ in range(rng.choice([0, 0, 1, 2])):
        kind = pa.list_(kind, rng.randrange(4))

    def element(kind, depth=0):
        if rng.random() < (sparse if depth == 0 else 0.03) * (sparse < 0.7):
            return None
        if pa.types.is_fixed_size_list(kind):
            return [element(kind.value_type, depth + 1) for _ in range(kind.list_size)]
        return rng.random() < 0.5 if pa.types.is_boolean(kind) else rng.randrange(99)

    return pa.array([element(kind) for _ in range(length)], kind)


def within(rows):
    """Whether there is a null within lists."""
    lists = [row for row in rows if isinstance(row, list)]
    return any(None in row or within(row) for row in lists)


def test_no_null_is_dropped(pa):
    """Random types, chunks, slices, rows of structs and tables, against pyarrow's own
    lists."""
    rng = random.Random(45)
    for _ in range(400):
        length = rng.randrange(1, 40)
        array = random_array(pa, rng, length)
        form = rng.choice(["array", "chunks", "struct", "batch", "table", "reader"])
        column = None if form in ("array", "chunks") else "x"
        if form == "chunks":
            cut = rng.randrange(length)
            given = pa.chunked_array([array[:cut], array[cut:]])
        elif form == "array":
            given = array
        elif form == "struct":
            gone = pa.array([rng.random() < 0.1 for _ in range(length)])
            given = pa.StructArray.from_arrays([array, array], ["x", "y"], mask=gone)
        else:
            given = pa.record_batch({"y": array, "x": array})
        if form in ("table", "reader"):
            given = pa.Table.from_batches([given] * rng.randrange(1, 3))
        if rng.random() < 0.6:
            start = rng.randrange(len(given))
            given = given.slice(start, rng.randrange(len(given) - start + 1))
        rows = given[column] if form in ("batch", "table", "reader") else given
        rows = rows.to_pylist()
        if form == "struct":
            rows = [row and row["x"] for row in rows]

        def take(given=given, column=column, form=form, **options):
            source = given.to_reader() if form == "reader" else given
            return dlw.from_arrow(source, column=column, **options)

        nulls = rows.count(None)
        if within(rows):
            for options in ({}, {"nulls": "mask"}):
                with pytest.raises(BufferError, match="elements of lists are null"):
                    take(**options)
            continue
        if nulls:
            with pytest.raises(BufferError, match=f"^{nulls} of {len(rows)} elements"):
                take()
        else:
            assert take().numpy().tolist() == rows
        values, valid = take(nulls="mask")
        assert valid.numpy().tolist() == [row is not None for row in rows]
        there = [row for row in rows if row is not None]
        assert values.numpy()[valid.numpy()].tolist() == there
        if form in ("array", "chunks") and values.size:
            back = pa.array(dlw.to_arrow(values, valid))
            back.validate(full=True)
            assert back.to_pylist() == rows


DAYS = np.array(["2026-01-02", "1969-12-31"], "datetime64[D]")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_are_what_numpy_has_for_them(pa, unit):
    moments = DAYS.astype(f"datetime64[{unit}]")
    spans = moments - moments[1]
    for array, values in (
        (pa.array(moments), moments),
        (pa.array(moments, pa.timestamp(unit, "Europe/Paris")), moments),
        (pa.array(spans), spans),
        (pa.chunked_array([moments[:1], moments[1:]]), moments),
    ):
        with dlw.from_arrow(array) as t:
            assert t.dtype == "int64"
            assert t.numpy().view(values.dtype).tolist() == values.tolist()
    noon = pa.array([datetime.time(12), datetime.time(0, 0, 1)])
    noon = noon.cast(pa.time32(unit) if unit in "ms" else pa.time64(unit))
    with dlw.from_arrow(noon) as t:
        seconds = t.numpy().astype("int64").view(f"timedelta64[{unit}]")
        assert (seconds / np.timedelta64(1, "s")).tolist() == [43200, 1]


def test_dates_count_days(pa):
    with dlw.from_arrow(pa.array(DAYS)) as t:
        assert t.dtype == "int32"
        assert (t.numpy().astype("datetime64[D]") == DAYS).all()
    with dlw.from_arrow(pa.array(DAYS, pa.date64())) as t:
        assert (t.numpy().view("datetime64[ms]") == DAYS).all()


@pytest.mark.parametrize("name", ["polars", "pandas", "duckdb"])
def test_times_of_other_libraries(name):
    library = wanted(name)
    moments = DAYS.astype("datetime64[us]")
    if name == "duckdb":
        rows = ", ".join(f"('{day}'::timestamp)" for day in DAYS)
        column = library.sql(f"select * from (values {rows})")
    else:
        column = library.Series(moments)
    with dlw.from_arrow(column) as t:
        assert (t.numpy().view("datetime64[us]") == moments).all()


def test_lists_are_shared_as_values_and_offsets(pa):
    array = pa.array([[1.5], [], [2.5, 3.5]])
    for lists in (array, array.cast(pa.large_list(pa.float64()))):
        with dlw.from_arrow(lists.values) as v, dlw.from_arrow(lists.offsets) as o:
            assert address(v.numpy()) == lists.values.buffers()[1].address
            assert v.numpy().tolist() == [1.5, 2.5, 3.5]
            assert o.numpy().tolist() == [0, 1, 1, 3]


def test_points_of_geoarrow(pa):
    """Interleaved ones are a matrix; of separate ones, x and y are columns."""
    said = {"ARROW:extension:name": "geoarrow.point", "ARROW:extension:metadata": "{}"}
    points = np.arange(6.0).reshape(3, 2)
    flat = pa.array(points.ravel())
    pairs = pa.FixedSizeListArray.from_arrays(flat, 2)
    apart = pa.StructArray.from_arrays([points[:, 0], points[:, 1]], ["x", "y"])
    columns = {"pairs": pairs, "apart": apart}
    fields = [pa.field(k, v.type, metadata=said) for k, v in columns.items()]
    table = pa.table(list(columns.values()), schema=pa.schema(fields))
    with dlw.from_arrow(table, column="pairs") as t:
        assert address(t.numpy()) == flat.buffers()[1].address
        assert t.numpy().tolist() == points.tolist()
    for i, name in enumerate("xy"):
        with dlw.from_arrow(table["apart"], column=name) as t:
            assert t.numpy().tolist() == points[:, i].tolist()


def test_types_without_a_dtype(pa):
    for array, said in (
        (pa.array(["a"]), "string"),
        (pa.array(["a"], pa.string_view()), "string view"),
        (pa.array(["a"]).dictionary_encode(), "dictionary"),
        (pa.array([decimal.Decimal("1.5")]), "decimal"),
        (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "interval"),
        (pa.array([[1], [2, 3]]), "list.*its values and its offsets"),
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


HOLES = [1.5, None, 2.5]
WITH_NULLS = {
    "polars.Series": lambda lib: lib.Series("a", HOLES),
    "polars.DataFrame": lambda lib: lib.DataFrame({"a": HOLES}),
    "pandas.Series": lambda lib: lib.Series(HOLES, dtype="Float64"),
    "pandas.DataFrame": lambda lib: lib.DataFrame(
        {"a": lib.array(HOLES, dtype="Float64")}
    ),
    "duckdb.sql": lambda lib: lib.sql("select unnest([1.5, NULL, 2.5])::double as a"),
    "nanoarrow.Array": lambda lib: lib.Array(HOLES, lib.float64()),
    "nanoarrow.c_array": lambda lib: lib.c_array(HOLES, lib.float64()),
    "arro3.core.Array": lambda lib: lib.Array(HOLES, lib.DataType.float64()),
    "pyarrow.array": lambda lib: lib.array(HOLES),
    "pyarrow.chunked_array": lambda lib: lib.chunked_array([HOLES[:1], HOLES[1:]]),
}


@pytest.mark.filterwarnings("ignore:Exporting an unversioned")  # pyarrow refuses twice
@pytest.mark.parametrize("name", WITH_NULLS)
def test_producers_with_nulls(name):
    """Whichever way, nulls never become numbers."""
    wanted(name.partition(".")[0])
    library = import_module(name.rpartition(".")[0])
    given = WITH_NULLS[name](library)
    with pytest.raises(BufferError, match=r"^1 of 3 elements are null"):
        dlw.from_arrow(given)
    values, valid = dlw.from_arrow(given, nulls="mask")
    assert valid.numpy().tolist() == [True, False, True]
    assert values.numpy()[[0, 2]].tolist() == [1.5, 2.5]
    for take in (dlw.from_dlpack, dlw.from_buffer, dlw.empty(3, "float64").write):
        with pytest.raises((BufferError, TypeError, AttributeError, ValueError)):
            take(given)


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


@pytest.mark.parametrize("name", sorted({*CONSUMERS} - {"pandas"}))
def test_consumers_get_nulls(name):
    library = wanted(name)
    valid = np.arange(12) % 5 > 0
    expected = [
        x if there else None for x, there in zip(A.tolist(), valid, strict=True)
    ]
    with dlw.from_dlpack(A) as t:
        assert CONSUMERS[name](library, dlw.to_arrow(t, valid)) == expected


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

"""arro3 and nanoarrow, in Pyodide: their arrays are Tensors in place, and Tensors their arrays.

Unlike tests/interop, in 32-bit memory that grows; test_adapters.py loads both beforehand.
"""

import gc

import arro3.core as arro3
import nanoarrow as na
import numpy as np
import pytest

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("nothing_leaks")

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
DTYPES += ["float16", "float32", "float64"]
CUTS = [slice(None), slice(3, 9), slice(5, 5)]
MAKERS = {
    "arro3": arro3.Array.from_numpy,
    "nanoarrow": lambda values: na.c_array_from_buffers(
        getattr(na, values.dtype.name)(), len(values), [None, values]
    ),
}


def first_byte(array, itemsize):
    """Where Arrow has element 0."""
    seen = na.c_array(array)
    return seen.buffers[1] + seen.offset * itemsize


def address(ndarray):
    return ndarray.__array_interface__["data"][0]


def grow_memory():
    """Has WebAssembly's memory grow, which takes it from under views that somebody kept."""
    taken = [np.ones(1 << 21) for _ in range(4)]
    del taken


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("name", DTYPES)
def test_every_type_is_shared_in_place(maker, name):
    values = (np.arange(12) % 3).astype(name)
    for cut in CUTS:
        array = arro3.Array.from_arrow(MAKERS[maker](values))
        array = array.slice(*cut.indices(12)[:1], len(values[cut]))
        with dlw.from_arrow(array) as t:
            assert (t.dtype, t.read_only) == (name, True)
            np.testing.assert_array_equal(t.numpy(), values[cut])
            if len(values[cut]):
                assert address(t.numpy()) == first_byte(array, t.itemsize)


@pytest.mark.parametrize("name", [*DTYPES, "bool"])
def test_they_take_tensors_in_place(name):
    values = (np.arange(12) % 2).astype(name)
    with dlw.from_dlpack(values) as t:
        for array in (
            arro3.Array.from_arrow(t),
            arro3.Array(dlw.to_arrow(t)),
            na.Array(t),
        ):
            assert len(array) == 12
            if name != "bool":  # bits there, and so a copy
                assert first_byte(array, t.itemsize) == address(values)
            with dlw.from_arrow(array) as back:
                np.testing.assert_array_equal(back.numpy(), values)


def test_nulls_are_masked_or_refused():
    for array in (
        na.Array([None if i % 7 == 3 else i for i in range(70)], na.int32()),
        arro3.Array(
            [None if i % 7 == 3 else i for i in range(70)], arro3.DataType.int32()
        ),
    ):
        there = np.arange(70) % 7 != 3
        t, valid = dlw.from_arrow(array, nulls="mask")
        np.testing.assert_array_equal(valid.numpy(), there)
        np.testing.assert_array_equal(t.numpy()[there], np.arange(70)[there])
        assert address(t.numpy()) == first_byte(array, 4)
        made = dlw.to_arrow(t, valid)
        assert arro3.Array.from_arrow(made).to_pylist() == na.Array(made).to_pylist()
        part = dlw.to_arrow(t[10:20], valid[10:20])
        assert arro3.Array.from_arrow(part).null_count == 2
        with pytest.raises(BufferError, match="10 of 70 elements are null"):
            dlw.from_arrow(array)


def test_columns_chunks_and_lists():
    x, y = np.arange(6, dtype="f4"), np.arange(6, dtype="i2")
    batch = arro3.RecordBatch.from_pydict(
        {"x": arro3.Array.from_numpy(x), "y": arro3.Array.from_numpy(y)}
    )
    with dlw.from_arrow(batch, column="y") as t:
        assert address(t.numpy()) == first_byte(batch["y"], 2)
    table = arro3.Table.from_batches([batch, batch.slice(2, 3)])
    with dlw.from_arrow(table, column="x") as t:
        assert t.numpy().tolist() == [*range(6), 2, 3, 4]
    with pytest.raises(BufferError, match="several columns"):
        dlw.from_arrow(table)
    rows = np.arange(6.0).reshape(3, 2)
    with dlw.from_dlpack(rows) as t:
        array = arro3.Array.from_arrow(t)
    assert array.to_pylist() == rows.tolist()
    with dlw.from_arrow(array.slice(1, 2)) as t:
        assert address(t.numpy()) == address(rows) + 16


def test_nanoarrow_arrays_of_several_chunks():
    """Their `__arrow_c_array__` refuses, their `__arrow_c_stream__` does not."""
    chunks = arro3.ChunkedArray([arro3.Array.from_numpy(np.arange(3, dtype="i4"))] * 2)
    with dlw.from_arrow(na.Array(chunks)) as t:
        assert t.numpy().tolist() == [0, 1, 2] * 2


def test_tensors_have_their_shape_and_permutation():
    shape = b'{"shape": [2, 3], "permutation": [1, 0]}'
    lists = arro3.DataType.list(arro3.Field("", arro3.DataType.int16()), 6)
    field = arro3.Field(
        "x",
        lists,
        metadata={
            b"ARROW:extension:name": b"arrow.fixed_shape_tensor",
            b"ARROW:extension:metadata": shape,
        },
    )
    values = np.arange(12, dtype="i2").reshape(2, 6)
    with dlw.from_dlpack(values) as t:
        column = arro3.Array.from_arrow(t)
    table = arro3.Table.from_arrays([column], schema=arro3.Schema([field]))
    with dlw.from_arrow(table, column="x") as t:
        logical = values.reshape(2, 2, 3).transpose(0, 2, 1)
        np.testing.assert_array_equal(t.numpy(), logical)


def test_what_has_no_dtype_is_refused():
    for array in (
        na.Array(["a", "b"], na.string()),
        arro3.Array(["a"], arro3.DataType.utf8()),
    ):
        with pytest.raises(BufferError, match="string"):
            dlw.from_arrow(array)


def test_each_outlives_the_other_while_memory_grows():
    values = np.arange(5, dtype="f4")
    t = dlw.from_arrow(arro3.Array.from_numpy(values))
    array = na.Array(dlw.from_dlpack(values))
    del values
    grow_memory()
    gc.collect()
    assert t.numpy().tolist() == array.to_pylist() == [0, 1, 2, 3, 4]
    assert list(t.js.data) == [0, 1, 2, 3, 4]


async def test_a_column_goes_to_the_gpu_by_one_copy(device):
    array = arro3.Array.from_numpy(np.arange(1000, dtype="f4"))
    before = moved(device)
    with dlw.from_arrow(array) as t, t.to_device(device) as x:
        assert moved(device) == (before[0] + t.nbytes, before[1] + 1)
        assert (await x.to_host() == np.arange(1000)).all()


def moved(device):
    """Bytes that were written to the GPU, and the number of copies."""
    (row,) = (each for each in dlw.webgpu.stats() if each["device"] == str(device))
    return row["up"], row["copies"]

"""Bitmaps of Arrow's arrays: the bits of the elements, and none beside them.

Every bit around them says the opposite, once as 0 and once as 1: a bit read too far, or
not at all, changes a count or an element.
"""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from arrow_forge import Forged

import dlpack_web as dlw

OFFSETS = (0, 1, 5, 7, 8, 9, 15, 16)
LENGTHS = (1, 2, 7, 8, 9, 15, 16, 17, 24, 31)


def framed(bits, offset, around):
    """A bitmap of `bits` from bit `offset` on; all that is not asked for is `around`."""
    before, after = [around] * offset, [around] * (64 + -(offset + len(bits)) % 8)
    return np.packbits([*before, *map(int, bits), *after], bitorder="little")


def somewhere(address):
    """A buffer at an address where no memory is."""
    return SimpleNamespace(ctypes=SimpleNamespace(data=address))


def valid_in(*forged):
    """Which elements are valid; without nulls also `from_arrow` alone takes them."""
    values, valid = dlw.from_arrow(Forged(*forged), nulls="mask")
    found = valid.numpy().tolist()
    values.release()
    nulls = found.count(False)
    if nulls == 0:
        dlw.from_arrow(Forged(*forged)).release()
    else:
        with pytest.raises(BufferError, match=f"^{nulls} of {len(found)} elements are"):
            dlw.from_arrow(Forged(*forged))
    return found


def nulls_of(length):
    """Which elements are null: none, each alone, and all."""
    yield []
    for null in sorted(
        {0, 1, length // 2, length - 2, length - 1} & set(range(length))
    ):
        yield [null]
    yield list(range(length))


@pytest.mark.parametrize("around", [0, 1])
@pytest.mark.parametrize("length", LENGTHS)
def test_nulls_are_those_of_the_elements(length, around):
    values = np.zeros(128, np.int32)
    for offset in OFFSETS:
        for nulls in nulls_of(length):
            valid = [i not in nulls for i in range(length)]
            array = {
                "length": length,
                "offset": offset,
                "buffers": [framed(valid, offset, around), values],
            }
            assert valid_in(b"i", array) == valid, (offset, nulls)


@pytest.mark.parametrize("around", [0, 1])
@pytest.mark.parametrize("letters", [b"i", b"b"])
def test_a_column_has_its_own_offset_behind_that_of_its_struct(letters, around):
    length = 11
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2, length)
    for rows, own in [(0, 0), (3, 0), (0, 5), (3, 5), (8, 7), (13, 9)]:
        for nulls in nulls_of(length):
            valid = [i not in nulls for i in range(length)]
            if letters == b"b":
                data = framed(values, rows + own, around)
            else:
                data = np.full(64, 7 + around, np.int32)
                data[rows + own : rows + own + length] = values
            column = {
                "length": rows + length,
                "offset": own,
                "buffers": [framed(valid, rows + own, around), data],
            }
            struct = {
                "length": length,
                "offset": rows,
                "buffers": [framed([1] * length, rows, 0)],
                "children": [column],
            }
            forged = (b"+s", [(b"a", letters)]), struct
            tensor, _ = dlw.from_arrow(Forged(*forged), nulls="mask")
            assert tensor.numpy().astype(int).tolist() == values.tolist()
            assert valid_in(*forged) == valid, (rows, own, nulls)


def lists(width, length, offset, own, valid, inner, around):
    """Lists of `width` numbers from list `offset` on, whose child has an offset `own`."""
    values = np.arange(200, dtype=np.int32)
    child = {
        "length": (offset + length) * width,
        "offset": own,
        "buffers": [framed(inner, own + offset * width, around), values],
    }
    return {
        "length": length,
        "offset": offset,
        "buffers": [framed(valid, offset, around)],
        "children": [child],
    }


@pytest.mark.parametrize("around", [0, 1])
@pytest.mark.parametrize("width", [1, 3, 8])
def test_nulls_within_lists_count_where_the_list_is_valid(width, around):
    length = 5
    type_ = (b"+w:%d" % width, [(b"item", b"i")])
    for offset, own in [(0, 0), (1, 0), (0, 3), (2, 7), (3, 8)]:
        for null_lists in ([], [0], [2], [4], [0, 4], list(range(length))):
            valid = [i not in null_lists for i in range(length)]
            for bad in (
                None,
                0,
                width - 1,
                2 * width,
                3 * width - 1,
                length * width - 1,
            ):
                inner = [1] * (length * width)
                if bad is not None:
                    inner[bad] = 0
                array = lists(width, length, offset, own, valid, inner, around)
                if bad is not None and valid[bad // width]:
                    for nulls in ("refuse", "mask"):
                        with pytest.raises(
                            BufferError, match="1 elements of lists are"
                        ):
                            dlw.from_arrow(Forged(type_, array), nulls=nulls)
                    continue
                tensor, _ = dlw.from_arrow(Forged(type_, array), nulls="mask")
                first = own + offset * width
                assert tensor.numpy().ravel()[0] == first
                assert tensor.numpy().ravel()[-1] == first + length * width - 1
                assert valid_in(type_, array) == valid


def test_all_nulls_within_lists_are_counted():
    """Those of null lists are not."""
    inner = [0, 1, 0, 0, 0, 0, 1, 1, 0, 1]
    for valid, expected in [([1, 1, 1, 1, 1], 6), ([1, 0, 0, 1, 1], 2)]:
        array = lists(2, 5, 1, 3, valid, inner, 0)
        with pytest.raises(BufferError, match=f"{expected} elements of lists are null"):
            dlw.from_arrow(Forged((b"+w:2", [(b"item", b"i")]), array))


@pytest.mark.parametrize("around", [0, 1])
def test_bools_in_lists_begin_at_any_bit(around):
    for offset, own in [(0, 0), (1, 0), (0, 5), (2, 7)]:
        values = np.random.default_rng(own).integers(0, 2, 12)
        child = {
            "length": 3 * (offset + 4),
            "offset": own,
            "buffers": [None, framed(values, own + 3 * offset, around)],
        }
        array = {"length": 4, "offset": offset, "buffers": [None], "children": [child]}
        with dlw.from_arrow(Forged((b"+w:3", [(b"item", b"b")]), array)) as tensor:
            assert tensor.shape == (4, 3)
            assert tensor.numpy().astype(int).ravel().tolist() == values.tolist()


# --- what cannot be -------------------------------------------------------------------


def refuse(message, type_, **array):
    with pytest.raises(BufferError, match=message):
        dlw.from_arrow(Forged(type_, array))


@pytest.mark.skipif(sys.platform == "emscripten", reason="memory ends elsewhere there")
@pytest.mark.parametrize("shift", [0, 1])
def test_a_bitmap_ends_within_the_address_space(shift):
    """Eight bytes of bits, of which the last is outside: none of them is read."""
    end = 2**63 - 1 if sys.maxsize > 2**32 else 2**32
    outside = somewhere(end - 7 + shift)
    refuse("address space", b"b", length=64, buffers=[None, outside])
    refuse("address space", b"b", length=57, buffers=[None, outside])
    values = np.zeros(64, np.uint8)
    refuse("address space", b"C", length=64, buffers=[outside, values])
    refuse("address space", b"C", length=8, offset=56, buffers=[outside, values])


def test_bitmaps_longer_than_any_memory_are_refused():
    values, bits = np.zeros(8, np.uint8), np.zeros(8, np.uint8)
    for length in (2**61, 2**62, 2**63 - 1):
        refuse("address space", b"C", length=length, buffers=[bits, values])
        refuse("address space", b"b", length=length, buffers=[None, bits])
    for offset in (2**61, 2**63 - 2):
        refuse("address space", b"C", length=1, offset=offset, buffers=[bits, values])


def test_without_a_bitmap_all_are_valid():
    values = np.zeros(3, np.uint8)
    for count in (0, -1):
        array = {"length": 3, "null_count": count, "buffers": [None, values]}
        assert valid_in(b"C", array) == [True] * array["length"]


def test_no_bit_is_read_where_nobody_counts_nulls():
    """0 nulls, or no elements: the bitmap may be anywhere."""
    values = np.zeros(3, np.uint8)
    for array in ({"length": 3, "null_count": 0}, {"length": 0}):
        array["buffers"] = [somewhere(8), values]
        assert valid_in(b"C", array) == [True] * array["length"]


def test_a_child_has_all_that_its_lists_and_rows_have():
    values = np.arange(8, dtype=np.int32)
    for short, offset in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        child = {"length": 2 * (2 + offset) - short, "buffers": [None, values]}
        outer = {"length": 2, "offset": offset, "buffers": [None], "children": [child]}
        lists_, rows = (b"+w:2", [(b"item", b"i")]), (b"+s", [(b"a", b"i")])
        column = {**outer, "children": [{**child, "length": 2 + offset - short}]}
        if short:
            refuse("too few elements", lists_, **outer)
            refuse("too few elements", rows, **column)
        else:
            first = dlw.from_arrow(Forged(lists_, outer))
            assert (
                first.numpy().tolist()
                == values[: 4 + 2 * offset].reshape(-1, 2)[offset:].tolist()
            )
            second = dlw.from_arrow(Forged(rows, column))
            assert second.numpy().tolist() == values[offset : offset + 2].tolist()

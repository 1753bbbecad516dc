"""Rules 27 to 35: dtypes, by DLPack's triple and by buffer format."""

import array as python_array
import ctypes
import itertools

import numpy as np
import pytest
from conftest import DTYPES
from forge import Forged, versioned

import dlpack_web as dlw


def triple(tensor):
    struct = versioned(tensor.__dlpack__(max_version=(1, 0))).dl_tensor
    return struct.code, struct.bits, struct.lanes


def test_rule_027_a_width_is_that_of_one_kind():
    """All kinds, and a few that are none, with all widths: those of the table alone."""
    table = {(row["code"], row["bits"]) for row in DTYPES}
    taken = set()
    for code, bits in itertools.product(range(24), range(1, 256)):
        try:
            dlw.from_dlpack(Forged(code=code, bits=bits)).release()
            taken.add((code, bits))
        except BufferError:
            pass
    assert taken == table


def test_rule_028_bool_is_a_kind_of_its_own():
    assert triple(dlw.from_dlpack(np.array([True]))) == (6, 8, 1)
    assert triple(dlw.from_dlpack(np.zeros(1, np.uint8))) == (1, 8, 1)
    assert dlw.from_dlpack(Forged(code=6, bits=8)).dtype == "bool"


def test_rule_029_complex_bits_count_both_parts():
    for name, bits in (("complex64", 64), ("complex128", 128)):
        assert triple(dlw.from_dlpack(np.zeros(1, name))) == (5, bits, 1)
    assert dlw.from_dlpack(Forged(code=5, bits=32)).dtype == "complex32"


def test_rule_029_complex_of_bfloat16_is_a_kind_of_its_own():
    """Code 18 of DLPack's main branch: two bfloat16, aligned as one of them."""
    with dlw.from_dlpack(Forged(code=18, bits=32)) as tensor:
        assert (tensor.dtype, triple(tensor)) == ("bcomplex32", (18, 32, 1))
        assert dlw.DType("bcomplex32x4").__dlpack_data_type__() == (18, 32, 4)
        assert tensor[0, 1:].tobytes() == np.array([1, 2], "f4").tobytes()
    odd = Forged(code=18, bits=32, byte_offset=2, ndim=1, shape=[2], strides=[1])
    with dlw.from_dlpack(odd) as tensor:
        assert tensor.tobytes() == np.arange(3, dtype="f4").tobytes()[2:10]


def test_rule_030_bfloat16_is_never_something_else():
    """NumPy takes it when it was told how; otherwise it refuses, and t.numpy() does."""
    with dlw.from_dlpack(Forged(code=4, bits=16)) as tensor:
        assert (tensor.dtype, triple(tensor)) == ("bfloat16", (4, 16, 1))
        try:
            array = np.from_dlpack(tensor)
        except (BufferError, RuntimeError):  # the latter by older NumPys
            array = tensor.numpy()
        assert array.dtype.itemsize == 2
        assert array.dtype.kind not in "fiu"


@pytest.mark.parametrize("name", ["longdouble", "clongdouble"])
def test_rule_031_long_doubles_are_refused(name):
    array = np.zeros(2, name)
    if array.itemsize <= (8 if name == "longdouble" else 16):
        assert dlw.from_dlpack(array).itemsize == array.itemsize  # a plain double here
        return
    for make in (dlw.from_dlpack, dlw.from_buffer):
        with pytest.raises(BufferError):
            make(array)


@pytest.mark.parametrize("letter", "bBhHiIlLqQfd")
def test_rule_034_letters_map_by_item_size(letter):
    """`l` has 4 bytes on wasm32 and 8 on 64-bit machines."""
    values = python_array.array(letter, [1, 2])
    with dlw.from_buffer(values) as tensor:
        kind = {"f": "float", "d": "float"}.get(
            letter, "uint" if letter.isupper() else "int"
        )
        assert tensor.dtype == f"{kind}{8 * values.itemsize}"
        assert memoryview(tensor).tolist() == [1, 2]
        memoryview(tensor)[0] = 7
    assert values[0] == 7


def test_rule_034_pointer_sized_integers_are_integers():
    size = ctypes.sizeof(ctypes.c_size_t) * 8
    view = memoryview(bytearray(16)).cast("N")
    assert dlw.from_buffer(view).dtype == f"uint{size}"
    assert dlw.from_buffer(memoryview(bytearray(16)).cast("n")).dtype == f"int{size}"


@pytest.mark.parametrize("order", ["@", "=", "<"])
def test_rule_035_native_orders_are_accepted(order):
    view = (ctypes.c_int32 * 2)(1, 2)
    assert memoryview(view).format in ("<i", "<l")  # the latter on wasm32
    assert dlw.from_buffer(view).dtype == "int32"
    if order == "@":
        assert dlw.from_buffer(memoryview(bytearray(8)).cast("@i")).dtype == "int32"
    else:
        dtype = np.dtype(f"{order}i4")
        assert dlw.from_buffer(np.zeros(2, dtype)).dtype == "int32"


def test_rule_035_foreign_orders_are_refused():
    big = (ctypes.c_int32.__ctype_be__ * 2)(1, 2)
    assert memoryview(big).format in (">i", ">l")
    with pytest.raises(BufferError, match=r"'>[il]'"):
        dlw.from_buffer(big)

"""Every dtype of tests/dtypes.json, in and out."""

import ctypes
import operator
import sys
from pathlib import Path

import numpy as np
import pytest
from forge import SUBBYTE_PADDED, Forged, dims, versioned

import dlpack_web as dlw


def sample(row):
    """2 x 3 elements with distinct bytes that are valid for the dtype."""
    if row["name"] == "bool":
        return np.array([[True, False, True], [False, False, True]])
    dtype = np.dtype(row["name"])
    if dtype.kind in "iu":
        edges = np.iinfo(dtype)
        return np.array([[edges.min, 1, 2], [3, 4, edges.max]], dtype)
    values = np.array([[-1.5, 0.0, np.inf], [2.5, -0.0, 1024.0]])
    return (values + 0.25j if dtype.kind == "c" else values).astype(dtype)


@pytest.mark.parametrize("make", [dlw.from_dlpack, dlw.from_buffer])
def test_numpy_dtype_round_trips_without_a_copy(np_row, make):
    array = sample(np_row)
    with make(array) as tensor:
        assert tensor.dtype == np_row["name"]
        assert tensor.itemsize == np_row["itemsize"]
        assert tensor.nbytes == array.nbytes
        struct = versioned(tensor.__dlpack__(max_version=(1, 0))).dl_tensor
        for field in ("code", "bits", "lanes"):
            assert getattr(struct, field) == np_row[field]
        for back in (np.asarray(tensor), np.from_dlpack(tensor), tensor.numpy()):
            assert back.dtype == array.dtype
            assert back.ctypes.data == array.ctypes.data
            assert back.tobytes() == array.tobytes()


def test_buffer_format_is_numpys(np_row):
    array = sample(np_row)
    view = memoryview(dlw.from_dlpack(array))
    assert np.dtype(np.asarray(view).dtype) == array.dtype
    assert view.itemsize == np_row["itemsize"]
    assert view.format == memoryview(array).format
    assert np.asarray(view).dtype.type is array.dtype.type  # of isinstance()


def packed_bytes(row, count=6):
    """DLPack 1.3: elements of less than a byte share bytes."""
    return -(-count * row["bits"] * row["lanes"] // 8)


def test_elements_are_aligned_as_their_package_says(dtype):
    """Complex numbers are pairs: those of 4 bytes need 2."""
    if dtype["numpy"] is None:
        pytest.skip("no package has it")
    name = dtype["name"].replace("bool", "bool_")
    package = np
    if not hasattr(np, name) or name.startswith("bcomplex"):
        package = pytest.importorskip("ml_dtypes")
        if not hasattr(package, name):
            pytest.skip(f"this version of ml_dtypes has no {name}")
    kind = np.dtype(getattr(package, name))
    memory = np.zeros(8 + 4 * kind.itemsize, "u1")
    memory = memory[-memory.ctypes.data % 8 :][: 4 * kind.itemsize]
    for start in range(1, kind.itemsize + 1):
        array = memory[start:][: 3 * kind.itemsize - 1].view("u1")
        array = np.ndarray(2, kind, array.data)
        aligned = start % kind.alignment == 0
        if aligned:
            with dlw.from_dlpack(array, copy=False) as tensor:
                assert tensor.dtype == dtype["name"]
        else:
            with pytest.raises(
                BufferError, match=f"not aligned to {kind.alignment} bytes"
            ):
                dlw.from_dlpack(array)
        dlw.from_dlpack(array, copy=True).release()


def test_a_dtype_is_compared_with_anything():
    """Foreign attributes are foreign code, and a name alone is no dtype."""

    class Hostile:
        def __getattribute__(self, name):
            raise RuntimeError(name)

    class HostileDType(Hostile):
        pass

    class HostileKind(type):
        __name__ = property(lambda kind: kind.missing)

    class OfHostileKind(metaclass=HostileKind):
        pass

    class Named:
        name = __name__ = "float64"

    class Float64DType(Named):
        pass

    dtype = dlw.DType("float64")
    for same in ("float64", np.float64, np.dtype("f8"), float, dtype, Float64DType()):
        assert dtype == same
        assert same == dtype
        assert not operator.ne(dtype, same)
    hostile = [Hostile(), HostileDType(), OfHostileKind()]
    others = [Path("float64"), Named(), None, 3, [], object(), int]
    others += ["float32", np.float32, np.dtype(">f8")]
    for other in (*hostile, *others):
        assert dtype != other
        assert not operator.eq(dtype, other)
    for other in others:
        assert other != dtype
    assert dtype in ("a", Path("float64"), Hostile(), np.float64)
    assert {dtype: 1}["float64"] == 1


def test_empty_has_dtype_and_alignment(dtype):
    with dlw.empty((2, 3), dtype["name"]) as tensor:
        assert tensor.dtype == dtype["name"]
        assert tensor.itemsize == dtype["itemsize"]
        assert tensor.nbytes == packed_bytes(dtype)
        assert not tensor.padded
        struct = versioned(tensor.__dlpack__(max_version=(1, 0))).dl_tensor
        assert struct.data % 256 == 0
        assert dims(struct.strides, 2) == (3, 1)


def test_other_dtype_is_carried_with_its_bytes(other_row):
    producer = Forged(code=other_row["code"], bits=other_row["bits"])
    tensor = dlw.from_dlpack(producer)
    assert tensor.dtype == other_row["name"]
    copied = versioned(tensor.__dlpack__(max_version=(1, 0), copy=True)).dl_tensor
    assert (copied.code, copied.bits) == (other_row["code"], other_row["bits"])
    size = packed_bytes(other_row)
    original = bytearray(bytes(producer.memory)[:size])
    if other_row["bits"] % 8:  # what lies behind the last element is 0 in a copy
        original[-1] &= 0xFF >> (-6 * other_row["bits"]) % 8
    assert ctypes.string_at(copied.data, size) == original


def test_other_dtype_has_no_buffer_format(other_row):
    with (
        dlw.empty(3, other_row["name"]) as tensor,
        pytest.raises(
            BufferError, match=rf"no format for {other_row['name']}; .*numpy"
        ),
    ):
        memoryview(tensor)


@pytest.fixture(params=["ml_dtypes", "raw bytes"])
def extension(request, monkeypatch):
    """ml_dtypes, or None where it is missing, as it is in a plain Pyodide."""
    if request.param == "raw bytes":
        monkeypatch.setitem(sys.modules, "ml_dtypes", None)
        return None
    return pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")


def is_dtype(array, name, extension):
    """Whether the array is of that dtype, or of raw bytes that say so: where ml_dtypes is
    missing, or older than the dtype."""
    if hasattr(extension, name):
        return array.dtype == getattr(extension, name)
    return array.dtype.kind == "V" and array.dtype.metadata == {"dlpack": name}


def forged_other(row, **fields):
    """Every second element of a row, beginning with the last."""
    if row["bits"] < 8:
        fields["flags"] = SUBBYTE_PADDED
    offset = 2 * row["itemsize"]
    return Forged(
        code=row["code"],
        bits=row["bits"],
        byte_offset=offset,
        strides=(1, -2),
        **fields,
    )


def test_other_dtype_reaches_numpy_without_a_copy(other_array_row, extension):
    producer = forged_other(other_array_row, shape=(2, 2))
    itemsize = other_array_row["itemsize"]
    with dlw.from_dlpack(producer) as tensor:
        assert tensor.padded == (other_array_row["bits"] < 8)
        array = tensor.numpy()
        assert np.asarray(tensor).ctypes.data == array.ctypes.data
    assert is_dtype(array, other_array_row["name"], extension)
    assert array.ctypes.data == ctypes.addressof(producer.memory) + 2 * itemsize
    assert (array.shape, array.strides) == ((2, 2), (itemsize, -2 * itemsize))
    assert producer.deleted == 0
    del array
    assert producer.deleted == 1


@pytest.mark.parametrize("make", [dlw.from_dlpack, dlw.from_buffer])
def test_array_of_other_dtype_comes_back_without_a_copy(
    other_array_row, extension, make
):
    source = dlw.empty((2, 3), other_array_row["name"]).numpy()
    array = source.copy() if other_array_row["bits"] < 8 else source
    with make(array.T) as tensor:
        assert tensor.dtype == other_array_row["name"]
        assert (tensor.shape, tensor.strides) == ((3, 2), (1, 3))
        assert tensor.padded == (other_array_row["bits"] < 8)
        assert tensor.numpy().ctypes.data == array.ctypes.data
        assert is_dtype(tensor.numpy(), other_array_row["name"], extension)
    with dlw.from_dlpack(array, copy=True) as copy:
        assert not np.shares_memory(copy.numpy(), array)
        assert copy.numpy().tobytes() == array.tobytes()
    odd = np.frombuffer(b"0" + array.tobytes(), "u1")[1:].view(array.dtype)
    with dlw.from_dlpack(odd, copy=True) as copy:
        assert copy.numpy().tobytes() == array.tobytes()
    if odd.itemsize > 1:
        with pytest.raises(BufferError, match=r"not aligned to .*x\.copy\(\)"):
            make(odd)
    swapped = array.view(array.dtype.newbyteorder())
    if odd.itemsize > 1 and not swapped.dtype.isnative:
        with pytest.raises(BufferError, match="DLPack is native-endian; use"):
            make(swapped)
    array.flags.writeable = False
    with make(array) as tensor:
        assert tensor.read_only
        assert not tensor.numpy().flags.writeable


def values_of(row, count):
    """Distinct bit patterns, which use the highest bits, too."""
    return [
        (i * 5 + 1 << max(row["bits"] - 7, 0)) % 2 ** row["bits"] for i in range(count)
    ]


def packed(values, bits):
    """Little bit-endian: the first element in the lowest bits."""
    number = sum(value << i * bits for i, value in enumerate(values))
    return number.to_bytes(-(-len(values) * bits // 8), "little")


def test_packed_elements_are_unpacked_for_numpy(packed_row, extension):
    bits, values = packed_row["bits"], values_of(packed_row, 6)
    producer = Forged(code=packed_row["code"], bits=bits)
    ctypes.memmove(producer.memory, packed(values, bits), 6 * bits // 8 + 1)
    array = dlw.from_dlpack(producer).numpy()
    assert is_dtype(array, packed_row["name"], extension)
    assert array.shape == (2, 3)
    assert not array.flags.writeable
    unpacked = np.frombuffer(array.tobytes(), f"u{packed_row['itemsize']}") % 2**bits
    assert unpacked.tolist() == values


def test_packed_elements_are_copied_bit_by_bit(packed_row):
    """Transposed and reversed, over memory that ends within a byte."""
    bits, values = packed_row["bits"], values_of(packed_row, 15)
    producer = Forged(
        code=packed_row["code"],
        bits=bits,
        shape=(5, 3),
        strides=(1, 5),
    )
    ctypes.memmove(producer.memory, packed(values, bits), -(-15 * bits // 8))
    with dlw.from_dlpack(producer, copy=True) as tensor:
        assert (tensor.strides, tensor.nbytes) == ((3, 1), -(-15 * bits // 8))
        struct = versioned(tensor.__dlpack__(max_version=(1, 0))).dl_tensor
        copied = ctypes.string_at(struct.data, tensor.nbytes)
    transposed = [values[row + 5 * column] for row in range(5) for column in range(3)]
    assert copied == packed(transposed, bits)


def test_padded_elements_have_a_byte_each(sub_byte_row):
    producer = Forged(
        code=sub_byte_row["code"], bits=sub_byte_row["bits"], flags=SUBBYTE_PADDED
    )
    with (
        dlw.from_dlpack(producer) as tensor,
        dlw.from_dlpack(tensor, copy=True) as copy,
    ):
        for padded in (tensor, copy):
            assert padded.padded
            assert (padded.itemsize, padded.nbytes) == (1, 6)
            struct = versioned(padded.__dlpack__(max_version=(1, 0)))
            assert struct.flags == SUBBYTE_PADDED
        assert copy.numpy().tobytes() == bytes(producer.memory)[:6]


@pytest.mark.parametrize("lanes", [2, 3, 4, 65535])
def test_lanes_are_carried_and_a_last_axis_of_arrays(np_row, lanes):
    with dlw.empty((2, 1), f"{np_row['name']}x{lanes}") as tensor:
        assert tensor.dtype == f"{np_row['name']}x{lanes}"
        assert tensor.itemsize == np_row["itemsize"] * lanes
        assert tensor.nbytes == 2 * tensor.itemsize
        array = tensor.numpy()
        assert (array.shape, array.dtype) == ((2, 1, lanes), np_row["name"])
        array[1, 0, lanes - 1] = 1
        struct = versioned(tensor.__dlpack__(max_version=(1, 0))).dl_tensor
        assert (struct.lanes, struct.data) == (lanes, array.ctypes.data)
        with dlw.from_dlpack(tensor, copy=True) as copy:
            assert copy.dtype == tensor.dtype
            assert copy.numpy()[1, 0, -1] == 1


def test_strided_vectors_are_shared_and_packed():
    array = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    producer = Forged(
        lanes=3, shape=(2, 2), strides=(4, -1), byte_offset=12, data=array.ctypes.data
    )
    with dlw.from_dlpack(producer) as tensor:
        np.testing.assert_array_equal(tensor.numpy(), array[::2, ::-1])
        with dlw.from_dlpack(tensor, copy=True) as copy:
            np.testing.assert_array_equal(copy.numpy(), array[::2, ::-1])


def test_vectors_of_sub_byte_elements_are_packed():
    """As PyTorch's float4_e2m1fn_x2 is."""
    with dlw.empty(5, "float4_e2m1fnx2") as tensor:
        assert (tensor.itemsize, tensor.nbytes) == (1, 5)
        assert tensor.numpy().shape == (5, 2)
    with dlw.empty(5, "uint2x3") as tensor:
        assert (tensor.itemsize, tensor.nbytes) == (1, 4)
    padded = Forged(code=17, bits=4, lanes=2, flags=SUBBYTE_PADDED)
    with pytest.raises(BufferError, match="float4_e2m1fnx2, padded"):
        dlw.from_dlpack(padded)
    assert padded.deleted == 1


def test_no_other_void_array_is_taken_in():
    """Only the dtypes of ml_dtypes, and raw bytes that carry a name."""
    named = np.dtype("V2", metadata={"dlpack": "float32"})  # not its width
    fields = np.dtype([("a", "u2")], metadata={"dlpack": "bfloat16"})
    for dtype in ("V2", named, fields):
        with pytest.raises(BufferError):
            dlw.from_dlpack(np.zeros(2, dtype))


class TorchDType:
    """PyTorch's have no name but what str says."""

    def __init__(self, scalar):
        self.scalar = scalar

    def __repr__(self):
        return f"torch.{self.scalar}"


def test_dtype_may_be_given_as_numpys():
    for given in (np.float16, np.dtype("float16"), "float16", TorchDType("float16")):
        assert dlw.empty(2, given).dtype == "float16"


@pytest.mark.parametrize(
    "given",
    [
        *(
            "float31",
            "f4",
            "object",
            "",
            "int3",
            "bool1",
            "x4",
            "float32x",
            "float32x1",
        ),
        "float32x04",
        "float32x-2",
        "float32x65536",
        "float32x2x2",
        "float32x٣",
        pytest.param("float32x" + "9" * 5000, id="more digits than int() takes"),
    ],
)
def test_unknown_dtype_name_says_which_are_known(given):
    hint = {"f4": "; did you mean 'float32'?"}.get(given, "")
    with pytest.raises(TypeError) as caught:
        dlw.empty(2, given)
    assert str(caught.value) == (
        f"unknown dtype {given!r:.100}: 'bool', 'int1' to 'int64', 'uint1' to 'uint64', "
        "'float16' to 'float64', 'complex32' to 'complex128', 'bfloat16', 'bcomplex32', "
        "DLPack's floats of 8, 6 and 4 bits, and vectors such as 'float32x4' are "
        f"supported{hint}"
    )


@pytest.mark.parametrize("given", [3.5, None, TorchDType("quint8")])
@pytest.mark.parametrize("use", [dlw.DType, lambda given: dlw.empty(2, given)])
def test_dtype_without_a_name_is_refused(given, use):
    with pytest.raises(TypeError, match=r"dtype must be a name such as .*, not "):
        use(given)


@pytest.mark.parametrize(
    "given",
    [np.float64, np.dtype("float64"), float, "float64", dlw.DType("float64")],
    ids=repr,
)
def test_dtype_takes_what_an_array_of_it_has(given):
    dtype = dlw.DType(given)
    assert type(dtype) is dlw.DType
    assert (dtype.name, dtype.itemsize) == ("float64", 8)

"""Rules 1 to 26: what the structs say, as producer and as consumer."""

import ctypes

import numpy as np
import pytest
from forge import (
    IS_COPIED,
    READ_ONLY,
    SUBBYTE_PADDED,
    WEBGPU,
    DLTensor,
    Forged,
    Legacy,
    Versioned,
    dims,
    legacy,
    versioned,
)

import dlpack_web as dlw

HUGE = 2**62


def exported(x, **keywords):
    """The versioned struct that a tensor over `x` exports."""
    keywords.setdefault("max_version", (1, 0))
    return versioned(dlw.from_dlpack(x).__dlpack__(**keywords))


#: Structs that are refused: the rule, what the error says, what the struct says.
REFUSED = [
    (4, r"unsupported dtype .* of DLPack 1\.3 are", {"minor": 99, "code": 19}),
    *(
        (9, f"dimensions {ndim}: 0 to 64", {"ndim": ndim})
        for ndim in (-1, 65, 2**31 - 1, -(2**31))
    ),
    (16, "address space", {"ndim": 3, "shape": (HUGE, HUGE, 0), "strides": None}),
    (21, "not aligned to 4 bytes", {"byte_offset": 2}),
    (22, "address space", {"shape": (HUGE, HUGE), "strides": None}),
    (22, "address space", {"shape": (HUGE, 1)}),
    (22, "address space", {"strides": (HUGE, 1)}),
    (22, "address space", {"strides": (-HUGE, 1)}),
    (22, "address space", {"shape": (2**31, 2**31), "strides": (0, 0)}),
    (
        22,
        "address space",
        {"shape": (2**45,), "ndim": 1, "lanes": 65535, "strides": (0,)},
    ),
    (22, "address space", {"byte_offset": 2**64 - 4}),
    (22, "address space", {"byte_offset": 2**63}),
    (22, "shape", {"shape": None}),
    (22, "shape", {"shape": (2, -3)}),
    (22, "NULL", {"data": None}),
    (25, "lanes 0", {"lanes": 0}),
    *(
        (rule, rf"dtype \(code {code}, bits {bits}", {"code": code, "bits": bits})
        for rule, code, *widths in (
            (24, 15, 4, 8),
            (24, 16, 4),
            (24, 17, 6, 8),
            (24, 7, 4),
            (24, 14, 16),
            (26, 3, 64),
            (27, 0, 11, 0, 128),
            (27, 2, 8, 128),
            (27, 200, 8),
            (28, 6, 1, 16),
            (29, 5, 16),
            (29, 18, 16, 64),
        )
        for bits in widths
    ),
    *(
        (90, rf"unsupported device \w+ \(type {kind}, id 2\)", {"device_type": kind})
        for kind in (-7, 0)
    ),
    # The message has DLPack's name, of a kind that there is.
    *(
        (119, rf"device {name} \(type {kind}, id 2\)", {"device_type": kind})
        for kind, name in (
            dict.fromkeys(range(1, 24), "unknown")
            | {kind.value: kind.name for kind in dlw.DLDeviceType}
        ).items()
        if kind != WEBGPU and not dlw.Device(kind, 2).is_host
    ),
]


@pytest.mark.parametrize(("rule", "message", "fields"), REFUSED, ids=str)
def test_structs_that_are_refused(rule, message, fields):
    """And the capsule's destructor frees each, once."""
    producer = Forged(**{"device_id": 2, **fields} if rule in (90, 119) else fields)
    with pytest.raises(BufferError, match=message):
        dlw.from_dlpack(producer)
    assert producer.deleted == 1


@pytest.mark.parametrize("major", [0, 2, 9])
def test_rule_002_003_foreign_major_is_not_looked_into(major):
    """Only version, manager_ctx, deleter and flags may be touched: the rest is a trap."""
    trap = ctypes.POINTER(ctypes.c_int64)()
    producer = Forged(major=major, ndim=2**31 - 1, data=1)
    producer.managed.dl_tensor.shape = trap
    with pytest.raises(BufferError, match=rf"DLPack {major}\.3, this library 1\.3"):
        dlw.from_dlpack(producer)
    assert producer.deleted == 1


def test_rule_004_larger_minor_is_accepted():
    assert dlw.from_dlpack(Forged(minor=99)).dtype == "float32"


def test_rule_005_unknown_flags_are_ignored():
    for flags in (1 << 3, 1 << 40, 1 << 63):
        assert not dlw.from_dlpack(Forged(flags=flags)).read_only
        assert dlw.from_dlpack(Forged(flags=flags | READ_ONLY)).read_only
        assert exported(Forged(flags=flags)).flags == 0
    # Of elements of whole bytes the flag for padding says nothing.
    assert not dlw.from_dlpack(Forged(flags=SUBBYTE_PADDED)).padded


def test_rule_006_flags_are_those_of_the_header():
    assert exported(np.zeros(2)).flags == 0
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    assert exported(frozen).flags == READ_ONLY == 1
    assert exported(np.zeros(2), copy=True).flags == IS_COPIED == 2
    padded = Forged(code=0, bits=4, flags=SUBBYTE_PADDED)
    assert exported(padded).flags == SUBBYTE_PADDED == 4


def test_rule_007_upper_flags_survive_clearing_a_lower_one():
    """`~1UL` is 32 bits wide on wasm32. Flags behind bit 31 must not decide anything."""
    for flags in (1 << 32 | IS_COPIED, 1 << 32 | READ_ONLY | IS_COPIED):
        tensor = dlw.from_dlpack(Forged(flags=flags))
        assert tensor.read_only == bool(flags & READ_ONLY)


def test_rule_008_023_layout_is_that_of_the_machine():
    """The C core asserts the numbers; here: ctypes, which follows the header's order."""
    narrow = ctypes.sizeof(ctypes.c_void_p) == 4
    assert ctypes.sizeof(DLTensor) == (40 if narrow else 48)
    assert ctypes.sizeof(Legacy) == (48 if narrow else 64)
    assert ctypes.sizeof(Versioned) == (64 if narrow else 80)
    assert Versioned.dl_tensor.offset == (24 if narrow else 32)
    struct = exported(np.arange(6, dtype=np.int16).reshape(2, 3)).dl_tensor
    assert (struct.device_type, struct.device_id) == (1, 0)
    assert (struct.ndim, struct.code, struct.bits, struct.lanes) == (2, 0, 16, 1)


def test_rule_010_zero_dimensions_need_no_shape():
    producer = Forged(ndim=0, shape=None, strides=None)
    assert dlw.from_dlpack(producer).numpy() == 0
    struct = exported(np.array(7.5)).dl_tensor
    assert (struct.ndim, dims(struct.shape, 0)) in {(0, None), (0, ())}


@pytest.mark.parametrize("array", [np.zeros((2, 3)), np.zeros((2, 0)), np.zeros(1)])
def test_rule_011_strides_are_never_null(array):
    for struct in (
        exported(array).dl_tensor,
        legacy(dlw.from_dlpack(array).__dlpack__()).dl_tensor,
        exported(Forged(strides=None)).dl_tensor,
    ):
        assert len(dims(struct.strides, struct.ndim)) == struct.ndim


@pytest.mark.parametrize("flavour", [Versioned, Legacy])
def test_rule_012_null_strides_are_row_major(flavour):
    with dlw.from_dlpack(Forged(flavour=flavour, strides=None)) as tensor:
        assert tensor.strides == (3, 1)
        assert np.asarray(tensor).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_rule_013_strides_count_elements():
    array = np.arange(24, dtype=np.int32).reshape(4, 6)
    assert dims(exported(array[::-1, ::2]).dl_tensor.strides, 2) == (-6, 2)
    broadcast = exported(np.broadcast_to(array[0], (5, 6)))
    assert dims(broadcast.dl_tensor.strides, 2) == (0, 1)
    assert broadcast.flags == READ_ONLY
    with dlw.from_dlpack(
        Forged(strides=(-1, 0), byte_offset=4, shape=(2, 3))
    ) as tensor:
        assert np.asarray(tensor).tolist() == [[1] * 3, [0] * 3]


def test_rule_014_strides_between_elements_are_refused():
    packed = np.zeros(3, np.dtype([("a", "u1"), ("b", "<u2")], align=False))["b"]
    assert packed.strides == (3,)
    with pytest.raises(BufferError, match="3 bytes, no multiple of the item size 2"):
        dlw.from_buffer(packed[:2])
    with pytest.raises(BufferError):
        dlw.from_dlpack(packed[:2])


def test_rule_014_015_size_one_axes_may_have_any_byte_stride():
    odd = np.ndarray((3, 1), np.float64, np.zeros(30, np.uint8), strides=(8, 3))
    for make in (dlw.from_dlpack, dlw.from_buffer):
        assert make(odd).shape == (3, 1)


def test_rule_015_size_one_axes_do_not_count_for_contiguity():
    with dlw.from_dlpack(Forged(shape=(1, 6), strides=(77, 1))) as tensor:
        assert memoryview(tensor).contiguous
        with dlw.from_dlpack(tensor, copy=True) as copy:
            assert np.asarray(copy).tolist() == [[0, 1, 2, 3, 4, 5]]


def test_rule_016_017_empty_tensors_have_null_and_no_strides_that_matter():
    tensor = dlw.from_dlpack(np.zeros((2, 0)))
    struct = versioned(tensor.__dlpack__(max_version=(1, 0))).dl_tensor
    assert struct.data is None
    assert dims(struct.shape, 2) == (2, 0)
    for data in (None, 1):
        empty = Forged(data=data, shape=(2, 0), strides=(HUGE, -HUGE))
        tensor = dlw.from_dlpack(empty)
        assert tensor.numpy().shape == (2, 0)
        assert memoryview(tensor).contiguous


def test_rule_018_byte_offset_moves_element_0():
    with dlw.from_dlpack(Forged(byte_offset=4, shape=(1, 2))) as tensor:
        assert tensor.byte_offset == 0  # What is handed on starts at its data.
        assert np.asarray(tensor).tolist() == [[1, 2]]
        assert memoryview(tensor).tolist() == [[1, 2]]
        assert np.from_dlpack(tensor).tolist() == [[1, 2]]


def test_rule_019_byte_offset_is_0_for_memory_that_we_describe():
    array = np.arange(24).reshape(4, 6)
    for view in (array[2:, 3:], array[::-1, ::-1]):
        for make in (dlw.from_dlpack, dlw.from_buffer):
            struct = versioned(make(view).__dlpack__(max_version=(1, 0))).dl_tensor
            assert (struct.byte_offset, struct.data) == (0, view.ctypes.data)


def test_rule_019_byte_offset_stays_where_data_is_a_handle():
    producer = Forged(device_type=15, device_id=3, data=0x1234, byte_offset=256)
    tensor = dlw.from_dlpack(producer)
    again = dlw.from_dlpack(tensor)
    assert (again.device, again.byte_offset) == ((15, 3), 256)
    struct = versioned(again.__dlpack__(max_version=(1, 0))).dl_tensor
    assert (struct.data, struct.byte_offset) == (0x1234, 256)


def test_rule_020_alignment_to_the_element_is_enough():
    memory = np.zeros(40, np.uint8)
    start = -memory.ctypes.data % 8 + 8  # aligned to 8, hardly ever to 256
    array = memory[start : start + 16].view(np.float64)
    assert np.shares_memory(dlw.from_dlpack(array).numpy(), array)
    with dlw.empty(3) as tensor:  # what we allocate ourselves is aligned to 256
        assert exported(tensor).dl_tensor.data % 256 == 0


def test_rule_021_misaligned_data_is_refused():
    array = np.zeros(9, np.uint8)[1:].view(np.int32)
    for make in (dlw.from_dlpack, dlw.from_buffer):
        with pytest.raises(BufferError, match=r"not aligned to 4 bytes.*x\.copy\(\)"):
            make(array)
    assert dlw.from_dlpack(array, copy=True).shape == (2,)
    # Complex numbers are pairs: what a part needs is enough.
    assert (
        dlw.from_dlpack(Forged(code=5, bits=64, byte_offset=4, shape=(1, 1))).size == 1
    )


def test_rule_022_bytes_are_elements_times_bits_times_lanes():
    for code, bits, lanes, nbytes in ((0, 4, 1, 3), (15, 6, 1, 5), (17, 4, 2, 6)):
        with dlw.from_dlpack(Forged(code=code, bits=bits, lanes=lanes)) as tensor:
            assert tensor.nbytes == nbytes
    broadcast = Forged(shape=(1000, 1000), strides=(0, 0))
    with dlw.from_dlpack(broadcast) as tensor:
        assert tensor.nbytes == 4_000_000


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_rule_024_sub_byte_elements_begin_at_the_lowest_bit(bits):
    """The first element is in the lowest bits of the first byte."""
    producer = Forged(code=1, bits=bits, shape=(1, 8 // bits))
    ctypes.memset(producer.memory, 0b10010011, 1)
    expected = [0b10010011 >> at & (2**bits - 1) for at in range(0, 8, bits)]
    assert list(dlw.from_dlpack(producer).numpy().tobytes()) == expected


def test_rule_025_lanes_are_vectors_and_nothing_else():
    """We have vector types: an element of two lanes is not two elements."""
    with dlw.from_dlpack(Forged(lanes=2, shape=(1, 3))) as tensor:
        assert (tensor.dtype, tensor.size, tensor.nbytes) == ("float32x2", 3, 24)
        assert exported(tensor).dl_tensor.lanes == 2
        with pytest.raises(BufferError, match="no format for float32x2"):
            memoryview(tensor)

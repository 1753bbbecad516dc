"""Hostile or broken structs: the right exception, the deleter as the rules say."""

import numpy as np
import pytest
from forge import (
    READ_ONLY,
    Forged,
    Legacy,
    Versioned,
    get_name,
    new_capsule,
)

import dlpack_web as dlw

HUGE = 2**62


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"major": 2}, r"DLPack 2\.3, this library 1\.3"),
        ({"major": 0}, r"DLPack 0\.3, this library 1\.3"),
        ({"ndim": -1}, "dimensions -1: 0 to 64"),
        ({"ndim": 65}, "dimensions 65: 0 to 64"),
        ({"ndim": 2**31 - 1}, "0 to 64"),
        ({"shape": None}, "shape"),
        ({"shape": (2, -3)}, "negative extent"),
        ({"shape": (HUGE, HUGE), "strides": None}, "address space"),
        ({"shape": (HUGE, 1)}, "address space"),
        ({"strides": (HUGE, 1)}, "address space"),
        ({"strides": (-HUGE, 1)}, "address space"),
        ({"shape": (2**31, 2**31), "strides": (0, 0)}, "address space"),
        ({"byte_offset": 2**64 - 4}, "address space"),
        ({"byte_offset": 2**63}, "address space"),
        ({"data": None}, "NULL"),
        ({"lanes": 0}, r"unsupported dtype \(code 2, bits 32, lanes 0\)"),
        ({"bits": 12}, "unsupported dtype"),
        ({"bits": 0}, "unsupported dtype"),
        ({"code": 3}, "unsupported dtype"),  # kDLOpaqueHandle
        ({"code": 17, "bits": 6}, "unsupported dtype"),
        ({"code": 15, "bits": 4}, "unsupported dtype"),
        ({"code": 6, "bits": 1}, "unsupported dtype"),
        (
            {"shape": (2**45,), "ndim": 1, "lanes": 65535, "strides": (0,)},
            "address space",
        ),
        ({"code": 200}, "unsupported dtype"),
        ({"device_type": 2}, r"device \(type 2, id 0\): cpu \(1\) and webgpu \(15\)"),
        ({"device_type": -7}, r"device \(type -7, id 0\)"),
        ({"byte_offset": 2}, "not aligned to 4 bytes"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_bad_struct_is_refused_and_freed_by_its_capsule(fields, message):
    producer = Forged(**fields)
    with pytest.raises(BufferError, match=message):
        dlw.from_dlpack(producer)
    assert producer.deleted == 1


def test_foreign_major_is_not_looked_into():
    """Only version, manager_ctx, deleter and flags may be touched."""
    producer = Forged(major=9)
    producer.managed.dl_tensor.shape = None
    producer.managed.dl_tensor.ndim = 2**31 - 1
    with pytest.raises(BufferError, match="DLPack 9"):
        dlw.from_dlpack(producer)


@pytest.mark.parametrize("flavour", [Versioned, Legacy])
def test_good_struct_is_taken_over_and_freed_once(flavour):
    producer = Forged(flavour=flavour)
    tensor = dlw.from_dlpack(producer)
    assert np.asarray(tensor).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert producer.deleted == 0
    tensor.release()
    tensor.release()
    assert producer.deleted == 1


@pytest.mark.parametrize("flavour", [Versioned, Legacy])
def test_null_deleter_is_not_called(flavour):
    with dlw.from_dlpack(Forged(flavour=flavour, no_deleter=True)) as tensor:
        assert tensor.shape == (2, 3)


def test_larger_minor_is_accepted():
    assert dlw.from_dlpack(Forged(minor=99)).dtype == "float32"


def test_unknown_flags_are_ignored():
    assert not dlw.from_dlpack(Forged(flags=1 << 40)).read_only
    assert dlw.from_dlpack(Forged(flags=1 << 40 | READ_ONLY)).read_only


def test_null_strides_are_row_major():
    with dlw.from_dlpack(Forged(strides=None)) as tensor:
        assert tensor.strides == (3, 1)
        assert np.asarray(tensor)[1, 2] == 5


def test_byte_offset_moves_element_0():
    with dlw.from_dlpack(Forged(byte_offset=4, shape=(1, 2))) as tensor:
        assert tensor.byte_offset == 4
        assert np.asarray(tensor).tolist() == [[1, 2]]
        assert memoryview(tensor).tolist() == [[1, 2]]


def test_zero_dimensions_need_no_shape():
    producer = Forged(ndim=0, shape=None, strides=None)
    assert dlw.from_dlpack(producer).numpy() == 0


def test_empty_data_may_be_null_or_anything():
    for data in (None, 1):
        tensor = dlw.from_dlpack(Forged(data=data, shape=(2, 0), strides=None))
        assert tensor.numpy().shape == (2, 0)


def test_zero_extent_hides_no_overflow():
    with pytest.raises(BufferError, match="address space"):
        dlw.from_dlpack(Forged(ndim=3, shape=(HUGE, HUGE, 0), strides=None))


def test_broadcast_of_one_element():
    with dlw.from_dlpack(Forged(shape=(1000, 1000), strides=(0, 0))) as tensor:
        assert tensor.nbytes == 4_000_000
        assert np.asarray(tensor).sum() == 0


@pytest.mark.parametrize("name", [b"dltensor_other", b"used_something", b"x"])
def test_capsule_with_another_name_is_refused(name):
    with pytest.raises(TypeError, match="must return a capsule named"):
        dlw.from_dlpack(Forged(name=name))


@pytest.mark.parametrize("name", [b"used_dltensor", b"used_dltensor_versioned"])
def test_consumed_capsule_is_a_value_error(name):
    with pytest.raises(ValueError, match="consumed already") as caught:
        dlw.from_dlpack(Forged(name=name))
    assert not isinstance(caught.value, BufferError)


def test_capsule_is_renamed_when_taken_over():
    producer = Forged()
    capsule = producer.__dlpack__()
    tensor = dlw.from_dlpack(capsule)
    assert get_name(capsule) == b"used_dltensor_versioned"
    del capsule
    assert producer.deleted == 0
    tensor.release()
    assert producer.deleted == 1


def test_refused_capsule_keeps_its_name():
    producer = Forged(lanes=0)
    capsule = producer.__dlpack__()
    with pytest.raises(BufferError):
        dlw.from_dlpack(capsule)
    assert get_name(capsule) == b"dltensor_versioned"


@pytest.mark.parametrize("returned", [None, 5, "capsule"])
def test_garbage_instead_of_a_capsule_is_refused(returned):
    class Garbage:
        def __dlpack__(self, **keywords):
            return returned

    with pytest.raises(TypeError, match="must return a capsule"):
        dlw.from_dlpack(Garbage())


def test_export_of_a_webgpu_struct_stays_webgpu():
    """To C a GPU tensor is an opaque handle with its offset in byte_offset."""
    producer = Forged(device_type=15, device_id=3, data=0x1234, byte_offset=256)
    tensor = dlw.from_dlpack(producer)
    assert tensor.device == (15, 3)
    assert str(tensor.device) == "webgpu:3"
    again = dlw.from_dlpack(tensor)
    assert (again.device, again.byte_offset) == ((15, 3), 256)
    with pytest.raises(BufferError, match="to_host"):
        memoryview(again)
    with pytest.raises(BufferError, match="copy=True is supported for CPU"):
        again.__dlpack__(copy=True)
    with pytest.raises(dlw.CopyError, match="copies it"):
        again.__dlpack__(dl_device=(1, 0), copy=False)


def test_destructor_with_a_name_of_its_own_is_left_alone():
    """A capsule that is no DLPack capsule is not touched."""
    producer = Forged()
    other = new_capsule(1234, b"other", producer.destructor)
    with pytest.raises(TypeError):
        dlw.from_dlpack(other)
    assert get_name(other) == b"other"

"""What only ONNX Runtime has: models that read and write our memory."""

import numpy as np
import pytest
from frameworks import address, aligned

import dlpack_web as dlw

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def varint(number):
    """As protocol buffers have it: 7 bits a byte, the lowest first."""
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(number, value):
    """One field of a message: a number, a string, or a message as bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def doubling_model(shape):
    """The ONNX model y = x + x, for float32 of that shape."""
    axes = b"".join(field(1, field(1, extent)) for extent in shape)
    tensor = field(1, field(1, 1) + field(2, axes))
    node = field(1, "x") + field(1, "x") + field(2, "y") + field(4, "Add")
    x, y = (field(1, name) + field(2, tensor) for name in "xy")
    graph = field(1, node) + field(2, "double") + field(11, x) + field(12, y)
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


def test_model_reads_and_writes_our_memory():
    session = ort.InferenceSession(
        doubling_model((2, 3)), providers=ort.get_available_providers()
    )
    values = aligned(np.arange(6, dtype=np.float32).reshape(2, 3))
    result = aligned(np.zeros((2, 3), np.float32))
    binding = session.io_binding()
    with dlw.from_dlpack(values) as x, dlw.from_dlpack(result) as y:
        binding.bind_ortvalue_input("x", ort.OrtValue.from_dlpack(x))
        binding.bind_ortvalue_output("y", ort.OrtValue.from_dlpack(y))
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(result, 2 * values)


def test_result_of_a_model_is_shared():
    session = ort.InferenceSession(
        doubling_model((2, 3)), providers=["CPUExecutionProvider"]
    )
    with dlw.from_dlpack(aligned(np.ones((2, 3), np.float32))) as x:
        (y,) = session.run_with_ort_values(["y"], {"x": ort.OrtValue.from_dlpack(x)})
    with dlw.from_dlpack(y) as tensor:
        assert address(tensor) == y.data_ptr()
        assert tensor.numpy().tolist() == [[2] * 3] * 2


def test_its_booleans_are_booleans():
    """They were bytes before 1.32, which exported them as before DLPack had a code for them."""
    value = ort.OrtValue.ortvalue_from_numpy(np.array([True, False]))
    with dlw.from_dlpack(value) as tensor:
        assert tensor.dtype == "bool"
        assert tensor.numpy().tolist() == [True, False]


def test_copy_false_cannot_be_asked_of_it():
    """Its __dlpack__ has no keyword for that, and so nobody could know."""
    value = ort.OrtValue.ortvalue_from_numpy(np.zeros(3))
    with pytest.raises(TypeError, match="unexpected keyword"):
        dlw.from_dlpack(value, copy=False)


def test_copy_may_be_written():
    value = ort.OrtValue.ortvalue_from_numpy(np.zeros(3))
    with dlw.from_dlpack(value, copy=True) as tensor:
        assert not tensor.read_only
        tensor.numpy()[0] = 1
    assert value.numpy().tolist() == [0, 0, 0]

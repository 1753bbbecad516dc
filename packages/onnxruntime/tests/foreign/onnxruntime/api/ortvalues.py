"""OrtValues of all dtypes: what they say of themselves, and how they are written over."""

import numpy as np
import onnxruntime
from checks import check

OrtValue = onnxruntime.OrtValue
of_array = OrtValue.ortvalue_from_numpy
of_shape = OrtValue.ortvalue_from_shape_and_type
DTYPES = [
    np.float32,
    np.float64,
    np.float16,
    np.bool_,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
]

for dtype in DTYPES:
    name = np.dtype(dtype).name
    a = (np.arange(6) % 2).reshape(2, 3).astype(dtype)
    value = of_array(a)
    check(f"{name}: data_type", value.data_type())
    check(f"{name}: element_type", value.element_type())
    check(f"{name}: bytes", value.tensor_size_in_bytes())
    check(f"{name}: numpy", value.numpy())
    fresh = of_shape([2, 3], dtype)
    fresh.update_inplace(1 - a if dtype != np.bool_ else ~a)
    check(f"{name}: written over", fresh.numpy())
    check(f"{name}: fresh data_type", fresh.data_type())

value = of_array(np.zeros((2, 3), np.float32), "cpu", 0)
check("shape", value.shape())
check("device", value.device_name())
check("is_tensor", value.is_tensor())
check("is_sparse_tensor", value.is_sparse_tensor())
check("is_tensor_sequence", value.is_tensor_sequence())
check("has_value", value.has_value())
check("data_ptr is an int", isinstance(value.data_ptr(), int) and value.data_ptr() > 0)
check("proto type", str(value.data_type()))

for shape in [[], [0], [1], [3, 0, 2], [2, 1, 2, 1, 2], (4,), [1, 1]]:
    check(f"{shape}: from shape", lambda: of_shape(shape, np.float32).shape())
    check(f"{shape}: numpy's", lambda: of_array(np.ones(shape, np.float32)).numpy())

check("number for a type", lambda: of_shape([2], 7).data_type())
check("dtype for a type", lambda: of_shape([2], np.dtype("int64")).data_type())
check("no such number", lambda: of_shape([2], 99))
check("negative extent", lambda: of_shape([-1], np.float32))
check("a number for a shape", lambda: of_shape(3, np.float32))
check("no such device", lambda: of_array(np.ones(1, np.float32), "nowhere", 0))
check("complex", lambda: of_array(np.ones(1, np.complex64)))
check("objects", lambda: of_array(np.array([object()])))
check("strings", lambda: of_array(np.array(["a", "b"])))
check("dates", lambda: of_array(np.array(["2020-01-01"], "datetime64[D]")))
check("a list", lambda: of_array([1.0, 2.0]))
check("None", lambda: of_array(None))
check("a number", lambda: of_array(1.0))

base = np.arange(12, dtype=np.float32).reshape(3, 4)
check("transposed", lambda: of_array(base.T).numpy())
check("every second", lambda: of_array(base[:, ::2]).numpy())
check("backwards", lambda: of_array(base[::-1]).numpy())
check("Fortran's order", lambda: of_array(np.asfortranarray(base)).numpy())
check("of the other byte order", lambda: of_array(base.astype(">f4")).numpy().tolist())
frozen = base.copy()
frozen.flags.writeable = False
check("read-only", lambda: of_array(frozen).numpy())

target = of_array(np.zeros((3, 4), np.float32))
check("update", lambda: target.update_inplace(base))
check("updated", target.numpy())
check("update of another shape", lambda: target.update_inplace(base.reshape(4, 3)))
check("after that", lambda: target.numpy())
check("update of too few", lambda: target.update_inplace(base[:2]))
check("update of another dtype", lambda: target.update_inplace(base.astype(np.float64)))
check("update, transposed", lambda: target.update_inplace(base.T))
check("after transposed", lambda: target.shape())
check("update of None", lambda: target.update_inplace(None))


def numpy_is_a_copy():
    made = of_array(base.copy())
    view = made.numpy()
    view[:] = -1
    return made.numpy()


check("writing to numpy()", numpy_is_a_copy)


def source_is_shared():
    source = np.zeros(3, np.float32)
    made = of_array(source)
    source[:] = 5
    return made.numpy()


check("writing to the source", source_is_shared)


def source_is_gone():
    made = of_array(np.arange(1000, dtype=np.float32))
    return float(made.numpy().sum())


check("a source that nothing else holds", source_is_gone)
check("numpy() of numpy()", lambda: of_array(target.numpy()).shape())
check("no arguments", lambda: OrtValue())
check("no such attribute", lambda: target.nothing)


# Values that a binding makes.
session = onnxruntime.InferenceSession("named.onnx", providers=["CPUExecutionProvider"])
binding = session.io_binding()
binding.bind_cpu_input("a", base[:, :2])
binding.bind_cpu_input("b", base[:, :2])
binding.bind_output("sum")
check("bound: before a run", len(binding.get_outputs()))
session.run_with_iobinding(binding)
check("bound: the value", binding.get_outputs()[0].numpy())


def fewer_rows():
    binding.bind_cpu_input("a", base[:1, :2])
    binding.bind_cpu_input("b", base[:1, :2])
    session.run_with_iobinding(binding)
    return binding.get_outputs()[0].shape()


check("bound: fewer rows without another output", fewer_rows)


def again():
    binding.clear_binding_outputs()
    binding.bind_output("sum")
    session.run_with_iobinding(binding)
    return binding.get_outputs()[0].shape()


check("bound: fewer rows with another output", again)

"""IOBinding as the documentation of the Python API shows it: from the CPU, from OrtValues, by addresses."""

import sys

import numpy as np
import onnxruntime
from checks import check

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=np.float32)
Y = np.array([[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]], dtype=np.float32)
session = onnxruntime.InferenceSession("named.onnx", providers=sys.argv[1:])
OrtValue = onnxruntime.OrtValue
of_array = OrtValue.ortvalue_from_numpy
run_values = session.run_with_ort_values


def bound(*outputs):
    binding = session.io_binding()
    binding.bind_cpu_input("a", X)
    binding.bind_cpu_input("b", Y)
    for output in outputs:
        binding.bind_output(output)
    return binding


def run(binding):
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


check("from the CPU", lambda: run(bound("sum")))
check("three outputs", lambda: run(bound("sum", "product", "rest")))
check("in another order", lambda: run(bound("rest", "sum")))
check("one output twice", lambda: run(bound("sum", "sum")))


def with_values():
    a, b = of_array(X), of_array(Y)
    binding = session.io_binding()
    for name, value in (("a", a), ("b", b)):
        binding.bind_input(
            name=name,
            device_type=value.device_name(),
            device_id=0,
            element_type=np.float32,
            shape=value.shape(),
            buffer_ptr=value.data_ptr(),
        )
    binding.bind_output("product")
    return run(binding)


check("from addresses of OrtValues", with_values)


def with_ort_values():
    binding = session.io_binding()
    binding.bind_ortvalue_input("a", of_array(X))
    binding.bind_ortvalue_input("b", of_array(Y))
    target = OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32)
    binding.bind_ortvalue_output("sum", target)
    session.run_with_iobinding(binding)
    return target.numpy(), binding.get_outputs()[0].numpy()


check("OrtValues in and out", with_ort_values)


def into_memory():
    target = OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32, "cpu", 0)
    binding = bound()
    binding.bind_output(
        name="sum",
        device_type=target.device_name(),
        device_id=0,
        element_type=np.float32,
        shape=target.shape(),
        buffer_ptr=target.data_ptr(),
    )
    session.run_with_iobinding(binding)
    return target.numpy()


check("into memory of ours", into_memory)


def into_array():
    target = np.full((3, 2), -1, np.float32)
    binding = bound()
    binding.bind_output(
        "product", "cpu", 0, np.float32, target.shape, target.ctypes.data
    )
    session.run_with_iobinding(binding)
    return target


check("into an array", into_array)


def again_and_again():
    total = of_array(np.zeros((3, 2), np.float32))
    for _ in range(5):
        binding = session.io_binding()
        binding.bind_ortvalue_input("a", total)
        binding.bind_cpu_input("b", Y)
        binding.bind_output("sum")
        session.run_with_iobinding(binding)
        total = binding.get_outputs()[0]
    return total.numpy()


check("outputs as inputs", again_and_again)


def one_binding():
    binding = bound("sum")
    found = [run(binding)[0][0, 0]]
    binding.bind_cpu_input("a", X * 100)
    found.append(run(binding)[0][0, 0])
    binding.clear_binding_outputs()
    binding.bind_output("product")
    found.append(run(binding)[0][0, 0])
    return [float(each) for each in found]


check("one binding for several runs", one_binding)


def facts():
    binding = bound("sum", "rest")
    session.run_with_iobinding(binding)
    return [
        (each.shape(), each.data_type(), each.is_tensor())
        for each in binding.get_outputs()
    ]


check("facts of outputs", facts)


def vector():
    binding = bound("sum")
    session.run_with_iobinding(binding)
    values = binding.get_outputs_as_ortvaluevector()
    return len(values), values[0].numpy()


check("outputs as a vector", vector)
check(
    "bind_output to the CPU by name",
    lambda: (lambda b: (b.bind_output("sum", "cpu"), run(b))[1])(bound()),
)
check(
    "synchronised",
    lambda: (lambda b: (b.synchronize_inputs(), run(b), b.synchronize_outputs())[1])(
        bound("sum")
    ),
)
check(
    "with run options",
    lambda: session.run_with_iobinding(bound("sum"), onnxruntime.RunOptions()),
)
check(
    "lists are no arrays", lambda: session.io_binding().bind_cpu_input("a", X.tolist())
)
check("no such input", lambda: session.io_binding().bind_cpu_input("z", X))
check("no such output, bound", lambda: session.io_binding().bind_output("z"))
check("no such output, run", lambda: run(bound("z")))
check("nothing bound", lambda: run(session.io_binding()))
check("no outputs", lambda: run(bound()))


def missing_input():
    binding = session.io_binding()
    binding.bind_cpu_input("a", X)
    binding.bind_output("sum")
    return run(binding)


def given(a, b=Y):
    binding = session.io_binding()
    binding.bind_cpu_input("a", a)
    binding.bind_cpu_input("b", b)
    binding.bind_output("sum")
    return run(binding)


check("one input", missing_input)
check("wrong dtype", lambda: given(X.astype(np.float64)))
check("integers", lambda: given(X.astype(np.int32)))
check("wrong rank", lambda: given(X[0]))
check("wrong extent", lambda: given(np.ones((3, 5), np.float32)))
check("extents that do not fit", lambda: given(X[:2]))
check("transposed", lambda: given(np.asfortranarray(X)))
check("strided", lambda: given(np.repeat(X, 2, axis=0)[::2]))
check("no rows", lambda: given(X[:0], Y[:0]))
check("no such device", lambda: session.io_binding().bind_output("sum", "nowhere"))
check(
    "cleared inputs",
    lambda: (lambda b: (b.clear_binding_inputs(), run(b)))(bound("sum")),
)
check(
    "memory without a shape",
    lambda: bound().bind_output("sum", "cpu", 0, np.float32, None, 1),
)
check("the session goes on", lambda: session.run(["sum"], {"a": X, "b": Y}))


def with_dict():
    values = {"a": of_array(X), "b": of_array(Y)}
    found = run_values(["sum", "rest"], values)
    return [(each.shape(), each.numpy()) for each in found]


check("run_with_ort_values", with_dict)
values = {"a": of_array(X), "b": of_array(Y)}
check("run_with_ort_values: all", lambda: [v.numpy() for v in run_values(None, values)])
check("run_with_ort_values: arrays", lambda: run_values(None, {"a": X, "b": Y}))
check("run_with_ort_values: missing", lambda: run_values(None, {"a": values["a"]}))
check("run_with_ort_values: name", lambda: run_values(["z"], values))
check(
    "run_with_ort_values: extra", lambda: run_values(None, values | {"q": values["a"]})
)
check("run with OrtValues as feeds", lambda: session.run(["sum"], values))
check("run with one OrtValue", lambda: session.run(["sum"], {"a": values["a"], "b": Y}))

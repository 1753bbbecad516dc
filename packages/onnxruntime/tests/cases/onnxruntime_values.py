"""OrtValues and bindings: what stays on the GPU, and that nothing is copied."""

import asyncio
import ctypes
import struct

import js
import numpy as np
import pytest
from gpu_world import counted, run, same, start_counting
from js import harness
from onnx_models import OUTSIDE, WEIGHTS, doubling, message, one_node, outside

import dlpack_web as dlw
import dlpack_web_onnxruntime as ort

pytestmark = pytest.mark.usefixtures("nothing_leaks")

CPU = ["WasmExecutionProvider"]
GPU = ["WebGPUExecutionProvider"]
STATE = ort.capi.onnxruntime_pybind11_state
X = np.arange(6, dtype=np.float32).reshape(2, 3)
OUTSIDE_B = np.float32([1, 2, 3])


@pytest.fixture(params=[CPU, GPU], ids=["cpu", "gpu"])
def providers(request):
    return request.param


def one_added(shape=("N",)):
    """`y = x + b`, of two inputs."""
    return one_node("Add", "float32", shape, ("x", "b"))


def on_gpu(session, array):
    return ort.OrtValue(dlw.from_dlpack(array, device=session.device))


# --- OrtValue ---------------------------------------------------------------------------------


def test_values_share_memory():
    x = X.copy()
    value = ort.OrtValue.ortvalue_from_numpy(x)
    assert (value.shape(), value.data_type(), value.element_type()) == (
        [2, 3],
        "tensor(float)",
        1,
    )
    assert (value.device_name(), value.is_tensor(), value.has_value()) == (
        "cpu",
        True,
        True,
    )
    assert value.data_ptr() == x.ctypes.data
    assert value.__dlpack_device__() == (1, 0)
    assert np.shares_memory(value.numpy(), x)
    assert np.shares_memory(np.from_dlpack(value), x)
    value.update_inplace(X + 1)
    assert (x == X + 1).all()
    again = ort.OrtValue.from_dlpack(value)
    assert np.shares_memory(again.numpy(), x)
    assert ort.OrtValue.from_dlpack(X > 2).data_type() == "tensor(bool)"


@pytest.mark.parametrize("strided", [X.T, X[:, ::2], X[::-1]])
def test_addresses_of_strided_arrays_are_of_copies(strided):
    value = ort.OrtValue.ortvalue_from_numpy(strided)
    memory = (ctypes.c_float * strided.size).from_address(value.data_ptr())
    assert list(memory) == strided.ravel().tolist()
    with pytest.raises(RuntimeError, match="not in row-major order"):
        ort.OrtValue.from_dlpack(strided).data_ptr()


def test_values_on_the_gpu():
    run(dlw.webgpu.request_device())
    value = ort.OrtValue.ortvalue_from_numpy(X, "webgpu")
    assert (value.device_name(), value.shape()) == ("webgpu", [2, 3])
    assert (value.numpy() == X).all()
    value.update_inplace(X + 1)
    assert (np.asarray(value) == X + 1).all()
    fresh = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float16, "webgpu")
    assert fresh.data_type() == "tensor(float16)"
    assert not fresh.numpy().any()
    with pytest.raises(RuntimeError, match="no address"):
        fresh.data_ptr()


def test_mistakes_with_values():
    strings = np.array(["a", "b"])
    with pytest.raises(ValueError, match="takes a Tensor or an array of strings"):
        ort.OrtValue(X)
    with pytest.raises(RuntimeError, match="non-string numpy arrays"):
        ort.OrtValue.ortvalue_from_numpy(strings)
    with pytest.raises(RuntimeError, match="Unsupported device type: cuda"):
        ort.OrtValue.ortvalue_from_numpy(X, "cuda")
    with pytest.raises(RuntimeError, match="tensor type 99 is not supported"):
        ort.OrtValue.ortvalue_from_shape_and_type([2], 99)
    with pytest.raises(RuntimeError, match="no tensors of complex64"):
        ort.OrtValue.ortvalue_from_numpy(X.astype("c8"))


def test_update_of_another_shape():
    value = ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32))
    for given in (X.reshape(3, 2), X.reshape(2, 3).T, X.ravel()):
        value.update_inplace(given)
        assert (value.numpy().ravel() == given.ravel()).all()
    other = ort.OrtValue.ortvalue_from_numpy(X.reshape(6, 1) + 1)
    value.update_inplace(other)
    assert (value.numpy().ravel() == X.ravel() + 1).all()
    with pytest.raises(BufferError):  # the bytes of another dtype are no such elements
        value.update_inplace(X.reshape(3, 2).view(np.int32))


class Lazy:
    """Makes an array when asked, as variables of files do."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


MASKED = np.ma.array(X, mask=X == 4)
WORDS = np.ma.array([["a", "b", "c"]], mask=[[0, 1, 0]])


@pytest.mark.parametrize(
    ("dtype", "given"),
    [
        ("float32", MASKED),
        ("float32", MASKED.T.copy().T),
        ("float32", MASKED.astype(">f4")),
        ("float32", Lazy(MASKED)),
        ("string", [WORDS[0]]),
    ],
    ids=str,
)
def test_masked_elements_are_refused(dtype, given):
    session = ort.InferenceSession(one_node("Identity", dtype), providers=CPU)
    refusal = ort.capi.onnxruntime_pybind11_state.InvalidArgument
    with pytest.raises(
        refusal, match=r"x: .*masked, .* x\.filled\(value\), or x\.data"
    ):
        session.run(None, {"x": given})


def test_extents_that_are_none():
    make = ort.OrtValue.ortvalue_from_shape_and_type
    with pytest.raises(RuntimeError, match="must be >= 0"):
        make([2, -1], np.float32)
    for wrong in (3, [1.5], "3"):
        with pytest.raises(TypeError):
            make(wrong, np.float32)
    with pytest.raises(RuntimeError, match="non-string numpy arrays"):
        ort.OrtValue.ortvalue_from_numpy(np.array(["2020"], "M8[Y]"))
    strings = ort.InferenceSession(one_node("Identity", "string"), providers=CPU)
    with pytest.raises(RuntimeError, match="non-string Tensors"):
        strings.io_binding().bind_cpu_input("x", np.array([["a", "b", "c"]]))


# --- copies -------------------------------------------------------------------------------------


@pytest.fixture
def feeds_seen():
    """What onnxruntime-web's own run() was given since: GPUBuffers, and addresses of what
    is in Pyodide's memory (None: it is somewhere else)."""
    spy = run(
        run(harness.load("/packages/onnxruntime/tests/cases/ort_spy.mjs")).watch(
            harness.context
        )
    )
    yield lambda: list(spy.take())
    spy.stop()


def test_arrays_reach_wasm_without_a_copy_of_ours(feeds_seen):
    s = ort.InferenceSession(doubling(), providers=CPU)
    x = np.arange(1 << 20, dtype=np.float32)
    before = dlw.live_tensors()
    start_counting()
    s.run(None, {"x": x})
    count = counted()
    # onnxruntime-web's own into and out of its memory, and the result's into Python's.
    assert (count.copies, count.copied_bytes) == (3, 3 * x.nbytes)
    (address,) = feeds_seen()
    assert address == x.ctypes.data
    assert dlw.live_tensors() == before


def test_gpu_tensors_are_fed_as_they_are(feeds_seen):
    s = ort.InferenceSession(doubling(), providers=GPU)
    with dlw.from_dlpack(X.ravel(), device=s.device) as x:
        buffer = x.gpu_buffer
        (y,) = s.run(None, {"x": x})
        (seen,) = feeds_seen()
        assert same(seen, buffer)
    assert (y == 2 * X.ravel()).all()


def test_a_loop_on_the_gpu_reads_nothing_back():
    s = ort.InferenceSession(one_added(), providers=GPU)
    state = on_gpu(s, np.zeros(1 << 12, np.float32))
    step = on_gpu(s, np.ones(1 << 12, np.float32))
    before = dlw.webgpu.stats()[s.device.id]
    start_counting()
    for _ in range(100):
        (state,) = s.run_with_ort_values(None, {"x": state, "b": step})
    count = counted()
    after = dlw.webgpu.stats()[s.device.id]
    assert count.map_async == 0
    assert after["copies"] == before["copies"]
    assert state.device_name() == "webgpu"
    assert (state.numpy() == 100).all()


def test_what_is_uploaded_for_a_run_is_uploaded_into_the_same_buffer():
    s = ort.InferenceSession(doubling(), providers=GPU)
    for i in range(10):
        x = np.full(1 << 14, i, np.float32)
        (y,) = s.run(None, {"x": x})
        assert (y == 2 * i).all()
        if i == 1:
            before = dlw.webgpu.stats()[s.device.id]
    after = dlw.webgpu.stats()[s.device.id]
    assert (after["created"], after["taken"]) == (before["created"], before["taken"])


@pytest.mark.parametrize("op", ["Identity", "Add"])
def test_results_on_the_gpu_are_never_the_memory_of_the_next_feed(op):
    s = ort.InferenceSession(
        one_node(op, shape=("N",), inputs=("x",) * (1 + (op == "Add"))), providers=GPU
    )
    kept = []
    for i in range(6):
        x = ort.OrtValue.ortvalue_from_numpy(np.full(1 << 14, i, np.float32))
        kept += s.run_with_ort_values(None, {"x": x}, device_type="webgpu")
    times = 1 if op == "Identity" else 2
    assert [set(y.numpy().tolist()) for y in kept] == [{i * times} for i in range(6)]


def test_feeds_of_two_runs_at_once_have_buffers_of_their_own():
    async def both():
        feeds = [np.full(1 << 14, i, np.float32) for i in range(4)]
        return await asyncio.gather(*(s.run_async(None, {"x": x}) for x in feeds))

    s = ort.InferenceSession(doubling(), providers=GPU)
    for _ in range(3):
        results = run(both())
        assert [set(y.tolist()) for (y,) in results] == [{0}, {2}, {4}, {6}]


def test_a_bound_loop_between_two_buffers():
    s = ort.InferenceSession(one_added(("N", 4)), providers=GPU)
    ones = np.ones((8, 4), np.float32)
    values = [on_gpu(s, 0 * ones), on_gpu(s, 0 * ones)]
    buffers = [value.tensor.gpu_buffer for value in values]
    binding = s.io_binding()
    binding.bind_cpu_input("b", ones)
    start_counting()
    for i in range(100):
        binding.bind_ortvalue_input("x", values[i % 2])
        binding.bind_ortvalue_output("y", values[1 - i % 2])
        s.run_with_iobinding(binding)
    assert counted().map_async == 0
    (y,) = binding.get_outputs()
    assert same(y.tensor.gpu_buffer, buffers[0])
    assert (values[0].numpy() == 100).all()
    assert (values[1].numpy() == 99).all()


# --- IOBinding ------------------------------------------------------------------------------------


def test_bindings(providers):
    s = ort.InferenceSession(one_added((2, 3)), providers=providers)
    binding = s.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_input("b", ort.OrtValue.ortvalue_from_numpy(X))
    binding.bind_output("y")
    s.run_with_iobinding(binding)
    (y,) = binding.get_outputs()
    assert y.device_name() == "cpu"
    assert (y.numpy() == 2 * X).all()
    assert (binding.copy_outputs_to_cpu()[0] == 2 * X).all()
    out = np.zeros((2, 3), np.float32)
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(out))
    s.run_with_iobinding(binding)
    assert (out == 2 * X).all()
    binding.clear_binding_inputs()
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []


def test_addresses_are_bound(providers):
    s = ort.InferenceSession(one_added((2, 3)), providers=providers)
    value, out = ort.OrtValue.ortvalue_from_numpy(X), np.zeros((2, 3), np.float32)
    binding = s.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, value.shape(), value.data_ptr())
    binding.bind_input("b", "cpu", 0, 1, (2, 3), X.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, (2, 3), out.ctypes.data)
    s.run_with_iobinding(binding)
    assert (out == 2 * X).all()
    for address in (0, -4, 1 << 32, (1 << 32) - 8):
        with pytest.raises(RuntimeError, match="has no 24 bytes at address"):
            binding.bind_input("x", "cpu", 0, np.float32, (2, 3), address)
    with pytest.raises(TypeError, match="buffer_ptr must be an address"):
        binding.bind_input("x", "cpu", 0, np.float32, (2, 3), X)


@pytest.mark.parametrize(("dtype", "shape"), [("i4", (2, 3)), ("f4", (3, 2))])
def test_bound_memory_of_another_dtype_or_shape_is_refused(providers, dtype, shape):
    s = ort.InferenceSession(one_added((2, 3)), providers=providers)
    out = np.full(shape, 7, dtype)
    binding = s.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_cpu_input("b", X)
    binding.bind_output("y", "cpu", 0, out.dtype, out.shape, out.ctypes.data)
    with pytest.raises(RuntimeError, match=r"Error in execution: .* written over"):
        s.run_with_iobinding(binding)
    assert (out == 7).all()


def test_vectors_of_values(providers):
    s = ort.InferenceSession(one_added((2, 3)), providers=providers)
    vector = ort.capi.onnxruntime_pybind11_state.OrtValueVector
    feeds, results = vector(), vector()
    for _ in range(2):
        feeds.push_back(ort.OrtValue.ortvalue_from_numpy(X))
    cpu = [ort.OrtDevice.make("cpu", 0)]
    options = ort.RunOptions()
    s.run_with_ortvaluevector(options, ["x", "b"], feeds, ["y"], results, cpu)
    assert [(y.numpy() == 2 * X).all() for y in results] == [True]


async def test_outputs_left_on_the_gpu():
    s = await ort.InferenceSession.create(one_added((2, 3)), providers=GPU)
    binding = s.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_input("b", on_gpu(s, X))
    binding.bind_output("y", "webgpu")
    start_counting()
    await s.run_with_iobinding_async(binding)
    assert counted().map_async == 0
    (y,) = binding.get_outputs()
    assert (y.device_name(), y.__dlpack_device__()) == ("webgpu", s.device)
    (array,) = await binding.copy_outputs_to_cpu_async()
    assert (array == 2 * X).all()
    tensor = dlw.from_dlpack(y)
    assert same(tensor.gpu_buffer, y.tensor.gpu_buffer)
    tensor.release()


def test_an_output_over_its_own_input():
    s = ort.InferenceSession(one_added((2, 3)), providers=GPU)
    x = on_gpu(s, X)
    binding = s.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_input("b", x)
    binding.bind_ortvalue_output("y", x)
    for _ in range(3):
        s.run_with_iobinding(binding)
    assert (x.numpy() == 8 * X).all()


def test_an_output_in_the_middle_of_a_buffer():
    s = ort.InferenceSession(one_added((4,)), providers=GPU)
    whole = dlw.from_dlpack(np.zeros(12, np.float32), device=s.device)
    binding = s.io_binding()
    for name in ("x", "b"):
        binding.bind_cpu_input(name, np.ones(4, np.float32))
    binding.bind_ortvalue_output("y", ort.OrtValue(whole[4:8]))
    s.run_with_iobinding(binding)
    assert whole.numpy().tolist() == [0] * 4 + [2] * 4 + [0] * 4


def test_mistakes_with_bindings():
    s = ort.InferenceSession(one_added((2, 3)), providers=CPU)
    binding = s.io_binding()
    with pytest.raises(RuntimeError, match="Failed to find NodeArg with name: q"):
        binding.bind_cpu_input("q", X)
    binding.bind_cpu_input("x", X)
    with pytest.raises(RuntimeError, match="At least one output should be requested"):
        s.run_with_iobinding(binding)
    with pytest.raises(RuntimeError, match="outputs cannot be on WebGPU"):
        binding.bind_output("y", "webgpu")
    binding.bind_output("y")
    with pytest.raises(RuntimeError, match="Error in execution: Missing Input: b"):
        s.run_with_iobinding(binding)
    binding.bind_cpu_input("b", X.astype("f8"))
    with pytest.raises(RuntimeError, match="Error in execution: Unexpected input data"):
        s.run_with_iobinding(binding)
    binding.bind_output("q")
    with pytest.raises(RuntimeError, match="Error in execution: Invalid output name:q"):
        s.run_with_iobinding(binding)
    other = ort.InferenceSession(doubling(), providers=CPU)
    with pytest.raises(ValueError, match="must be used with the session"):
        other.run_with_iobinding(binding)


# --- weights in other files -----------------------------------------------------------------------


def test_weights_beside_a_file(tmp_path, providers):
    (tmp_path / "model.onnx").write_bytes(OUTSIDE)
    (tmp_path / "weights.bin").write_bytes(WEIGHTS)
    s = ort.InferenceSession(tmp_path / "model.onnx", providers=providers)
    assert (s.run(None, {"x": X})[0] == X + OUTSIDE_B).all()
    s = ort.InferenceSession(str(tmp_path / "model.onnx"), providers=providers)
    assert (s.run(None, {"x": X})[0] == X + OUTSIDE_B).all()


@pytest.mark.parametrize(
    ("place", "name", "data"),
    [
        ("weights.bin", "weights.bin", WEIGHTS),
        ("weights.bin", "weights.bin", bytearray),
        ("weights.bin", b"weights.bin", np.frombuffer(WEIGHTS, np.float32)),
        ("weights.bin", "weights.bin", np.frombuffer(WEIGHTS, np.uint8).reshape(2, 8)),
        ("weights.bin", "weights.bin", WEIGHTS + b"more"),
        ("wéights.bin", "wéights.bin", WEIGHTS),
        ("a/weights.bin", "a/weights.bin", WEIGHTS),
        ("./weights.bin", "weights.bin", WEIGHTS),
        ("weights.bin", "./weights.bin", WEIGHTS),
    ],
)
def test_weights_in_memory(place, name, data, providers):
    data = bytearray(WEIGHTS) if data is bytearray else data
    options = ort.SessionOptions()
    add = options.add_external_initializers_from_files_in_memory
    add([name, "empty"], [data, np.zeros(0)], [np.int64(memoryview(data).nbytes), 0])
    if isinstance(data, bytearray):
        data[:] = bytes(16)  # they were copied
    s = ort.InferenceSession(outside(place), options, providers=providers)
    assert (s.run(None, {"x": X})[0] == X + OUTSIDE_B).all()
    s.set_providers(CPU)
    assert (s.run(None, {"x": X})[0] == X + OUTSIDE_B).all()


def test_weights_in_a_folder_of_a_model_in_memory(tmp_path, providers):
    """As native onnxruntime finds them; what is in memory comes first."""
    (tmp_path / "weights.bin").write_bytes(WEIGHTS)
    entry = "session.model_external_initializers_file_folder_path"
    options = ort.SessionOptions()
    options.add_session_config_entry(entry, str(tmp_path))
    options.add_session_config_entry("session.disable_prepacking", "1")
    (elsewhere := tmp_path / "a").mkdir()
    (elsewhere / "model.onnx").write_bytes(OUTSIDE)
    for model in (OUTSIDE, elsewhere / "model.onnx"):
        s = ort.InferenceSession(model, options, providers=providers)
        assert (s.run(None, {"x": X})[0] == X + OUTSIDE_B).all()
    assert options.get_session_config_entry(entry) == str(tmp_path)
    options.add_external_initializers_from_files_in_memory(
        ["weights.bin"], [struct.pack("<4f", 0, 7, 8, 9)], [16]
    )
    s = ort.InferenceSession(OUTSIDE, options, providers=providers)
    assert (s.run(None, {"x": X})[0] == X + np.float32([7, 8, 9])).all()
    options = ort.SessionOptions()
    options.add_session_config_entry(entry, str(elsewhere))
    for model in (outside("../weights.bin"), OUTSIDE):
        with pytest.raises(STATE.Fail, match=r"weights\.bin"):
            ort.InferenceSession(model, options, providers=providers)


@pytest.mark.parametrize(
    ("names", "data", "lengths", "error", "message"),
    [
        ("weights.bin", [WEIGHTS], [16], TypeError, "must be a list of names"),
        ([5], [WEIGHTS], [16], TypeError, "a str"),
        (["w"], ["a str"], [5], TypeError, "bytes-like"),
        (["w"], [WEIGHTS], [16.0], TypeError, "integer"),
        (["w"], [WEIGHTS], [], RuntimeError, "equal length"),
        (["w"], [WEIGHTS], [-1], RuntimeError, "'w' must be given once, as contig"),
        (["w"], [np.zeros(9)[::2]], [40], RuntimeError, "'w' must be given once"),
        (["w", "w"], [WEIGHTS] * 2, [16] * 2, RuntimeError, "'w' must be given once"),
        (["there"], [WEIGHTS], [16], RuntimeError, "'there' must be given once"),
        (["w\0x"], [WEIGHTS], [16], STATE.NotImplemented, "NUL"),
        (["\ud800"], [WEIGHTS], [16], UnicodeEncodeError, "surrogates not allowed"),
    ],
    ids=str,
)
def test_mistakes_with_weights_in_memory(names, data, lengths, error, message):
    options = ort.SessionOptions()
    add = options.add_external_initializers_from_files_in_memory
    add(["there"], [b""], [0])
    with pytest.raises(error, match=message):
        add(names, data, lengths)
    assert options._files == {"there": b""}


@pytest.mark.parametrize("bytes_there", [None, 0, 12])
def test_weights_that_are_missing(bytes_there, providers):
    options = ort.SessionOptions()
    if bytes_there is not None:
        options.add_external_initializers_from_files_in_memory(
            ["weights.bin"], [WEIGHTS], [bytes_there]
        )
    with pytest.raises(STATE.Fail, match=r"weights\.bin|out of bounds"):
        ort.InferenceSession(OUTSIDE, options, providers=providers)


@pytest.mark.parametrize(
    "place", ["../weights.bin", "{}/weights.bin", "a/../../weights.bin"]
)
def test_weights_outside_of_the_folder_are_not_read(place, tmp_path):
    """A model says where its weights are, and may come from anybody."""
    (tmp_path / "a").mkdir()
    (tmp_path / "weights.bin").write_bytes(WEIGHTS)
    model = tmp_path / "a" / "model.onnx"
    model.write_bytes(outside(place.format(tmp_path)))
    with pytest.raises(
        ort.capi.onnxruntime_pybind11_state.Fail, match=r"weights\.bin|not allowed"
    ):
        ort.InferenceSession(model, providers=CPU)


def test_a_model_that_is_nested_too_deeply(tmp_path):
    """An If in an If, and so on: protobuf stops at a hundred messages, and so do we."""
    inner = b""
    for _ in range(20_000):
        inner = message(1, message(5, message(6, inner)))
    model = tmp_path / "model.onnx"  # beside which its weights are looked for
    model.write_bytes(message(7, inner))
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidProtobuf):
        ort.InferenceSession(model, providers=CPU)


def test_urls(providers):
    """Those of files that conftest.py lets the server have."""
    s = ort.InferenceSession(
        f"{js.location.origin}/bundle/outside.onnx", providers=providers
    )
    assert (s.run(None, {"x": X})[0] == X + OUTSIDE_B).all()
    url = js.URL.new("/bundle/outside.onnx", js.location.href)
    s = ort.InferenceSession(url, providers=providers)
    assert (s.run(None, {"x": X})[0] == X + OUTSIDE_B).all()


def test_free_dimensions(providers):
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("N", 2)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    s = ort.InferenceSession(one_added(), options, providers=providers)
    assert s.get_inputs()[0].shape == [2]
    assert s.get_session_options() is options

"""What goes wrong with sessions: the exceptions are onnxruntime's, and nothing is left."""

import asyncio
import gc

import numpy as np
import pytest
from gpu_interrupts import held, interrupted, places_of, settled
from gpu_world import run
from js import harness
from onnx_models import (
    cast_to,
    doubling,
    graph,
    message,
    node,
    number,
    one_node,
    text,
    varint,
)

import dlpack_web as dlw
import dlpack_web_onnxruntime as ort

pytestmark = [
    pytest.mark.usefixtures("nothing_leaks"),
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited"),
]

STATE = ort.capi.onnxruntime_pybind11_state
CPU = ["CPUExecutionProvider"]
GPU = ["WebGPUExecutionProvider"]
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(params=[CPU, GPU], ids=["cpu", "gpu"])
def providers(request):
    return request.param


def adding(providers, shape=("N", 3)):
    return ort.InferenceSession(
        one_node("Add", "float32", shape, ("x", "b")), providers=providers
    )


# --- models -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "kind", "message"),
    [
        (
            b"junk junk",
            "InvalidProtobuf",
            "7 : INVALID_PROTOBUF : Failed to load model",
        ),
        (
            one_node("Nope"),
            "InvalidGraph",
            "10 : INVALID_GRAPH : This is an .*No Op registered for Nope",
        ),
        (
            one_node("Add", "bool", inputs=("x", "x")),
            "InvalidGraph",
            "Type 'tensor.bool.'",
        ),
        (one_node("Sin", "float16", opset=99), "Fail", "1 : FAIL : .*Opset 99"),
        (
            one_node("Identity", "bfloat16"),
            "NotImplemented",
            r"no tensor\(bfloat16\), the type of x: export the model in float32 or float16",
        ),
        (
            graph(
                [node("Cast", ("x",), ("y",), cast_to("float8_e4m3fn"))],
                [("x", "float32", ("N",))],
                [("y", "float8_e4m3fn", ("N",))],
            ),
            "NotImplemented",
            r"no tensor\(float8e4m3fn\), the type of y: export",
        ),
        (
            "nope.onnx",
            "NoSuchFile",
            "3 : NO_SUCHFILE : Load model from nope.onnx failed",
        ),
        ("http://127.0.0.1:1/nope.onnx", "NoSuchFile", "3 : NO_SUCHFILE"),
        ("/nope.onnx", "NoSuchFile", "/nope.onnx (gives 404|cannot be fetched)"),
    ],
)
def test_what_is_no_model(model, kind, message, providers):
    with pytest.raises(getattr(STATE, kind), match=message):
        ort.InferenceSession(model, providers=providers)
    assert adding(providers).run(None, {"x": X, "b": X})[0].sum() == 30


def test_an_empty_model(providers):
    with pytest.raises((STATE.InvalidArgument, STATE.Fail, STATE.NoModel)):
        ort.InferenceSession(b"", providers=providers)


@pytest.mark.parametrize("given", [5, bytearray(b""), None])
def test_what_cannot_be_a_model(given):
    with pytest.raises(TypeError, match="Unable to load from type"):
        ort.InferenceSession(given)


def test_providers(capsys):
    def told():
        return capsys.readouterr().out

    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not in available"):
        s = ort.InferenceSession(
            doubling(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"]
        )
    assert s.get_providers() == CPU
    with pytest.warns(UserWarning, match="'NopeExecutionProvider' is not in available"):
        s = ort.InferenceSession(doubling(), providers=["NopeExecutionProvider"])
    assert s.get_providers() == CPU
    for given in ([5], [("CPUExecutionProvider",)], [("CPUExecutionProvider", 5)]):
        s = ort.InferenceSession(doubling(), providers=given)
        assert s.get_providers() == CPU
        assert "EP Error 'providers' values must be either strings or" in told()
    with pytest.raises(Exception, match="odel"):  # of the CPU, too
        ort.InferenceSession(b"no model", providers=[5])
    assert told() == ""
    ort.InferenceSession(doubling(), providers=CPU, provider_options=[{}, {}])
    assert "should be the same length" in told()
    with pytest.warns(UserWarning, match="must be a list of names"):
        s = ort.InferenceSession(doubling(), providers="CPUExecutionProvider")
    assert s.get_providers() == CPU
    s = ort.InferenceSession(doubling())
    assert s.get_providers() == ort.get_available_providers()


def test_options():
    options = ort.SessionOptions()
    with pytest.raises(AttributeError, match="did you mean 'intra_op_num_threads'"):
        options.intra_op_num_thread = 2
    with pytest.raises(TypeError, match="intra_op_num_threads must be an int, not '2'"):
        options.intra_op_num_threads = "2"
    with pytest.raises(STATE.NotImplemented, match="does not write optimized models"):
        options.optimized_model_filepath = "a.onnx"
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        ort.RunOptions().nope = 1
    with pytest.raises(AttributeError, match="must be a SessionOptions, not 5"):
        ort.InferenceSession(doubling(), 5)
    with pytest.raises(STATE.NotImplemented, match="does not write profiles"):
        options.enable_profiling = True
    with pytest.raises(TypeError, match="must be a GraphOptimizationLevel, not 5"):
        options.graph_optimization_level = 5
    with pytest.raises(RuntimeError, match="does not have configuration with key: a"):
        options.get_session_config_entry("a")
    with pytest.raises(TypeError, match="run_options must be a RunOptions, not 5"):
        adding(CPU).run(None, {"x": X, "b": X}, 5)


# --- feeds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "feeds", "kind", "message"),
    [
        (
            None,
            {"x": X},
            ValueError,
            r"Required inputs \(\['b'\]\) are missing from input",
        ),
        (None, {"x": X, "b": X, "q": X}, "InvalidArgument", "Invalid input name: q"),
        (["q"], {"x": X, "b": X}, "InvalidArgument", "Invalid output name:q"),
        ("y", {"x": X, "b": X}, TypeError, "must be a list of names"),
        (
            None,
            {"x": X.astype("f8"), "b": X},
            "InvalidArgument",
            r"type. Actual: \(tensor\(double\)\) , expected: \(tensor\(float\)\)",
        ),
        (
            None,
            {"x": X[0], "b": X},
            "InvalidArgument",
            "Invalid rank for input: x Got: 1 Expected: 2 Please fix",
        ),
        (
            None,
            {"x": X.T, "b": X},
            "InvalidArgument",
            "input: x for the following indices\n index: 1 Got: 2 Expected: 3\n Please",
        ),
        (None, {"x": 1.0, "b": X}, RuntimeError, "Unable to handle object of type"),
        (None, {"x": X[0, 0], "b": X}, RuntimeError, "object of type .*float32"),
        (None, {"x": None, "b": X}, "Fail", "Missing Input: x"),
        (None, {"x": {"a": 1}, "b": X}, "InvalidArgument", r"Actual: \(map\)"),
        (None, {"x": {"a": X}, "b": X}, "Fail", "0-dim|length-1"),
        (None, {"x": [[1.0], []], "b": X}, RuntimeError, "Could not create tensor"),
        (None, {"x": X.astype("c8"), "b": X}, RuntimeError, "complex64"),
        ([1], {"x": X, "b": X}, TypeError, "names of outputs must be str, not 1"),
        (None, {"x": X.astype("O"), "b": X}, "InvalidArgument", "input x"),
        (None, {"x": np.array(["a"]), "b": X}, "InvalidArgument", "input x"),
    ],
)
def test_feeds(names, feeds, kind, message, providers):
    s = adding(providers)
    wanted = getattr(STATE, kind) if isinstance(kind, str) else kind
    with pytest.raises(wanted, match=message):
        s.run(names, feeds)
    assert (s.run(None, {"x": X, "b": X})[0] == 2 * X).all()


def table(name, shape, *, packed):
    """A TensorProto of int64s, as indices need no floats."""
    dims = [number(1, n) for n in shape]
    if packed:
        dims = [message(1, *(varint(n) for n in shape))]
    elements = b"".join(varint(n) for n in range(int(np.prod(shape))))
    return b"".join([*dims, number(2, 7), message(7, elements), text(8, name)])


def choosing(axes, shape, *, packed=False):
    """`y0, y1, … = Gather(values, i)`, each along its axis; None: without the attribute."""
    nodes, outputs = [], []
    for k, axis in enumerate(axes):
        along = [text(1, "axis") + number(3, axis or 0) + number(20, 2)]
        along = along if axis is not None else []
        nodes.append(node("Gather", ("values", "i"), (f"y{k}",), *along))
        outputs.append((f"y{k}", "int64", (f"A{k}", f"B{k}")))
    values = table("values", shape, packed=packed)
    return graph(nodes, [("i", "int64", ("N",))], outputs, values)


@pytest.mark.parametrize("packed", [False, True], ids=["", "packed"])
@pytest.mark.parametrize(
    ("axes", "extent"),
    [((None,), 3), ((0,), 3), ((1,), 300), ((1, 0), 3), ((0, 1), 3)],
)
def test_indices_are_within_their_bounds(axes, extent, packed, providers):
    model = choosing(axes, (3, 300), packed=packed)
    s = ort.InferenceSession(model, providers=providers)
    values = np.arange(900).reshape(3, 300)
    for good in ([0, extent - 1], [-1, -extent], []):
        indices = np.array(good, np.int64)
        found = s.run(None, {"i": indices})
        for axis, y in zip(axes, found, strict=True):
            assert (y == values.take(indices, axis or 0)).all()
    for bad in ([0, extent], [-extent - 1, 0], [2**40]):
        with pytest.raises(
            STATE.InvalidArgument, match=f"out of.* bounds.*idx={bad[0] or extent}"
        ):
            s.run(None, {"i": np.array(bad, np.int64)})


def test_what_lies_oddly_is_fed_all_the_same(providers):
    s = adding(providers)
    raw = np.zeros(25, np.uint8)
    odd = raw[1:].view("f4").reshape(2, 3)
    odd[:] = X
    for x in (odd, X.astype(">f4"), np.asfortranarray(X), X[:, ::-1][:, ::-1]):
        assert (s.run(None, {"x": x, "b": X})[0] == 2 * X).all()
    fixed = X.copy()
    fixed.flags.writeable = False
    assert (s.run(None, {"x": fixed, "b": X})[0] == 2 * X).all()


def test_tensors_of_elsewhere():
    run(dlw.webgpu.request_device())
    s = adding(CPU)
    with (
        dlw.from_dlpack(X, device="webgpu") as x,
        pytest.raises(STATE.InvalidArgument, match="runs on the CPU"),
    ):
        s.run(None, {"x": x, "b": X})
    s = adding(GPU)
    other = run(dlw.webgpu.request_device(label="other"))
    with (
        dlw.from_dlpack(X, device=other) as x,
        pytest.raises(STATE.InvalidArgument, match="but this session runs on webgpu:"),
    ):
        s.run(None, {"x": x, "b": X})
    gone = dlw.from_dlpack(X)
    gone.release()
    with pytest.raises(dlw.ReleasedError):
        s.run(None, {"x": gone, "b": X})


def test_a_run_that_fails_is_not_remembered(providers):
    """With outputs on the GPU onnxruntime-web would compute with its inputs once more."""
    s = adding(providers, ("N", "M"))
    wide = np.ones((2, 4), np.float32)
    for i in range(3):
        with pytest.raises((STATE.Fail, STATE.RuntimeException)):
            s.run(None, {"x": X, "b": wide})
        assert (s.run(None, {"x": X + i, "b": X})[0] == 2 * X + i).all()


# --- at once ----------------------------------------------------------------------------------


async def test_runs_take_turns(providers):
    several = [
        await ort.InferenceSession.create(doubling(), providers=each)
        for each in (providers, CPU, providers)
    ]
    runs = [s.run_async(None, {"x": X[0] + i}) for i in range(4) for s in several]
    results = await asyncio.gather(*runs)
    for n, (y,) in enumerate(results):
        assert (y == 2 * (X[0] + n // 3)).all()


async def test_a_run_that_nobody_waits_for(providers):
    s = await ort.InferenceSession.create(doubling(), providers=providers)
    for _ in range(3):
        forgotten = s.run_async(None, {"x": X[0]})
        forgotten.close()
        del forgotten
    gc.collect()
    (y,) = await s.run_async(None, {"x": X[0] + 1})
    assert (y == 2 * X[0] + 2).all()


async def test_released_sessions(providers):
    s = await ort.InferenceSession.create(doubling(), providers=providers)
    run_before = s.run_async(None, {"x": X[0]})
    s.release()
    s.release()
    with pytest.raises(dlw.ReleasedError, match="this session was released"):
        await s.run_async(None, {"x": X[0]})
    assert (await run_before)[0].tolist() == [0, 2, 4]
    temporary = await ort.InferenceSession.create(doubling(), providers=providers)
    run_before = temporary.run_async(None, {"x": X[0]})
    del temporary
    assert (await run_before)[0].tolist() == [0, 2, 4]


async def test_collected_sessions_are_released(providers):
    await ort.load()
    spy = await (
        await harness.load("/packages/onnxruntime/tests/cases/ort_spy.mjs")
    ).countSessions()
    try:
        for _ in range(3):
            s = await ort.InferenceSession.create(doubling(), providers=providers)
            await s.run_async(None, {"x": X[0]})
            del s
        gc.collect()
        last = await ort.InferenceSession.create(doubling(), providers=providers)
        await last.run_async(None, {"x": X[0]})  # its turn comes after theirs
        assert spy.count() == 1
    finally:
        spy.stop()


async def test_every_run_ends(providers):
    """JavaScript keeps a run until Python has its results, and no longer."""
    nodes = [node("Add", ("x", "x"), ("y",)), node("Identity", ("w",), ("z",))]
    inputs = [("x", "float32", ("N",)), ("w", "string", ("M",))]
    outputs = [("y", "float32", ("N",)), ("z", "string", ("M",))]
    model = graph(nodes, inputs, outputs)
    s = await ort.InferenceSession.create(model, providers=providers)
    feeds = {"x": X[0], "w": np.array(["a", "b"])}
    pending = s.run_async(None, feeds)
    await pending
    for names in (["z", "y"], ["y"], ["z"], ["y", "y"]):
        await s.run_async(names, feeds)
    with pytest.raises(STATE.InvalidArgument):
        await s.run_async(None, {**feeds, "x": X[0].reshape(1, -1)})
    s.run_async(None, feeds).close()
    assert s._kept.js.running == 0
    forgotten = s.run_async(None, feeds)
    gc.collect()
    assert s._kept.js.running == 1
    await forgotten
    assert s._kept.js.running == 0


async def test_every_blocking_run_ends(providers):
    nodes = [node("Add", ("x", "x"), ("y",)), node("Identity", ("w",), ("z",))]
    inputs = [("x", "float32", ("N",)), ("w", "string", ("M",))]
    outputs = [("y", "float32", ("N",)), ("z", "string", ("M",))]
    model = graph(nodes, inputs, outputs)
    s = await ort.InferenceSession.create(model, providers=providers)
    feeds = {"x": X[0], "w": np.array(["a", "b"])}
    expected = {"y": [0, 2, 4], "z": ["a", "b"]}
    before = held()
    for names in (["y", "z"], ["z", "y"], ["y"], ["z"], ["y", "y"], None):
        found = s.run(names, feeds)
        assert [each.tolist() for each in found] == [
            expected[name] for name in names or ["y", "z"]
        ]
        del found
    with pytest.raises(STATE.InvalidArgument):
        s.run(None, {**feeds, "x": X[0].reshape(1, -1)})
    # Started and waited for, and nobody takes what comes after the first result.
    pending = s._prepare(["y", "z"], feeds, None).wait()
    assert s._kept.js.running == 1
    del pending
    gc.collect()
    assert s._kept.js.running == 0
    assert await settled(before) == before


async def test_a_library_that_lies_about_its_results():
    s = await ort.InferenceSession.create(doubling(), providers=CPU)
    spy = await (
        await harness.load("/packages/onnxruntime/tests/cases/ort_spy.mjs")
    ).lie()
    try:
        with pytest.raises(ValueError, match=r"shape \[4\] cannot have 12 bytes"):
            await s.run_async(None, {"x": np.zeros(3, np.float32)})
    finally:
        spy.stop()
    await asyncio.sleep(
        0
    )  # asyncio keeps the error, and its frames, until the task waits again
    gc.collect()
    assert s._kept.js.running == 0
    (y,) = await s.run_async(None, {"x": np.ones(3, np.float32)})
    assert y.tolist() == [2, 2, 2]


# --- interrupts and losses ------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["run", "create", "values"])
def test_interrupted_anywhere(way, providers):
    """Wherever one comes, nothing is left, and the session works."""
    s = ort.InferenceSession(doubling(), providers=providers)

    async def operation():
        if way == "create":
            made = await ort.InferenceSession.create(doubling(), providers=providers)
            return await made.run_async(None, {"x": X[0]})
        if way == "values":
            value = ort.OrtValue.ortvalue_from_numpy(X[0])
            return [each.numpy() for each in s.run_with_ort_values(None, {"x": value})]
        return s.run(None, {"x": X[0]})

    async def everywhere():
        assert (await operation())[0].tolist() == [0, 2, 4]
        before = held()
        for at in await places_of(operation):
            came_out, _ = await interrupted(operation, at)
            gc.collect(0)
            assert (at, await settled(before)) == (at, before)
            assert came_out
        assert (await operation())[0].tolist() == [0, 2, 4]

    run(everywhere())

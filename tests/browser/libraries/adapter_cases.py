"""Tensors handed to JavaScript's libraries by Python, and taken from them."""

import io

import js
import numpy as np
import pytest
from js import harness
from pyodide.ffi import to_js
from pyodide.http import pyfetch

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("nothing_leaks")

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


async def module():
    return await harness.load("/tests/browser/libraries/libraries.mjs")


async def libraries():
    return await (await module()).libraries()


async def test_onnxruntime_takes_and_gives_gpu_tensors():
    all_of_them = await libraries()
    ort = await dlw.adapter("ort", all_of_them.ort)
    device = dlw.webgpu.use_device(all_of_them.device)
    assert await ort.use_device(device) == device
    session = await (await module()).session(all_of_them.ort, "Add", "float32")
    with dlw.from_dlpack(VALUES.ravel()) as host, host.to_device(device) as x:
        feed = ort.to_js(x, copy=False)
        assert getattr(js.Object, "is")(feed.gpuBuffer, x.gpu_buffer)
        feeds = to_js({"x": feed}, dict_converter=js.Object.fromEntries)
        value = (await session.run(feeds)).y
        with ort.from_js(value) as y:
            assert (y.shape, y.dtype, y.device) == ((6,), "float32", device)
            assert (await y.to_host() == 2 * VALUES.ravel()).all()
        with dlw.from_js(value) as y:  # any exchangeable object
            assert (await y.to_host() == 2 * VALUES.ravel()).all()
        value.dispose()
        feed.dispose()


async def test_onnxruntime_takes_and_gives_cpu_tensors():
    all_of_them = await libraries()
    ort = await dlw.adapter("ort", all_of_them.ort)
    array = VALUES.copy()
    feed = ort.to_js(array, copy=False)
    array[0, 0] = 40
    assert feed.data[0] == 40
    with ort.from_js(feed) as back:
        assert (back.numpy() == array).all()
    feed.dispose()


async def test_chain_of_libraries_on_one_device():
    all_of_them = await libraries()
    tf = await dlw.adapter("tfjs", all_of_them.tf)
    jax = await dlw.adapter("jax", all_of_them.jax)
    device = await dlw.webgpu.share_device(tf=all_of_them.tf, jax=all_of_them.jax)
    host = dlw.from_dlpack(VALUES)
    x = host.to_device(device)
    t = tf.to_js(x)
    relu = all_of_them.tf.relu(t)
    y = tf.from_js(relu)
    a = jax.to_js(y)
    squares = all_of_them.jax.numpy.square(a)
    with jax.from_js(squares) as result:
        assert result.read_only
        assert (await result.to_host() == np.maximum(VALUES, 0) ** 2).all()
    squares.dispose()
    for each in (t, relu):
        each.dispose()
    for each in (y, x, host):
        each.release()


async def test_strided_arrays_become_ndarrays_without_a_copy():
    chunks = await dlw.adapter("ndarray", None)
    array = np.arange(12.0).reshape(3, 4)
    chunk = chunks.to_js(array[::-1, ::2], copy=False)
    assert (list(chunk.shape), list(chunk.stride)) == ([3, 2], [-4, 2])
    chunk.data[chunk.offset] = 80  # element (0, 0)
    assert array[2, 0] == 80
    with chunks.from_js(chunk) as back:
        assert (back.numpy() == array[::-1, ::2]).all()
    chunk.data = js.Float64Array.new(0)  # lets go of the memory


async def test_arrow_takes_and_gives_columns():
    arrow = await dlw.adapter("arrow", await harness.load("/libraries/arrow.mjs"))
    array = VALUES.copy()
    vector = arrow.to_js(array, copy=False)
    array[1, 2] = 30
    assert vector.at(1).at(2) == 30
    with arrow.from_js(vector) as back:
        assert (back.numpy() == array).all()
    with dlw.from_js(vector) as back:
        assert (back.shape, back.dtype) == ((2, 3), "float32")
    vector.data[0].children[0].values = None  # lets go of the memory


async def test_arrow_columns_with_nulls_are_refused_or_masked():
    library = await harness.load("/libraries/arrow.mjs")
    arrow = await dlw.adapter("arrow", library)
    vector = column_of(library, [1.5, 0, 2.5, 0], 0b0101)
    table = library.Table.new(plain(x=vector, y=vector))
    there = [True, False, True, False]
    alone = await dlw.adapter("arrow", None)  # DuckDB-wasm keeps its own to itself
    for adapter in (arrow, alone):
        pair = adapter.from_js(table, column="x", nulls="mask")
        assert isinstance(pair, dlw.Masked)
        values, valid = pair
        assert valid.numpy().tolist() == there
        assert values.numpy()[[0, 2]].tolist() == [1.5, 2.5]
        for given in (valid, np.array(there), valid.js):
            again = arrow.to_js(values, valid=given)
            assert (again.nullCount, again.isValid(1), again.at(2)) == (2, False, 2.5)
            again.data[0].values = None  # lets go of the memory
        with pytest.raises(BufferError, match=r"bool of shape \[4\]"):
            arrow.to_js(values, valid=np.ones(3, bool))
        values.release()
        valid.release()
    values, valid = arrow.from_js(column_of(library, [1.5], 1), nulls="mask")
    assert valid.numpy().tolist() == [True]
    with pytest.raises(BufferError, match="2 columns"):
        arrow.from_js(table)
    for options in ({}, {"nulls": "refuse"}):
        with pytest.raises(BufferError, match="2 of 4 elements are null"):
            arrow.from_js(table, column="x", **options)
    with pytest.raises(TypeError, match='must be "refuse" or "mask", not keep'):
        arrow.from_js(table, column="x", nulls="keep")
    with pytest.raises(BufferError, match="2 of 4 elements are null"):
        dlw.from_js(vector)
    plain_objects = await dlw.adapter("ndarray", None)
    chunk = plain_objects.to_js(np.arange(3.0))
    with pytest.raises(TypeError, match="ndarray has no nulls"):
        plain_objects.from_js(chunk, nulls="mask")
    chunk.data = None


def plain(**fields):
    return to_js(fields, dict_converter=js.Object.fromEntries)


def column_of(library, values, bits):
    """A vector of float32, of which those are null whose bit is 0."""
    data = plain(
        type=library.Float32.new(),
        length=len(values),
        data=js.Float32Array.new(to_js(values)),
        nullCount=-1,
        nullBitmap=js.Uint8Array.of(bits),
    )
    return library.makeVector(library.makeData(data))


async def test_mistakes_are_named():
    all_of_them = await libraries()
    with pytest.raises(TypeError, match='no adapter "torch"; supported are arrow, jax'):
        await dlw.adapter("torch", None)
    tf = await dlw.adapter("tfjs", all_of_them.tf)
    with pytest.raises(BufferError, match="no int64 there"):
        tf.to_js(np.arange(3, dtype=np.int64))
    with pytest.raises(dlw.CopyError, match="not on that GPUDevice"):
        tf.to_js(VALUES, copy=False)
    with pytest.raises(BufferError, match="only a WebGPU device"):
        await tf.use_device("cpu")
    ort = await dlw.adapter("ort", all_of_them.ort)
    gone = all_of_them.ort.Tensor.new("float32", js.Float32Array.new(1))
    gone.dispose()
    with pytest.raises(dlw.ReleasedError, match="was disposed"):
        ort.from_js(gone)
    device = dlw.webgpu.use_device(all_of_them.device)
    points = all_of_them.THREE.BufferAttribute.new(js.Float32Array.new(3), 3)
    with pytest.raises(TypeError, match='"dlpack-web/three" makes one'):
        dlw.from_js(points)
    chunks = await dlw.adapter("ndarray", None)
    with pytest.raises(TypeError, match="no device to share"):
        await chunks.use_device(device)


def js_object(x):
    return to_js(x, dict_converter=js.Object.fromEntries)


async def test_transformers_takes_and_gives_gpu_tensors():
    transformers = await (await module()).loadTransformers(4)
    tensors = await dlw.adapter("transformers", transformers)
    device = dlw.webgpu.use_device((await libraries()).device)
    assert await tensors.use_device(device) == device
    options = {
        "executionProviders": [{"name": "webgpu", "device": device.gpu}],
        "preferredOutputLocation": "gpu-buffer",
    }
    model = await (await module()).doubling(transformers, js_object(options))
    with dlw.from_dlpack(VALUES.ravel()) as host, host.to_device(device) as x:
        feed = tensors.to_js(x, copy=False)
        value = (await model(js_object({"x": feed}))).y
        with tensors.from_js(value) as y, dlw.from_js(value) as same:
            assert (y.shape, y.dtype, y.device) == ((6,), "float32", device)
            assert getattr(js.Object, "is")(y.gpu_buffer, same.gpu_buffer)
            assert (await y.to_host() == 2 * VALUES.ravel()).all()
        value.dispose()
        feed.dispose()
    await model.dispose()


async def test_litert_runs_a_model_on_gpu_tensors():
    litert = await (await module()).loadLiteRT()
    tensors = await dlw.adapter("litert", litert)
    device = dlw.webgpu.use_device((await libraries()).device)
    assert await tensors.use_device(device) == device
    response = await pyfetch("/model/digits_tflite.npz")
    digits = np.load(io.BytesIO(await response.bytes()))
    options = js_object({"accelerator": "webgpu"})
    model = await litert.loadAndCompile("/model/digits.tflite", options)
    with dlw.from_dlpack(digits["pixels"], device=device) as x:
        feed = tensors.to_js(x, copy=False)
        (value,) = await model.run(to_js([feed]))
        with tensors.from_js(value) as y, dlw.from_js(value) as same:
            assert (y.shape, y.dtype, y.device) == ((200, 10), "float32", device)
            assert getattr(js.Object, "is")(y.gpu_buffer, same.gpu_buffer)
            value.delete()
            assert np.abs(await y.to_host() - digits["logits"]).max() < 1e-4
        feed.delete()
    model.delete()
    with (
        dlw.empty(3, "float16", device=device) as halves,
        pytest.raises(BufferError, match=r"LiteRT\.js has no float16"),
    ):
        tensors.to_js(halves)

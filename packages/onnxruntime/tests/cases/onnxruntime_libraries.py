"""Sessions, kernels and JavaScript's libraries on one device."""

import numpy as np
import pytest
from js import harness
from onnx_models import doubling, one_node

import dlpack_web as dlw
import dlpack_web_onnxruntime as ort

pytestmark = pytest.mark.usefixtures("nothing_leaks")

ADD_ONE = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&y)) { y[id.x] = x[id.x] + 1.0; }
}"""


async def test_sessions_kernels_and_libraries_on_one_device():
    """Two of Python's sessions, a kernel, tfjs, jax-js and three.js, and no byte through the CPU."""
    values = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
    module = await harness.load("/tests/browser/libraries/libraries.mjs")
    every = await module.libraries()
    device = dlw.webgpu.use_device(every.device)
    tf = await dlw.adapter("tfjs", every.tf)
    jax = await dlw.adapter("jax", every.jax)
    three = await dlw.adapter("three", every.THREE)
    assert await three.use_device(device, renderer=every.renderer) == device
    doubled = await ort.InferenceSession.create(
        doubling(), providers=["WebGPUExecutionProvider"]
    )
    squared = await ort.InferenceSession.create(
        one_node("Mul", shape=("N",), inputs=("x", "x")),
        providers=["WebGPUExecutionProvider"],
    )
    assert doubled.device == squared.device == device
    add_one = dlw.webgpu.Kernel(ADD_ONE)
    x = dlw.from_dlpack(values.ravel(), device=device)
    before = dlw.webgpu.stats()[device.id]

    [value] = await doubled.run_with_ort_values_async(None, {"x": ort.OrtValue(x)})
    t = tf.to_js(value.tensor)
    relu = every.tf.relu(t)
    a = jax.to_js(tf.from_js(relu))
    product = every.jax.numpy.square(a)
    state = dlw.empty((6,), device=device)
    add_one(jax.from_js(product), state)
    attribute = three.to_js(state, renderer=every.renderer)
    with three.from_js(attribute, renderer=every.renderer) as back:
        [value] = await squared.run_with_ort_values_async(
            None, {"x": ort.OrtValue(back)}
        )
    after = dlw.webgpu.stats()[device.id]
    assert (after["up"], after["down"]) == (before["up"], before["down"])

    found = await value.tensor.to_host()
    assert (found == (np.maximum(2 * values.ravel(), 0) ** 2 + 1) ** 2).all()
    every.renderer.backend.destroyAttribute(attribute)
    product.dispose()
    for each in (t, relu):
        each.dispose()
    for session in (doubled, squared):
        session.release()

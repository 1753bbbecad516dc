"""A user's program as `mypy --strict` sees it; `make check` runs that, nothing runs this.

Where a comment ignores an error, the error is expected: mypy tells of those that are gone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

import numpy as np

import dlpack_web as dlw

Array = np.ndarray[Any, Any]


async def ways_there_and_back(a: Array) -> Array:
    options: dlw.webgpu.DeviceOptions = {"features": ["shader-f16"], "label": "mine"}
    await dlw.webgpu.request_device(**options)
    device = await dlw.webgpu.request_device(maxBufferSize=2**30)
    assert_type(device, dlw.Device)
    with dlw.from_dlpack(a) as t, t.to_device("webgpu", dtype=np.float32) as gpu:
        assert_type(t, dlw.Tensor)
        assert_type(gpu, dlw.Tensor)
        assert_type(await gpu.to_host(), Array)
        first, *_ = await dlw.to_host(gpu, t)
        assert_type(first, Array)
        gpu.write(a, convert=True)
        return await gpu.to_host(out=np.empty_like(a))


def facts(t: dlw.Tensor) -> None:
    assert_type(t.shape, tuple[int, ...])
    assert_type(t.strides, tuple[int, ...])
    assert_type(t.dtype, dlw.DType)
    assert_type(t.dtype.itemsize, int)
    assert_type(t.dtype.type, type[np.generic])
    assert_type(t.device, dlw.Device)
    assert_type(t.numpy(), Array)
    assert_type(np.asarray(t), np.ndarray[tuple[Any, ...], np.dtype[Any]])
    assert_type(memoryview(t).tobytes(), bytes)
    assert_type(bytes(t), bytes)
    assert_type(float(t), float)
    assert_type(len(t), int)
    name: str = t.dtype
    print(name, t.dtype == "float32", f"{t:.3f}", [1, 2][t])


def views(t: dlw.Tensor) -> None:
    assert_type(t[0, ..., None, ::2], dlw.Tensor)
    assert_type(t.reshape((2, -1)), dlw.Tensor)
    assert_type(t.permute_dims((1, 0)), dlw.Tensor)
    for row in t:
        assert_type(row, dlw.Tensor)


def makers(a: Array) -> None:
    assert_type(dlw.empty((2, 3), np.float32), dlw.Tensor)
    assert_type(dlw.empty(3, "bfloat16", device="webgpu:1"), dlw.Tensor)
    assert_type(dlw.from_dlpack(a, device="cpu", copy=False), dlw.Tensor)
    assert_type(dlw.from_buffer(b"abc"), dlw.Tensor)
    assert_type(dlw.live_tensors(), int)


def arrow(column: Any, t: dlw.Tensor) -> None:
    assert_type(dlw.from_arrow(column, column="x"), dlw.Tensor)
    assert_type(dlw.from_arrow(column, nulls="refuse"), dlw.Tensor)
    values, valid = pair = dlw.from_arrow(column, nulls="mask")
    assert_type(pair, dlw.Masked)
    assert_type(values, dlw.Tensor)
    assert_type(pair.valid, dlw.Tensor)
    dlw.to_arrow(t)
    dlw.to_arrow(values, valid)
    dlw.from_arrow(column, nulls="keep")  # type: ignore[call-overload]


async def files(path: Path, t: dlw.Tensor) -> None:
    opened = await dlw.open(path, device="webgpu", dtype="float32", progress=print)
    assert_type(opened, dlw.Tensor | dlw.TensorFile)
    if isinstance(opened, dlw.TensorFile):
        with opened as weights:
            assert_type(weights["bias"], dlw.Tensor)
            assert_type(await weights.load("bias", "kernel"), tuple[dlw.Tensor, ...])
            assert_type(weights.info("bias"), dlw.TensorInfo)
            assert_type(weights.info("bias").shape, tuple[int, ...])
            assert_type(weights.metadata, dict[str, str])
            mapping: Mapping[str, dlw.Tensor] = weights
            await dlw.save("copy.safetensors", mapping, metadata={"by": "me"})
    assert_type(await dlw.save(None, t, format="npy"), bytes | None)
    await dlw.open(b"", shape=(2, 3), format="raw", dtype=np.float32)


def kernels(t: dlw.Tensor) -> None:
    kernel = dlw.webgpu.Kernel("fn main() {}")
    kernel(t, 2.5, workgroups=(4, 4))
    scale = dlw.webgpu.ElementwiseKernel("f32 x, f32 k", "f32 y", "y = k * x", "scale")
    y: dlw.Tensor = scale(t, 2.0)
    scale(t, 2.5, y)
    scale(2.0, 2.0, size=4)
    total = dlw.webgpu.ReductionKernel("f32 x", "f32 y", "x", "a + b", "y = a", 0)
    rows: dlw.Tensor = total(y, axis=-1, keepdims=True)
    total(y, rows, axis=-1, keepdims=True)
    assert_type(total.wgsl, str)
    with dlw.webgpu.batch() as batch:
        kernel(t, 2.5)
    assert_type(batch, dlw.webgpu.Batch)
    batch.run()
    batch.update(0, {0: t, 1: 3.5}, workgroups=4)
    assert_type(len(batch), int)
    assert_type(batch.released, bool)
    batch.release()


def mistakes(t: dlw.Tensor) -> None:
    t + 1  # type: ignore[operator]
    1 + t  # type: ignore[operator]
    t @ t  # type: ignore[operator]
    -t  # type: ignore[operator]
    t < 1  # type: ignore[operator]
    t == 1  # type: ignore[comparison-overlap]
    t[0] = 1  # type: ignore[index]
    t.to_device("cpu", stream=1)  # type: ignore[arg-type]
    t.foo  # type: ignore[attr-defined]
    t.sum()  # type: ignore[attr-defined]
    t.shape = (3, 2)  # type: ignore[misc]
    t.reshape(2, 3)  # type: ignore[arg-type]
    t.permute_dims(1, 0)  # type: ignore[arg-type]
    t.to_host().sum()  # type: ignore[attr-defined]
    t.to_host() + 1  # type: ignore[operator]
    t.dtype.byteorder  # type: ignore[attr-defined]
    dlw.from_dlpack([1, 2])  # type: ignore[arg-type]
    dlw.webgpu.Kernel("fn main() {}")([1, 2])  # type: ignore[arg-type]
    total = dlw.webgpu.ReductionKernel("f32 x", "f32 y", "x", "a + b", "y = a", "0")
    total(t, axis="rows")  # type: ignore[arg-type]
    total([1, 2])  # type: ignore[arg-type]
    dlw.webgpu.ElementwiseKernel("f32 x", "f32 y")  # type: ignore[call-arg]


async def mistakes_later(t: dlw.Tensor) -> None:
    await dlw.webgpu.request_device(max_buffer_size=1)  # type: ignore[call-arg]
    await dlw.webgpu.request_device(maxBufferSize="1")  # type: ignore[arg-type]
    await dlw.webgpu.request_device(powerPreference="low")  # type: ignore[arg-type]
    await dlw.webgpu.share_device(torch=t)  # type: ignore[call-arg]
    t.to_host()  # type: ignore[unused-coroutine]
    await t.numpy()  # type: ignore[misc]

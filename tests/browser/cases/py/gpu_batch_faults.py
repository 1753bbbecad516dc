"""Batches of kernels that the GPU refuses: each fault names its kernel."""

import numpy as np
import pytest
from gpu_batch import ADD, INCREMENT, increment
from gpu_kernels import upload
from gpu_world import destroy, make_buffer

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

BROKEN = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn main() { x[0] = nothing; }
"""


async def test_a_kernel_that_does_not_compile():
    broken = dlw.webgpu.Kernel(BROKEN, label="broken")
    with upload([1]) as x, upload([2]) as y, upload([3]) as other, upload([4]) as read:
        with dlw.webgpu.batch() as b:
            increment()(x, 1)
            dlw.webgpu.Kernel(ADD)(read, x)
            broken(y)
        b.run()
        for tensor in x, y:  # nothing of the batch ran
            with pytest.raises(dlw.KernelError, match="broken") as found:
                await tensor.to_host()
            assert (found.value.label, found.value.line) == ("broken", 3)
            assert found.value.filename.endswith("gpu_batch_faults.py")
        assert (await other.to_host()).tolist() == [3]
        assert (await read.to_host()).tolist() == [4]
        b.run()
        with pytest.raises(dlw.KernelError, match="broken"):
            await x.to_host()
        x.write(np.ones(1, "f4"))
        assert (await x.to_host()).tolist() == [1]
        b.release()


async def test_a_fault_of_an_argument_goes_where_the_data_goes():
    """Kernels of the batch that do not read it are not affected."""
    kernel, add = increment(), dlw.webgpu.Kernel(ADD)
    with upload([1]) as bad, upload([2]) as y, upload([3]) as z, upload([4]) as good:
        with dlw.webgpu.batch() as b:
            kernel(good, 1)
            add(bad, y)
            add(y, z)
        b.run()
        b.run()
        assert (await z.to_host()).tolist() == [3 + 3 + 4]
        dlw.webgpu.Kernel(BROKEN, label="broken")(bad)
        for run in (3, 4):
            b.run()
            assert (await good.to_host()).tolist() == [4 + run]
            for tensor in bad, y, z:
                with pytest.raises(dlw.KernelError, match="broken"):
                    await tensor.to_host()
        for tensor in bad, y, z:
            tensor.write(np.ones(1, "f4"))
        b.run()
        b.run()
        assert (await z.to_host()).tolist() == [1 + 2 + 3]
        b.release()


async def run_and_read(batch, tensor):
    batch.run()
    return await tensor.to_host()


async def test_a_destroyed_buffer_is_blamed_on_the_kernel_that_uses_it(device):
    kernel = increment()
    second = dlw.webgpu.Kernel(INCREMENT, label="second")
    buffer = make_buffer(device, 16)
    foreign = dlw.from_gpu_buffer(buffer, (4,), "float32", device=device)
    with upload([1]) as x, foreign:
        with dlw.webgpu.batch() as b:
            kernel(x, 1)
            second(foreign, 1)
        b.run()
        assert (await x.to_host()).tolist() == [2]
        buffer.destroy()
        with pytest.raises(BufferError, match="second"):
            await run_and_read(b, x)
        b.release()
        x.write(np.ones(1, "f4"))
        assert (await x.to_host()).tolist() == [1]


async def test_the_line_that_recorded_a_kernel_is_not_forgotten(device):
    buffer = make_buffer(device, 16)
    foreign = dlw.from_gpu_buffer(buffer, (4,), "float32", device=device)
    kernel = increment()
    with upload([1]) as x, foreign:
        with dlw.webgpu.batch() as b:
            kernel(x, 1)
            kernel(foreign, 1)
        for _ in range(4200):  # more calls than are kept
            kernel(x, 1)
        buffer.destroy()
        with pytest.raises(BufferError, match="increment") as found:
            await run_and_read(b, x)
        if isinstance(found.value, dlw.KernelError):  # the desktop raises it at once
            assert found.value.filename.endswith("gpu_batch_faults.py")
        b.release()


async def test_a_lost_device():
    lost = await dlw.webgpu.request_device(label="lost with a batch")
    x = dlw.from_dlpack(np.ones(3, "f4"), device=lost)
    with dlw.webgpu.batch() as b:
        increment()(x, 1)
    b.run()
    await destroy(lost)
    with pytest.raises(dlw.DeviceLostError, match="is lost"):
        b.run()
    with pytest.raises(dlw.DeviceLostError, match="is lost"):
        b.update(0, {1: 2})
    b.release()
    x.release()

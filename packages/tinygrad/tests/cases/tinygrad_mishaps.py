"""What goes wrong while tinygrad computes: it is an error in words, the next computation is
right, and nothing stays alive."""

import numpy as np
import pytest
from tinygrad import TinyJit
from tinygrad_world import Tensor, dtypes, held, installed, upload  # noqa: F401

import dlpack_web as dlw
import dlpack_web_tinygrad as dlwt
from dlpack_web._backends import default
from dlpack_web._kernels.batch import Batch
from dlpack_web_tinygrad import _device
from dlpack_web_tinygrad._device import in_use

pytestmark = pytest.mark.usefixtures("installed")


def make_step(number):
    """A step of three kernels under TinyJit. number: another one for each test, because
    tinygrad keeps what it generated."""
    total = Tensor.zeros(3).contiguous().realize()

    @TinyJit
    def step(x):
        y = (x * number).contiguous()
        return total.assign(total + (y.sum() + y).contiguous()).realize()

    return step


def given():
    return Tensor([1.0, 2.0, 3.0]).realize()


def fail_at(monkeypatch, place, name, which, error):
    """The `which`-th call from now on raises."""
    function, left = getattr(place, name), [which]

    def failing(*args, **named):
        left[0] -= 1
        if left[0] == 0:
            raise error
        return function(*args, **named)

    monkeypatch.setattr(place, name, failing)


# --- a device that is lost ---------------------------------------------------------------


@pytest.mark.parametrize("captured", [False, True])
async def test_a_device_lost_in_mid_step(captured, monkeypatch):
    before = held()
    step = make_step(3 + captured)
    for _ in range(4 if captured else 0):
        step(given())
    x, old = given(), in_use()
    place, name = (Batch, "run") if captured else (_device.Shader, "__call__")
    function, lost = getattr(place, name), []

    def losing(*args, **named):
        if not lost:
            lost.append(1)
            old.gpu.destroy()
        return function(*args, **named)

    monkeypatch.setattr(place, name, losing)
    with pytest.raises((dlw.DeviceLostError, BufferError, MemoryError)):
        await dlwt.to_host(step(x))
    assert lost
    monkeypatch.undo()
    for _ in range(3):  # a browser reports it a little later
        await dlw.to_host()
    assert dlwt.install(await dlw.webgpu.request_device()) != old
    del step, x
    step = make_step(3 + captured)
    for _ in range(5):
        result = step(given())
    wanted = 5 * (3 + captured) * np.array([7, 8, 9])
    assert (await dlwt.to_host(result)).tolist() == wanted.tolist()
    del step, result
    assert held()[0] <= before[0]


# --- memory ------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [1, 2])
def test_no_memory_for_a_result(which, monkeypatch):
    step, x = make_step(5), given()
    before = held()
    fail_at(monkeypatch, default(), "empty", which, BufferError("out of memory"))
    with pytest.raises(MemoryError, match="failed on WEBGPU"):
        step(x)
    monkeypatch.undo()
    assert held() == before
    assert step(x).tolist() == [35, 40, 45]


def test_no_memory_while_a_step_is_captured(monkeypatch):
    before = held()
    step, x = make_step(6), given()
    step(x)
    monkeypatch.setattr(
        _device.Graph, "__init__", failing_in_the_block(_device.Graph.__init__)
    )
    with pytest.raises(MemoryError, match="no more"):
        step(x)
    monkeypatch.undo()
    del step, x
    assert held() == before
    step = make_step(6)
    for _ in range(4):
        result = step(given())
    assert result.tolist() == [168, 192, 216]


def failing_in_the_block(init):
    """The second kernel that a Graph records finds no memory."""

    def failing(*args, **named):
        with pytest.MonkeyPatch.context() as patch:
            fail_at(patch, _device.Shader, "__call__", 2, MemoryError("no more"))
            init(*args, **named)

    return failing


def record_too_much(kernel, x, size):
    with dlw.webgpu.batch():
        kernel(x)
        dlw.empty(size, "uint8", device=in_use())


def test_no_memory_in_the_block_of_a_batch():
    kernel = dlw.webgpu.Kernel("""@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn main() { x[0] += 1; }""")
    most = default().limit(in_use().id, "maxBufferSize")
    with upload([1]) as x:
        before = held()
        with pytest.raises(BufferError):
            record_too_much(kernel, x, most + 4)
        assert held() == before
        assert np.asarray(x).tolist() == [1]


def test_elements_that_a_batch_is_to_compute_are_not_read_in_its_block():
    x = given()
    with dlw.webgpu.batch() as b:
        y = (x + 1).realize()
        with pytest.raises(BufferError, match="cannot be read here"):
            y.tolist()
    b.run()
    assert y.tolist() == [2, 3, 4]
    b.release()


# --- interrupts --------------------------------------------------------------------------


def test_an_interrupt_in_the_run_of_a_captured_step(monkeypatch):
    step, x = make_step(7), given()
    for _ in range(3):
        step(x)
    before = held()
    fail_at(monkeypatch, Batch, "run", 1, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        step(x)
    monkeypatch.undo()
    assert step(x).tolist() == [4 * 49, 4 * 56, 4 * 63]
    assert held() == before


# --- tensors and shaders -----------------------------------------------------------------


def test_memory_that_was_released_under_tinygrad():
    t = (given() * 2).realize()
    t.uop.buffer._buf.release()
    with pytest.raises(dlw.ReleasedError):
        (t + 1).realize()
    assert (given() + 1).tolist() == [2, 3, 4]


def test_a_tensor_that_was_released_is_still_tinygrads():
    x = upload([1, 2])
    t = dlwt.from_dlpack(x)
    y = dlwt.to_dlpack(t)
    x.release(), y.release()
    assert (t * 2).tolist() == [2, 4]


async def test_a_shader_of_tinygrads_that_does_not_compile(monkeypatch):
    before = held()
    render = _device.WGSLRenderer.render_kernel

    def spoilt(*args, **named):
        return render(*args, **named).replace("{", "{ nonsense; ", 1)

    monkeypatch.setattr(_device.WGSLRenderer, "render_kernel", spoilt)
    t = (given() * 8.125).realize()
    with pytest.raises(dlw.KernelError):
        await dlwt.to_host(t)
    monkeypatch.undo()
    assert (await dlwt.to_host(given() * 8.25)).tolist() == [8.25, 16.5, 24.75]
    del t
    assert held() == before


def test_integers_of_64_bits():
    t = Tensor([2**40, -(2**40) - 3], dtype=dtypes.int64)
    assert (t * 3 + 1).tolist() == [3 * 2**40 + 1, -3 * 2**40 - 8]

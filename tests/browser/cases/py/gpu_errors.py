"""WebGPU from Python, inside the page: every misuse has its error and leaks nothing."""

import traceback

import numpy as np
import pytest
from gpu_world import USAGE, make_buffer, only_in_a_page, run

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

IDLE = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn main() { x[0] = 1; }
"""
UNIFORM = """
@group(0) @binding(0) var<uniform> x: vec4f;
@compute @workgroup_size(1) fn main() { _ = x; }
"""


def on_gpu(count=4):
    with dlw.from_dlpack(np.zeros(count, np.float32)) as tensor:
        return tensor.to_device("webgpu")


@pytest.mark.parametrize(
    ("flag", "use"),
    [
        ("STORAGE", lambda tensor: dlw.webgpu.Kernel(IDLE)(tensor)),
        ("UNIFORM", lambda tensor: dlw.webgpu.Kernel(UNIFORM)(tensor, workgroups=1)),
        ("COPY_SRC", lambda tensor: run(tensor.to_host())),
        ("COPY_DST", lambda tensor: tensor.write(np.zeros(4, "f4"))),
    ],
)
def test_kernel_without_storage_usage_or_another_one(flag, use, device):
    flags = [name for name in USAGE if name not in (flag, "MAP_READ")]
    buffer = make_buffer(device, 16, *flags)
    with (
        dlw.from_gpu_buffer(buffer, 4, "float32", device=device) as tensor,
        pytest.raises(BufferError, match=rf"GPUBufferUsage\.{flag}; .*create it with"),
    ):
        use(tensor)


async def test_kernel_over_two_devices():
    other = await dlw.webgpu.request_device(label="other")
    with on_gpu() as a, dlw.empty(4, device=other) as b:
        with pytest.raises(BufferError, match="share a device"):
            dlw.webgpu.Kernel(IDLE)(a, b)
        with pytest.raises(BufferError, match="do not leave their device"):
            a.to_device(other)


def test_unregistered_device():
    with pytest.raises(BufferError, match="webgpu:99"):
        dlw.empty(4, device="webgpu:99")


def test_immediates_are_refused_at_the_call():
    kernel = dlw.webgpu.Kernel(f"var<immediate> by: f32;\n{IDLE}")
    with on_gpu() as x:
        for arguments in ((x,), (x, 2)):
            with pytest.raises(
                TypeError, match=r"^by: numbers are for var<uniform> of"
            ):
                kernel(*arguments)


@pytest.mark.parametrize(
    ("workgroups", "words"),
    [
        ((), r"must be one to three counts, not \(\)$"),
        ((1, 1, 1, 1), r"must be one to three counts, not \(1, 1, 1, 1\)$"),
        ((-1,), r"must be 1 or more, not \(-1,\)$"),
        ((2**17,), "must be 1 to 3 integers from 1 to"),
    ],
    ids=str,
)
def test_workgroups_out_of_range(workgroups, words):
    with on_gpu() as tensor, pytest.raises(ValueError, match=f"^workgroups {words}"):
        dlw.webgpu.Kernel(IDLE)(tensor, workgroups=workgroups)


def test_larger_than_the_device_allows():
    with pytest.raises(BufferError, match="maxBufferSize"):
        dlw.empty(2**45, "uint8", device="webgpu")


@pytest.mark.parametrize(
    ("source", "converts"),
    [
        (np.zeros(4), True),
        (np.zeros(4, "f2"), True),
        (np.zeros(4, "i4"), False),
        (np.zeros(3), False),
    ],
    ids=["float64", "float16", "int32", "shape"],
)
async def test_writing_another_dtype_says_whether_it_can_be_converted(source, converts):
    with on_gpu() as tensor:
        with pytest.raises(BufferError, match="cannot be written over") as caught:
            tensor.write(source)
        assert ("convert=True converts" in str(caught.value)) is converts
        assert "convert: " not in str(caught.value)
        if converts:
            tensor.write(source + 1, convert=True)
            assert (await tensor.to_host() == 1).all()


class Failing:
    def __dlpack__(self, **keywords):
        raise TypeError("mine")


@only_in_a_page("JavaScript")
@pytest.mark.parametrize(
    ("given", "name"),
    [([1], "a list"), (None, "a NoneType"), (1.5, "a float")],
    ids=str,
)
def test_from_js_talks_python_about_what_is_pythons(given, name):
    with pytest.raises(TypeError) as caught:
        dlw.from_js(given)
    assert str(caught.value).startswith(
        f"from_js takes a JavaScript object, not {name}: use dlw.from_dlpack("
    )
    told = "".join(traceback.format_exception(caught.value))
    assert told.count("Error: ") == 1
    with pytest.raises(TypeError, match="mine"):
        dlw.from_js(Failing())
    assert dlw.from_js(np.arange(3)).numpy().tolist() == [0, 1, 2]
    assert dlw.from_js(b"abc").numpy().tolist() == [97, 98, 99]


@only_in_a_page("JavaScript")
@pytest.mark.parametrize("library", [None, 5, np], ids=["None", "int", "a module"])
async def test_adapters_need_their_library(library):
    for name in "tfjs", "ort", "jax", "litert", "opencv", "three", "transformers":
        with pytest.raises(TypeError, match=rf"js\.{name}, not "):
            await dlw.adapter(name, library)
    with pytest.raises(TypeError, match='no adapter "tf"'):
        await dlw.adapter("tf", library)


@only_in_a_page("JavaScript")
def test_javascripts_tensor_of_a_tensor_that_is_gone():
    with pytest.raises(
        Exception, match=r"keep it \(in Python, the Tensor whose \.js it is\)"
    ):
        dlw.from_dlpack(np.arange(6.0)[::2]).js.data  # noqa: B018
    tensor = dlw.from_dlpack(np.arange(6.0)[::2])
    assert tensor.js.data.length == 5
    tensor.release()


def test_tensors_on_a_gpu_show_no_elements():
    with on_gpu() as tensor:
        assert repr(tensor) == (
            f"Tensor(shape=(4,), dtype='float32', device='{tensor.device}')"
        )
        assert repr(tensor.device) == f"<Device {tensor.device}>"


async def test_released_tensor():
    tensor = on_gpu()
    tensor.release()
    tensor.release()  # again is no error
    for use in (
        lambda: tensor.shape,
        lambda: tensor.gpu_buffer,
        lambda: tensor.to_device("cpu"),
        lambda: dlw.webgpu.Kernel(IDLE)(tensor),
        lambda: np.asarray(tensor),
    ):
        with pytest.raises(
            dlw.ReleasedError, match=r"^this Tensor was released; upload the elements"
        ):
            use()
    with pytest.raises(dlw.ReleasedError):
        await tensor.to_host()


@pytest.mark.parametrize("handle", [0, 1, 0xFFFFF, 0xDEADBEEF])
def test_forged_hold(handle):
    with pytest.raises(dlw.ReleasedError):
        dlw._core._take(handle)


def test_moving_with_copy_false():
    way = "moving (a tensor from webgpu:[0-9]+|.*) to (cpu|the CPU) copies it"
    with on_gpu() as tensor, pytest.raises(dlw.CopyError, match=f"^{way}"):
        tensor.to_device("cpu", copy=False)
    with dlw.empty(4) as tensor, pytest.raises(dlw.CopyError):
        tensor.to_device("webgpu", copy=False)

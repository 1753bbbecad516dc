"""What users read when an array cannot be shared."""

import subprocess
import sys

import numpy as np
import pytest

import dlpack_web as dlw

CASES = {
    "object": (np.zeros(2, object), "x.astype('float64')"),
    "string": (np.zeros(2, "U3"), "x.view('uint32')"),
    "bytes": (np.zeros(2, "S3"), "x.view('uint8')"),
    "datetime": (np.zeros(2, "M8[s]"), "x.view('int64')"),
    "timedelta": (np.zeros(2, "m8[s]"), "x.view('int64')"),
    "structured": (np.zeros(2, [("a", "i4")]), "x['name']"),
    "void": (np.zeros(2, "V3"), "x.view('uint8')"),
    "big-endian": (np.zeros(2, ">i4"), "newbyteorder('=')"),
}
if np.dtype(np.longdouble).itemsize > 8:
    CASES["longdouble"] = (np.zeros(2, np.longdouble), "x.astype('float64'")


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    return request.param


def test_borrowing_names_the_dtype_and_the_way_out(case):
    array, way_out = case
    with pytest.raises(BufferError) as caught:
        dlw.from_buffer(array)
    assert str(caught.value).startswith(f"cannot share dtype {str(array.dtype)!r}: ")
    assert way_out in str(caught.value)


def test_producer_keeps_its_exception_and_gets_a_note(case):
    array, way_out = case
    with pytest.raises(BufferError) as own:
        array.__dlpack__(max_version=(1, 0))
    with pytest.raises(BufferError) as caught:
        dlw.from_dlpack(array)
    assert str(caught.value) == str(own.value)
    assert any(way_out in note for note in caught.value.__notes__)


def test_from_buffer_names_from_dlpack():
    with pytest.raises(TypeError, match=r"__dlpack__ use from_dlpack\(\)"):
        dlw.from_buffer(object())


def test_explaining_never_hides_the_error():
    class Odd:
        @property
        def dtype(self):
            raise RuntimeError("no dtype for you")

        def __dlpack__(self, **keywords):
            raise BufferError("the first error")

    with pytest.raises(BufferError, match="the first error"):
        dlw.from_dlpack(Odd())


@pytest.mark.skipif(sys.platform == "emscripten", reason="there is a browser here")
@pytest.mark.parametrize(
    "use",
    [
        lambda t: t.to_device("webgpu"),
        lambda t: t.to_device("webgpu:0"),
        lambda t: t.js,
        lambda t: dlw.to_js(t),
        lambda t: dlw.from_js([1]),
        lambda t: dlw.empty(2, device="webgpu"),
        lambda t: dlw.webgpu.use_device(object()),
        lambda t: dlw.from_dlpack(t, device="webgpu"),
    ],
)
def test_cpython_says_that_it_is_no_browser(use):
    with (
        dlw.empty(2) as tensor,
        pytest.raises(BufferError, match=r"need a browser.*CPU tensors work"),
    ):
        use(tensor)


def test_numpy_is_not_needed(host_python):
    script = """
import subprocess
import sys
sys.modules["numpy"] = None
import dlpack_web as dlw
with dlw.from_buffer(b"abc") as t, dlw.from_dlpack(t) as same, dlw.empty(2, "int8"):
    print(memoryview(same).tolist())
"""
    command = [host_python, "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert done.stdout.split() == [b"[97,", b"98,", b"99]"]


def test_cpu_tensor_has_no_gpu_buffer():
    with (
        dlw.empty(2) as tensor,
        pytest.raises(BufferError, match=r"no GPUBuffer.*to_device"),
    ):
        _ = tensor.gpu_buffer


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([1, 2],), TypeError, "argument 0 is a list"),
        ((), TypeError, "at least one tensor"),
    ],
)
def test_kernel_takes_tensors(arguments, error, words):
    kernel = dlw.webgpu.Kernel("fn main() {}")
    with pytest.raises(error, match=words):
        kernel(*arguments, workgroups=1)


def test_kernel_takes_webgpu_tensors():
    with (
        dlw.empty(2) as tensor,
        pytest.raises(
            BufferError, match=r"argument 0 is on cpu.*to_device\('webgpu'\)"
        ),
    ):
        dlw.webgpu.Kernel("fn main() {}")(tensor, workgroups=1)


@pytest.mark.parametrize("workgroups", [(), (1, 1, 1, 1)])
def test_workgroups_are_one_to_three_counts(workgroups):
    with (
        dlw.empty(2) as tensor,
        pytest.raises(ValueError, match="one to three counts"),
    ):
        dlw.webgpu.Kernel("fn main() {}")(tensor, workgroups=workgroups)


def test_tensor_cannot_be_called():
    with pytest.raises(TypeError, match="from_dlpack"):
        dlw.Tensor()


def test_features_without_a_browser(host_python):
    found = dlw.features()
    assert found["browser"] is False
    assert "not a browser" in found["webgpu"]["reason"]

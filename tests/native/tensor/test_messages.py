"""What users read when an array cannot be shared."""

import asyncio
import gc
import io
import subprocess
import sys
import weakref
from ctypes import PYFUNCTYPE, c_int, c_void_p, py_object, pythonapi

import numpy as np
import pytest
from bridge import lend
from conftest import run
from forge import Forged

import dlpack_web as dlw
from dlpack_web import _core

CASES = {  # arrays, and the reason in the error
    "object": (
        np.zeros(2, object),
        (
            "object arrays hold references to Python objects, not numbers; convert them, for "
            "example with x.astype('float64')"
        ),
    ),
    "string": (
        np.zeros(2, "U3"),
        "DLPack has no dtype for strings; share their code points with x.view('uint32')",
    ),
    "bytes": (
        np.zeros(2, "S3"),
        "DLPack has no dtype for byte strings; share their bytes with x.view('uint8')",
    ),
    "datetime": (
        np.zeros(2, "M8[s]"),
        "DLPack has no dtype for times; share their counts with x.view('int64')",
    ),
    "timedelta": (
        np.zeros(2, "m8[s]"),
        "DLPack has no dtype for time spans; share their counts with x.view('int64')",
    ),
    "structured": (
        np.zeros(2, [("a", "i4")]),
        (
            "DLPack has no structured or void dtypes; share a field, x['name'], or the bytes, "
            "x.view('uint8')"
        ),
    ),
    "void": (np.zeros(2, "V3"), "x.view('uint8')"),
    "big-endian": (np.zeros(2, ">i4"), "newbyteorder('=')"),
}
if np.dtype(np.longdouble).itemsize > 8:
    CASES["longdouble"] = (np.zeros(2, np.longdouble), "x.astype('float64'")


CODES = "i1", "i2", "i4", "u1", "u2", "u4", "f2", "f4", "f8", "c8", "c16"
SHARES = "np.asarray(t), which shares its memory"


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    return request.param


@pytest.mark.parametrize("take", [dlw.from_buffer, dlw.from_dlpack, lend])
def test_an_array_that_cannot_be_shared_names_the_dtype_and_the_way_out(case, take):
    array, way_out = case
    with pytest.raises(BufferError) as caught:
        take(array)
    assert str(caught.value).startswith(f"cannot share dtype {str(array.dtype)!r}: ")
    assert way_out in str(caught.value)


def test_producer_keeps_its_exception_and_gets_a_note(case):
    array, way_out = case

    class Theirs:
        dtype = array.dtype

        def __dlpack__(self, **keywords):
            raise BufferError("their own words")

        def __dlpack_device__(self):
            return 1, 0

    with pytest.raises(BufferError) as caught:
        dlw.from_dlpack(Theirs())
    assert str(caught.value) == "their own words"
    (note,) = caught.value.__notes__
    assert note.startswith("cannot share dtype ")
    assert way_out in note


def test_explaining_never_hides_the_error():
    class Odd:
        @property
        def dtype(self):
            raise RuntimeError("no dtype for you")

        def __dlpack__(self, **keywords):
            raise BufferError("the first error")

    with pytest.raises(BufferError, match="the first error"):
        dlw.from_dlpack(Odd())


WGPU = r"^WebGPU outside a browser needs the package wgpu.*CPU tensors work"
BROWSER = r"^JavaScript is available only in Pyodide, in a browser; (?!.*WebGPU)"


@pytest.mark.skipif(sys.platform == "emscripten", reason="there is a browser here")
@pytest.mark.parametrize(
    ("said", "use"),
    [
        (WGPU, lambda t: t.to_device("webgpu")),
        (WGPU, lambda t: t.to_device("webgpu:0")),
        (WGPU, lambda t: dlw.empty(2, device="webgpu")),
        (WGPU, lambda t: dlw.empty(3, device="webgpu:0")),
        (WGPU, lambda t: dlw.from_dlpack(t, device="webgpu")),
        (WGPU, lambda t: dlw.from_gpu_buffer(None, 3, "float32", device="webgpu:0")),
        (WGPU, lambda t: dlw.webgpu.use_device(object())),
        (WGPU, lambda t: asyncio.run(dlw.webgpu.request_device())),
        (WGPU, lambda t: asyncio.run(dlw.webgpu.from_image(None))),
        (WGPU, lambda t: dlw.Device(15, 0).gpu),
        (WGPU, lambda t: dlw.webgpu.stats()),
        (BROWSER, lambda t: t.js),
        (BROWSER, lambda t: dlw.to_js(t)),
        (BROWSER, lambda t: dlw.from_js([1])),
        (BROWSER, lambda t: asyncio.run(dlw.webgpu.share_device())),
    ],
)
def test_what_lacks_its_package_or_browser_says_so(said, use):
    with dlw.empty(2) as tensor, pytest.raises(BufferError, match=f"(?s){said}"):
        use(tensor)


def test_numpy_is_not_needed(host_python):
    script = """
import asyncio
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


def test_features_without_a_browser(host_python):
    found = dlw.features()
    assert found["browser"] is False
    assert "not a browser" in found["webgpu"]["reason"]


def test_absent_names_are_absent():
    for name in ("zeros", "Kernel", "float32", "nonsense"):
        assert not hasattr(dlw, name)


def test_the_module_has_no_getattr():
    """CPython would look up no attribute of it by the fast way any more."""
    assert "__getattr__" not in vars(dlw)


def test_hints_are_no_names():
    names = {}
    exec("from dlpack_web import *", names)  # noqa: S102 - that is its meaning
    assert set(names) - {"__builtins__"} == set(dlw.__all__)
    assert set(dlw.__all__) <= set(dir(dlw))


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t + 1,
        lambda t: 1 - t,
        lambda t: -t,
        lambda t: t < 1,
        lambda t: t.sum,
        lambda t: t.argmax,
    ],
)
def test_arithmetic_on_a_gpu_names_what_is_there(use):
    """An array of a GPU tensor is a copy: it shares no memory."""
    gpu = dlw.from_dlpack(Forged(device_type=15, data=7))
    with gpu, pytest.raises((TypeError, AttributeError)) as caught:
        use(gpu)
    assert "shares" not in str(caught.value)
    assert "await t.to_host()" in str(caught.value)
    assert "on the GPU dlw.webgpu.ElementwiseKernel" in str(caught.value)
    assert "with gradients, tinygrad" in str(caught.value)
    with dlw.empty(3) as host:
        for tensor in host, gpu:  # which is released by now
            with pytest.raises(
                (TypeError, AttributeError),
                match=r"np\.asarray\(t\), which shares its memory",
            ):
                use(tensor)


@pytest.mark.parametrize("on", [1, 15], ids=["cpu", "webgpu"])
def test_an_array_to_read_into_that_is_read_only(on):
    forged = Forged(device_type=on, data=7) if on == 15 else np.zeros((2, 3), "f4")
    out = np.ones((2, 3), "f4")
    out.flags.writeable = False
    with dlw.from_dlpack(forged) as tensor, pytest.raises(ValueError) as caught:  # noqa: PT011
        run(tensor.to_host(out=out))
    assert str(caught.value) == "out is read-only; pass a writable array"
    assert out.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_a_kernel_shows_what_it_is():
    kernel = dlw.webgpu.Kernel("fn main() {}")
    assert repr(kernel) == "<Kernel 'main'>"
    named = dlw.webgpu.Kernel("fn go() {}", "go", label="double")
    assert repr(named) == "<Kernel 'double', entry 'go'>"
    assert dlw.webgpu.Kernel("fn main() {}", check=np.True_)._source.check is True


ORDERS = "", "<", "=", "|", "@"
MEANT = {
    **{
        o + c: np.dtype(c).name for c in [*"?bBhHiIqQefd", "b1", *CODES] for o in ORDERS
    },
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "i32": "int32",
    "i64": "int64",
    "u32": "uint32",
    "u64": "uint64",
    "half": "float16",
    "single": "float32",
    "double": "float64",
    "float": "float32",
    "int": "int32",
    "complex": "complex64",
}


@pytest.mark.parametrize(("name", "meant"), MEANT.items())
def test_names_of_numpy_and_other_libraries_name_the_dtype(name, meant):
    with pytest.raises(TypeError) as caught:
        dlw.empty(3, name)
    assert str(caught.value).endswith(f"; did you mean {meant!r}?")
    dlw.empty(3, meant).release()


@pytest.mark.parametrize("given", [bool, int, float, complex])
def test_pythons_numbers_are_numpys_dtypes(given):
    with dlw.empty(3, given) as tensor:
        assert tensor.numpy().dtype == np.dtype(given)


def test_a_gpu_tensor_that_cannot_be_read_says_so(monkeypatch):
    """Whatever _read_blocking returns, C uses nothing but a Tensor that holds something."""
    tensor = dlw.from_dlpack(Forged(device_type=15, data=7))
    released = dlw.empty(3)
    released.release()
    for nonsense in (None, 5, released):
        monkeypatch.setattr(dlw.Tensor, "_read_blocking", lambda self, x=nonsense: x)
        with pytest.raises(BufferError, match="could not be read back"):
            memoryview(tensor)
        with pytest.raises(BufferError, match="could not be read back"):
            tensor.__dlpack__(dl_device=(1, 0))
    tensor.release()


def test_an_interrupt_of_a_readback_is_raised_once(monkeypatch):
    """NumPy drops what a request for a buffer raises, and asks for the array."""
    reads = []

    def interrupted(self):
        reads.append(self)
        raise KeyboardInterrupt

    tensor = dlw.from_dlpack(Forged(device_type=15, data=7))
    monkeypatch.setattr(dlw.Tensor, "_read_blocking", interrupted)
    for use in (memoryview, np.asarray, lambda t: t.__dlpack__(dl_device=(1, 0))):
        with pytest.raises(KeyboardInterrupt):
            use(tensor)
        sum(range(1000))  # a second one would come now
    assert len(reads) == 3
    host = np.arange(3.0)
    monkeypatch.setattr(
        dlw.Tensor, "_read_blocking", lambda self: dlw.from_dlpack(host)
    )
    assert memoryview(tensor).tolist() == [0, 1, 2]  # and does not come later
    assert np.asarray(tensor).tolist() == [0, 1, 2]
    tensor.release()


@pytest.mark.parametrize("end", ["released", "dropped", "asked", "asked again"])
def test_the_class_of_an_interrupt_is_kept_no_longer_than_needed(monkeypatch, end):
    kind = type("Interrupt", (BaseException,), {})

    def interrupted(self, kind=kind):
        raise kind

    gone = weakref.ref(kind)
    tensor = dlw.from_dlpack(Forged(device_type=15, data=7))
    monkeypatch.setattr(dlw.Tensor, "_read_blocking", interrupted)
    for _ in range(3):
        with pytest.raises(kind):
            memoryview(tensor)
    monkeypatch.undo()
    del interrupted
    gc.collect()
    assert gone() is not None
    if end == "released":
        tensor.release()
    elif end == "asked":
        assert tensor._interrupt() is kind
        assert tensor._interrupt() is None
    elif end == "asked again":
        with pytest.raises(TypeError, match="read-write bytes-like"):
            io.BytesIO(b"1").readinto(tensor)  # nothing is read back to be written
        assert tensor._interrupt() is None
    if end == "dropped":
        del tensor
    del kind
    gc.collect()
    assert gone() is None


def test_an_interrupt_within_an_interrupted_readback_is_kept_once(monkeypatch):
    """Its class is, while the request that began first is still there."""
    kind = type("Interrupt", (BaseException,), {})
    asked = []

    def interrupted(self, kind=kind):
        asked.append(1)
        if len(asked) == 1:
            with pytest.raises(kind):
                memoryview(self)
        raise kind

    gone = weakref.ref(kind)
    monkeypatch.setattr(dlw.Tensor, "_read_blocking", interrupted)
    with dlw.from_dlpack(Forged(device_type=15, data=7)) as tensor:
        with pytest.raises(kind):
            memoryview(tensor)
        monkeypatch.undo()
    del interrupted, kind
    gc.collect()
    assert (len(asked), gone()) == (2, None)


def test_a_foreign_webgpu_tensor_is_shown():
    with dlw.from_dlpack(Forged(device_type=15, data=7, shape=(999, 999))) as tensor:
        html = tensor._repr_html_()
    assert "the creator of the GPUBuffer" in html
    assert "await t.to_host()" in html


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values", [[1 + 2j, np.nan, np.inf * 1j], [1e300 + 1e300j]])
def test_complex_tensors_are_shown_without_warnings(values):
    with dlw.from_dlpack(np.array(values)) as tensor:
        assert "absolute values" in tensor._repr_html_()


def test_writing_converts_on_the_cpu():
    for source, target in (
        ("float64", "float32"),
        ("float32", "float16"),
        ("float16", "float32"),
        ("complex128", "complex64"),
        ("int64", "int32"),
        ("uint64", "uint32"),
    ):
        array = np.arange(12).reshape(3, 4).astype(source)
        for view in (array, array.T, array[::-1], array[:0], array[1, 2]):
            with dlw.empty(view.shape, target) as tensor:
                with pytest.raises(BufferError, match="cannot be written over"):
                    tensor.write(view)
                tensor.write(view, convert=True)
                np.testing.assert_array_equal(tensor.numpy(), view.astype(target))
    with dlw.from_dlpack(np.ones(2, "i4")) as tensor:
        with pytest.raises(BufferError, match="element 1 of the int64 tensor"):
            tensor.write(np.array([5, 2**40]), convert=True)
        with pytest.raises(BufferError, match="cannot convert float32 to int32"):
            tensor.write(np.zeros(2, "f4"), convert=True)
        assert tensor.numpy().tolist() == [1, 1]


def test_read_only_memory_says_what_to_do():
    get_buffer = PYFUNCTYPE(c_int, py_object, c_void_p, c_int)(
        ("PyObject_GetBuffer", pythonapi)
    )
    with dlw.from_buffer(b"abc") as tensor:
        with pytest.raises(
            BufferError, match=r"^this tensor is read-only; copy it first"
        ):
            get_buffer(tensor, bytes(256), 1)  # PyBUF_WRITABLE
        with pytest.raises(
            BufferError, match=r"or, for read-only data, with copy=True$"
        ):
            tensor.__dlpack__()


@pytest.mark.parametrize("on", [(), (1,), ("a", 0), (1, 2, 3), (1, None)])
def test_a_device_that_is_no_pair_of_numbers(on):
    array = np.zeros(3)
    before = sys.getrefcount(array)
    with pytest.raises(TypeError, match=r"argument|integer"):
        _core._from_dlpack_on(array, on, None, False)
    assert sys.getrefcount(array) == before


def test_what_is_read_back_has_no_hold_too_many(monkeypatch):
    host = dlw.from_dlpack(np.arange(3.0))
    monkeypatch.setattr(dlw.Tensor, "_read_blocking", lambda self: host)
    with dlw.from_dlpack(Forged(device_type=15, data=7)) as tensor:
        before = sys.getrefcount(host)
        for _ in range(3):
            del_me = tensor.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
            del del_me
        assert sys.getrefcount(host) == before
    host.release()


def test_misaligned_data_is_said_with_its_address():
    array = np.zeros(9, "u1")[1:5].view("i4")
    said = rf"^data at {array.ctypes.data:#x} is not aligned to 4 bytes"
    with pytest.raises(BufferError, match=said):
        dlw.from_dlpack(array.__dlpack__())

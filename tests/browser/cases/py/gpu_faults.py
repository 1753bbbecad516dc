"""What the GPU finds wrong later, from Python: raised to its reader, or warned of by its call."""

import asyncio
import html
import inspect
import re
import warnings

import numpy as np
import pytest
from gpu_fixtures import live
from gpu_world import run

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

SHADER = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) {{
  x[id.x] = {};
}}"""


COPY = """
@group(0) @binding(0) var<storage, read_write> to: array<f32>;
@group(0) @binding(1) var<storage, read> source: array<f32>;
@compute @workgroup_size(1) fn main() { to[0] = source[0]; }"""


def kernel_of(value, **options):
    return dlw.webgpu.Kernel(SHADER.format(value), **options)


def on_gpu(length=3):
    return dlw.empty(length, device="webgpu")


def here():
    return inspect.currentframe().f_back.f_lineno


async def caught(promise):
    """The KernelError that is raised, without what its traceback keeps."""
    try:
        await promise
    except dlw.KernelError as error:
        return error.with_traceback(None)
    pytest.fail("nothing was raised")


async def something(told):
    """Waits for a warning: for a reader for a second, for a busy GPU longer."""
    for _ in range(600):
        await asyncio.sleep(0.1)
        if told:
            return


async def test_ready_says_what_is_wrong_in_the_source():
    kernel = kernel_of("nonsense", label="mine")
    for _ in range(2):
        line = here() + 1
        error = await caught(kernel.ready())
        assert (error.label, error.line) == ("mine", 4)
        assert re.search("(value '|identifier: .)nonsense", str(error))
        assert error.filename == __file__
        assert error.lineno <= line
    await kernel_of("1").ready()
    await kernel_of("1").ready("webgpu")
    with pytest.raises(BufferError, match="not on 'cpu'"):
        await kernel_of("1").ready("cpu")


async def test_the_line_of_the_call_is_named():
    kernel = kernel_of("wrong")
    with on_gpu() as tensor:
        kernel(tensor)  # also where it compiles, for this device
        line = here() - 1
        await caught(tensor.to_host())
        error = await caught(tensor.to_host())
    assert (error.filename, error.lineno) == (__file__, line)
    assert str(error).endswith(f"called at {__file__}:{line}")
    assert isinstance(error, BufferError)


async def test_each_tensor_has_its_own_fault():
    outs = {name: on_gpu() for name in ("first", "second", "third")}
    with on_gpu() as good:
        for name, tensor in outs.items():
            kernel_of(name, label=name)(tensor)
        kernel_of("7")(good)
        readings = [good.to_host(), *(tensor.to_host() for tensor in outs.values())]
        results = await asyncio.gather(*readings, return_exceptions=True)
        assert results[0].tolist() == [7, 7, 7]
        labels = [error.label for error in results[1:]]
    assert labels == ["first", "second", "third"]
    del results
    for tensor in outs.values():
        tensor.release()


async def test_many_at_once_raise_what_is_wrong_with_one():
    with on_gpu() as good, on_gpu() as bad:
        kernel_of("wrong", label="one of many")(bad)
        error = await caught(dlw.to_host(good, bad))
        assert error.label == "one of many"
        (values,) = await dlw.to_host(good)
        assert values.tolist() == [0, 0, 0]


async def test_faults_are_handed_on_and_written_over():
    with on_gpu() as bad, on_gpu() as copy, on_gpu() as computed:
        kernel_of("wrong", label="origin")(bad)
        copy.write(bad)
        dlw.webgpu.Kernel(COPY)(computed, bad)
        for tensor in (bad, copy, computed):
            assert (await caught(tensor.to_host())).label == "origin"
        copy.write(np.arange(3, dtype="f4"))
        assert (await copy.to_host()).tolist() == [0, 1, 2]
        with bad[1:] as view:
            assert (await caught(view.to_host())).label == "origin"


async def test_a_fault_belongs_to_bytes():
    """Views of other elements are sound; a write mends what it covers, and no more."""
    with on_gpu(192) as whole, whole[64:128] as bad, whole[128:] as sound:
        kernel_of("wrong", label="middle")(bad, workgroups=64)
        kernel_of("5")(sound, workgroups=64)
        assert (await sound.to_host()).tolist() == [5] * 64
        assert (await caught(whole.to_host())).label == "middle"
        with whole[64:96] as half, whole[96:128] as other, whole[:64] as first:
            half.write(np.arange(32, dtype="f4"))
            assert (await half.to_host()).tolist() == list(range(32))
            assert not (await first.to_host()).any()
            assert (await caught(other.to_host())).label == "middle"
            assert (await caught(bad.to_host())).label == "middle"
        whole.write(np.ones(192, "f4"))
        assert (await bad.to_host()).tolist() == [1] * 64


async def test_a_fault_comes_along_with_the_buffer():
    """To all tensors over it, those that are made later too, and back."""
    bad = on_gpu(64)
    again = dlw.from_gpu_buffer(bad.gpu_buffer, 32, "float32", device="webgpu")
    kernel_of("wrong", label="first")(bad, workgroups=64)
    assert (await caught(again.to_host())).label == "first"
    buffer = bad.gpu_buffer
    again.write(np.zeros(32, "f4"))
    assert (await again.to_host()).tolist() == [0] * 32
    assert (await caught(bad.to_host())).label == "first"
    bad.release()
    again.release()
    with dlw.from_gpu_buffer(buffer, 64, "float32", device="webgpu") as late:
        assert (await caught(late.to_host())).label == "first"


async def test_timing_a_bad_kernel_raises(gpu_features):
    kernel = kernel_of("wrong", label="timed")
    with on_gpu() as tensor:
        if "timestamp-query" not in gpu_features:
            with pytest.raises(BufferError, match="timestamp-query"):
                await kernel.time(tensor)
        else:
            assert (await caught(kernel.time(tensor))).label == "timed"
            assert (await caught(tensor.to_host())).label == "timed"


async def test_what_nobody_reads_is_a_warning_that_names_the_call():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with on_gpu() as tensor:
            kernel = kernel_of("wrong", label="unread")
            for _ in range(2):
                kernel(tensor)
            line = here() - 1
        await something(told)
    assert len(told) == 1, [str(one.message) for one in told]
    (warning,) = told
    assert warning.category is RuntimeWarning
    assert (warning.filename, warning.lineno) == (__file__, line)
    assert 'kernel "unread"' in str(warning.message)


async def test_what_was_read_is_no_warning():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with on_gpu() as tensor:
            kernel_of("wrong")(tensor)
            await caught(tensor.to_host())
        await asyncio.sleep(1.5)
    assert told == []


SHOWN = (
    str,
    format,
    dlw.Tensor._repr_html_,
    lambda t: t._repr_mimebundle_()["text/html"],
)


@pytest.mark.parametrize("length", [3, 5000, 1 << 20])
@pytest.mark.parametrize("show", SHOWN, ids=["str", "format", "html", "notebook"])
def test_what_is_shown_has_the_error(length, show):
    """A read that shows nothing of its error would count as reported."""
    with on_gpu(length) as whole, whole[::-1] as view:
        kernel_of("wrong", label="shown")(whole, workgroups=(3, 1, 1))
        for tensor in (whole, view):
            text = html.unescape(show(tensor))
            assert text.count('kernel "shown"') == 1, text


async def test_a_read_that_is_given_up_does_not_report():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with on_gpu() as tensor:
            kernel_of("wrong", label="given up")(tensor)
            reading = asyncio.ensure_future(tensor.to_host())
            await asyncio.sleep(0)
            reading.cancel()
            await asyncio.wait([reading])
        if not reading.cancelled():  # it had the error already
            assert reading.exception().label == "given up"
            return
        await something(told)
    assert ['kernel "given up"' in str(one.message) for one in told] == [True]


def test_waiting_for_it_raises_as_well():
    with on_gpu() as tensor:
        kernel_of("wrong", label="blocking")(tensor)
        try:
            np.asarray(tensor)
        except dlw.KernelError as error:
            label = error.label
        else:
            pytest.fail("nothing was raised")
    assert label == "blocking"


def test_what_is_given_is_checked_at_the_call():
    before = live()
    kernel = kernel_of("1")
    run(kernel.ready())
    copying = dlw.webgpu.Kernel(COPY)
    with dlw.from_dlpack(np.ones(3), device="webgpu") as wide:
        with pytest.raises(BufferError, match=r'(?s)float64.*dtype "float32"'):
            kernel(wide)
        unchecked = kernel_of("1", check=False)
        unchecked(wide, workgroups=1)
    with on_gpu() as tensor, on_gpu() as other:
        with pytest.raises(ValueError, match=r"each binding \(x\): 1, not"):
            kernel(tensor, other)
        none = dlw.webgpu.Kernel("@compute @workgroup_size(1) fn main() {}")
        with pytest.raises(ValueError, match=r"each binding \(none\): 0, not 1"):
            none(tensor, workgroups=1)
        with pytest.raises(TypeError, match="at least one tensor"):
            kernel()
        with pytest.raises(TypeError, match="takes Tensors"):
            kernel(np.zeros(4))
        with (
            dlw.empty(4) as host,
            pytest.raises(BufferError, match=r"to_device\('webgpu'\)"),
        ):
            kernel(host)
        with pytest.raises(TypeError, match="numbers are for var<uniform>"):
            copying(tensor, 1.5)
    assert live() == before


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("f32", 0.5, 0.5),
        ("f32", True, 1),
        ("f32", np.float64(2), 2),
        ("f32", float("inf"), np.inf),
        ("i32", np.int8(-3), -3),
        ("u32", 2**32 - 1, np.float32(2**32 - 1)),
        ("i32", 0.5, ValueError),
        ("i32", 2**31, ValueError),
        ("u32", -1, ValueError),
        ("u32", float("nan"), ValueError),
        ("f32", 1e300, ValueError),
        ("f32", 10**400, OverflowError),
        ("f32", "1", TypeError),
        ("f32", None, TypeError),
        ("f32", [1], TypeError),
        ("f32", 1j, TypeError),
        ("f32", np.ones(1), TypeError),
    ],
)
async def test_numbers_are_uniforms_or_refused(kind, value, expected):
    kernel = dlw.webgpu.Kernel(f"""
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<uniform> value: {kind};
@compute @workgroup_size(1) fn main() {{ x[0] = f32(value); }}""")
    with on_gpu(1) as tensor:
        if isinstance(expected, type):
            with pytest.raises(expected):
                kernel(tensor, value, workgroups=1)
        else:
            kernel(tensor, value, workgroups=1)
            assert (await tensor.to_host())[0] == expected

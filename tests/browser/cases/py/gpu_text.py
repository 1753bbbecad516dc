"""print(t) of tensors on a GPU: their elements where Python may wait, else how to get them."""

import numpy as np
import pytest

import dlpack_web as dlw
from dlpack_web._backends import default

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

BROKEN = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn main() { x[0] = nonsense; }"""


@pytest.fixture
def read(monkeypatch):
    """The bytes from the first to the last element of each read."""
    lengths = []
    ours = default().read_blocking

    def count(sources, targets):
        for source in sources:
            axes = zip(source.shape, source.strides, strict=True)
            reach = sum((extent - 1) * abs(stride) for extent, stride in axes)
            lengths.append((reach + 1) * source.itemsize)
        ours(sources, targets)

    monkeypatch.setattr(default(), "read_blocking", count)
    return lengths


@pytest.mark.parametrize("dtype", ["f4", "u1", "f2", "f8", "i8"])
def test_elements_are_printed_as_by_numpy(device, read, dtype):
    for shape in (3,), (7, 5), (), (0, 4), (1000,), (1001,), (300, 401), (9, 30, 201):
        array = np.resize(np.arange(100), shape).astype(dtype)
        with dlw.from_dlpack(array, device=device) as tensor:
            expected = np.array2string(array, separator=", ", prefix="Tensor(")
            assert str(tensor) == f"Tensor({expected}, {tensor._said_facts()})"
            assert f"{tensor}" == str(tensor)
            read.clear()
            str(tensor)
            assert sum(read) <= 8 << 10


def test_views_are_printed_as_they_are(device, read):
    array = np.arange(300 * 401, dtype="u1").reshape(300, 401)
    with dlw.from_dlpack(array, device=device) as tensor:
        for view, same in (
            (tensor.permute_dims((1, 0)), array.T),
            (tensor[::-1, 3::17], array[::-1, 3::17]),
            (tensor[7], array[7]),
        ):
            with view:
                expected = np.array2string(same, separator=", ", prefix="Tensor(")
                read.clear()
                assert str(view).startswith(f"Tensor({expected}, shape=")
                assert sum(read) <= 8 << 10


def test_dtypes_that_numpy_lacks(device):
    array = np.array([0x3F80, 0xC040], "u2")
    with dlw.empty(2, "bfloat16", device=device) as tensor:
        with dlw.empty(2, "bfloat16") as source:
            memoryview(dlw._core._raw(source)[0])[:] = array.tobytes()
            tensor.write(source)
        said = str(tensor).replace(".", "").replace(" ", "")
        assert said.startswith("Tensor([1,-3],shape=")


def test_where_python_cannot_wait_it_says_how(device, read, monkeypatch):
    monkeypatch.setattr(default(), "can_block", lambda: False)
    with dlw.from_dlpack(np.ones(3, "f4"), device=device) as tensor:
        assert str(tensor) == f"{tensor!r}, on the GPU: await t.to_host()"
    assert read == []


def test_a_fault_is_said(device):
    with dlw.from_dlpack(np.ones(3, "f4"), device=device) as tensor:
        dlw.webgpu.Kernel(BROKEN)(tensor, workgroups=1)
        said = str(tensor)
    assert said.startswith(
        f"Tensor(shape=(3,), dtype='float32', device='{device}'), not "
    )
    assert "not readable: KernelError: " in said
    assert "nonsense" in said


def test_notebooks_show_the_elements(device):
    with dlw.from_dlpack(np.arange(3, dtype="f4"), device=device) as tensor:
        bundle = tensor._repr_mimebundle_()
        assert bundle["text/plain"] == str(tensor)
        assert "<pre>[0., 1., 2.]</pre>" in bundle["text/html"]
    assert str(tensor) == "Tensor(released)"

"""print(t) on the CPU: the elements, of which large tensors show the ends of each axis."""

import subprocess
import sys

import numpy as np
import pytest
from forge import Forged

import dlpack_web as dlw
from dlpack_web._tensor import show


def shown(array):
    with dlw.from_dlpack(array) as tensor:
        facts = f", {tensor._said_facts()})"
        said = str(tensor)
    assert said.startswith("Tensor(")
    assert said.endswith(facts)
    return said.removeprefix("Tensor(").removesuffix(facts)


def numpys(array):
    return np.array2string(array, separator=", ", prefix="Tensor(")


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.arange(1000),
        np.arange(1001),
        np.arange(20000)[::-7],
        np.arange(10**6).reshape(1000, 1000),
        np.arange(10**6).reshape(1000, 1000).T,
        np.arange(10**6).reshape(10, 100, 1000).transpose(1, 2, 0)[::3, ::-9],
        np.arange(1400).reshape(200, 7),
        np.arange(1200).reshape(200, 6),
        np.arange(4000).reshape(2, 500, 2, 2),
        np.linspace(0, 1, 3000, dtype="f2"),
        np.full(5000, 1 + 2j, "c8"),
        np.broadcast_to(np.float32(2), (3000, 40)),
        np.array(1.5),
        np.zeros((0, 3)),
        np.array([True, False]),
        np.array([np.nan, -np.inf, 1e-30]),
    ],
    ids=lambda x: f"{x.dtype}-{x.shape}",
)
def test_elements_are_printed_as_by_numpy(array):
    assert shown(array) == numpys(array)


def test_only_ends_are_read(monkeypatch):
    read = []
    write = dlw.Tensor.write

    def count(self, source):
        read.append(source.size)
        write(self, source)

    monkeypatch.setattr(dlw.Tensor, "write", count)
    monkeypatch.setattr(dlw.Tensor, "numpy", lambda self: pytest.fail("all read"))
    for shape, number in ((10**6,), 6), ((500, 400, 300), 6**3), ((2, 9999), 12):
        read.clear()
        shown(np.broadcast_to(np.uint8(1), shape))
        assert sum(read) == number
    read.clear()
    shown(np.zeros((500, 400), "u1").T)
    assert read == [3] * 12  # neighbours in memory, which are in different rows


def test_neighbours_are_read_together():
    """One read for each row's end, also of columns; not across wide gaps."""

    def runs(array):
        with dlw.from_dlpack(array) as tensor:
            step = min(map(abs, tensor.strides))
            return len(list(show._runs(tensor.shape, step, 3)))

    assert runs(np.zeros((500, 400))) == 6 * 2
    assert runs(np.zeros((500, 5))) == 6 * 1
    assert runs(np.zeros((500, 400))[:, ::9]) == 6 * 6


def test_print_options_of_numpy_count():
    array = np.arange(50.0)
    with np.printoptions(threshold=10, edgeitems=1, precision=2):
        assert shown(array) == numpys(array) == "[ 0., ..., 49.]"
    with np.printoptions(threshold=0):
        assert shown(np.array(1.5)) == "1.5"
        assert shown(np.arange(7)) == numpys(np.arange(7)) == "[0, 1, 2, ..., 4, 5, 6]"
        assert shown(np.arange(2)) == numpys(np.arange(2))
    with np.printoptions(threshold=sys.maxsize):
        assert shown(np.arange(3000)) == numpys(np.arange(3000))


def test_many_axes_show_less_of_each():
    for axes, edge in (3, 3), (4, 2), (6, 1):
        array = np.broadcast_to(np.float32(1), (11,) * axes)
        assert shown(array).count("1.") == (2 * edge) ** axes
    with dlw.from_dlpack(np.zeros((2,) * 12)) as tensor:
        assert str(tensor) == f"{tensor._facts_alone()}, too many to show: t.numpy()"


@pytest.mark.parametrize("without", [None, "ml_dtypes"])
def test_elements_that_share_bytes(without, monkeypatch):
    if without:
        monkeypatch.setitem(sys.modules, without, None)
    for name, numbers in ("uint4", "[1, 2, 3, 4, 13]"), ("int4", "[1, 2, 3, 4, -3]"):
        with dlw.empty(5, name) as tensor:
            memoryview(dlw._core._raw(tensor)[0])[:] = bytes([0x21, 0x43, 0x0D])
            said = str(tensor).replace(" ", "")
            assert said.startswith(f"Tensor({numbers},".replace(" ", ""))
            assert str(tensor).endswith("device='cpu')")
    with dlw.empty(3000, "uint4") as tensor:
        assert str(tensor) == f"{tensor._facts_alone()}, too many to show: t.numpy()"


def test_dtypes_that_numpy_lacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    raw = np.array([0x3F80, 0xC040], "u2")
    for name, expected in (
        ("bfloat16", "Tensor([ 1., -3.], shape=(2,), dtype='bfloat16', device='cpu')"),
        ("float8_e5m2x2", "Tensor([[0x80, 0x3f],"),
    ):
        with dlw.empty(2, name) as tensor:
            memoryview(dlw._core._raw(tensor)[0])[:] = raw.tobytes()
            assert str(tensor).startswith(expected)
            hexadecimal = str(tensor).endswith("), bytes: ml_dtypes has their numbers")
            assert hexadecimal == (name != "bfloat16")
    with dlw.empty(2000, "bfloat16") as tensor:
        memoryview(dlw._core._raw(tensor)[0])[:] = np.repeat(raw, 1000).tobytes()
        assert str(tensor).startswith("Tensor([ 1.,  1.,  1., ..., -3., -3., -3.], ")
    with dlw.empty(2, "float32x4") as tensor:
        tensor.numpy()[:] = np.arange(8).reshape(2, 4)
        assert str(tensor).startswith("Tensor([[0., 1., 2., 3.],\n")


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "int4", "complex32"])
def test_bytes_are_not_read_as_text(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with dlw.empty((), name) as tensor:
        memoryview(dlw._core._raw(tensor)[0])[:] = b"5" * tensor.nbytes
        for use in (bool, int, float, hash, lambda t: t == 5, np.float32):
            with pytest.raises(TypeError, match=f"NumPy has only the bytes of {name}"):
                use(tensor)
        assert "without a numeric dtype" in tensor._repr_html_()


def test_foreign_gpus_say_how():
    with dlw.from_dlpack(Forged(device_type=15, data=7)) as tensor:
        said = str(tensor)
    assert said.startswith("Tensor(shape=")
    assert "webgpu:0'), " in said


def test_errors_are_said_and_never_raised(monkeypatch):
    def fails(tensor):
        raise BufferError("no memory of it")

    monkeypatch.setattr(show, "view_array", fails)
    with dlw.empty(3) as tensor:
        assert str(tensor).endswith("), not readable: BufferError: no memory of it")

    def full(tensor):
        raise MemoryError

    monkeypatch.setattr(show, "view_array", full)
    with dlw.empty(3) as tensor, pytest.raises(MemoryError):
        str(tensor)
    assert str(tensor) == f"{tensor}" == "Tensor(released)"


def test_notebooks_show_the_elements():
    with dlw.from_dlpack(np.arange(2000.0)) as tensor:
        assert tensor._repr_mimebundle_()["text/plain"] == str(tensor)
        cell = "<pre>[0.000e+00, 1.000e+00, 2.000e+00, ..., 1.997e+03, 1.998e+03,"
        assert cell in tensor._repr_html_()


def test_nothing_stays_alive():
    before = dlw.live_tensors()
    with dlw.from_dlpack(np.zeros((40, 50, 60))) as tensor:
        str(tensor)
        assert dlw.live_tensors() == before + 1


def test_without_numpy(host_python):
    script = """
import sys
sys.modules["numpy"] = None
import array
import dlpack_web as dlw
for kind, values in ("i", range(6)), ("f", [0.1, 2, -3]), ("d", [0.1]), ("H", range(5000)):
    t = dlw.from_buffer(array.array(kind, values))
    print(t)
t = t.reshape((50, 100))
print(t.permute_dims((1, 0)))
print(dlw.from_buffer(b"a").reshape(()))
print(dlw.empty(3, "complex64"))
"""
    command = [host_python, "-c", script]
    done = subprocess.run(
        command, check=True, capture_output=True, timeout=60, text=True
    )
    rows = [
        f"[{x}, {x + 100}, {x + 200}, ..., {x + 4700}, {x + 4800}, {x + 4900}]"
        for x in (0, 1, 2, 97, 98, 99)
    ]
    columns = ", ".join([*rows[:3], "...", *rows[3:]])
    assert done.stdout.splitlines() == [
        "Tensor([0, 1, 2, 3, 4, 5], shape=(6,), dtype='int32', device='cpu')",
        "Tensor([0.1, 2, -3], shape=(3,), dtype='float32', device='cpu')",
        "Tensor([0.1], shape=(1,), dtype='float64', device='cpu')",
        "Tensor([0, 1, 2, ..., 4997, 4998, 4999], shape=(5000,), dtype='uint16', device='cpu')",
        f"Tensor([{columns}], shape=(100, 50), dtype='uint16', device='cpu')",
        "Tensor(97, shape=(), dtype='uint8', device='cpu', read_only)",
        "Tensor(shape=(3,), dtype='complex64', device='cpu'), NumPy is needed to show complex64",
    ]

"""Wasm memory that is full, inside the page: MemoryError, nothing is lost, and all goes on."""

import contextlib
import gc

import numpy as np
import pytest
from gpu_fixtures import live
from js import Object, harness
from pyodide.ffi import JsException, to_js

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("nothing_leaks")

COUNT = 1 << 20
LEAST = 1 << 18  # bytes that are left, for Python itself


@pytest.fixture(scope="module")
def strided():
    """8 MiB that no copy of fits any more."""
    return np.arange(2 * COUNT, dtype="f8")[::2]


@pytest.fixture(scope="module")
def arrays():
    """Arrays of JavaScript's own."""
    return harness.context.library, to_js(np.zeros(1)).constructor.new(COUNT)


@pytest.fixture
def full(strided, arrays):
    """Takes all of wasm's memory but a little, and gives it back."""
    taken, size = [], 1 << 29
    while size > LEAST:
        try:
            taken.append(np.empty(size, np.uint8))
        except MemoryError:
            size //= 2
    yield
    taken.clear()
    gc.collect()


def make_copy(array):
    return dlw.from_dlpack(array, copy=True)


def make_empty(array):
    return dlw.empty(array.shape, "float64")


def make_packed(array):
    with dlw.from_dlpack(array) as tensor:
        return dlw.from_dlpack(tensor, copy=True)


def make_exported(array):
    with dlw.from_dlpack(array) as tensor:
        return np.from_dlpack(tensor, copy=True)


@pytest.mark.parametrize("make", [make_copy, make_empty, make_packed, make_exported])
def test_python_gets_a_memory_error(make, strided, full):
    before = live()
    for _ in range(3):
        with pytest.raises(MemoryError):
            make(strided)
        assert live() == before


def test_javascript_gets_the_same(full, arrays):
    library, array = arrays
    before = live()
    tensor = library.Tensor.fromTypedArray(array)
    bridge = harness.context.bridge
    for call in (
        bridge.toPython,
        lambda _: bridge.empty(to_js([COUNT]), "float64"),
    ):
        with pytest.raises(JsException, match="memory") as raised:
            call(tensor)
        assert str(raised.value.message)
    with pytest.raises(MemoryError):
        dlw.from_js(tensor)
    with pytest.raises(MemoryError):
        dlw.from_js(array)
    tensor.release()
    assert live() == before


def test_a_strided_tensor_of_javascript_is_left_as_it_was(full, arrays):
    library, array = arrays
    before = live()
    options = to_js(
        {"shape": [COUNT // 2], "strides": [2]}, dict_converter=Object.fromEntries
    )
    tensor = library.Tensor.fromTypedArray(array, options)
    for _ in range(3):
        with pytest.raises(JsException, match="memory"):
            harness.context.bridge.toPython(
                tensor, to_js({"copy": True}, dict_converter=Object.fromEntries)
            )
    assert tensor.released is False
    tensor.release()
    assert live() == before


def test_all_goes_on(strided):
    with contextlib.ExitStack() as stack:
        for make in (make_copy, make_empty, make_packed):
            stack.enter_context(make(strided))
        assert stack.enter_context(make_copy(strided)).numpy()[3] == 6

"""Their array, our tensor, their array: one memory all the way (rules 41, 89, 120).

What came without a word about writing, as from DLPack before 1.0, is read-only to us and
goes out as it came.
"""

import gc

import numpy as np
import pytest
from frameworks import ALL, TITLE
from old_torch import OldTorch

import dlpack_web as dlw

KINDS = [*ALL, OldTorch]

BETWEEN = {
    "as it is": lambda t: t,
    "again": dlw.from_dlpack,
    "reshape": lambda t: t.reshape((3, 2)),
    "reshape to one axis": lambda t: t.reshape(-1),
    "all of it": lambda t: t[...],
    "its first row": lambda t: t[:1],
    "a new axis": lambda t: t[None],
    "permute_dims": lambda t: t.permute_dims((0, 1)),
    "to_device": lambda t: t.to_device("cpu"),
}


@pytest.fixture(params=KINDS, ids=TITLE)
def framework(request, loaded, tmp_path_factory):
    """As of conftest.py, and the stand-in."""
    kind = request.param
    if kind not in loaded:
        loaded[kind] = kind.load(tmp_path_factory.mktemp("framework"))
    return loaded[kind]


@pytest.fixture
def array(framework):
    return framework.zeros((2, 3), "float32")


@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN.keys())
def test_their_array_comes_back(framework, array, between):
    with dlw.from_dlpack(array) as tensor:
        view = between(tensor)
        back = framework.from_dlpack(view)
        shared = framework.address(back) == framework.address(array)
        assert shared is framework.shares
        assert tuple(np.shape(framework.numpy(back))) == view.shape
        view.release()


def test_rows_behind_the_first_come_back(framework, array):
    """Of memory that is not aligned as JAX wants it: that copies."""
    expected = framework.layouts.get("unaligned", "shared")
    with dlw.from_dlpack(array) as tensor, tensor[1:] as row:
        back = framework.from_dlpack(row)
        shared = framework.address(back) == framework.address(array) + 12
        assert shared is (expected == "shared")
        assert framework.numpy(back).tolist() == [[0, 0, 0]]


def test_their_array_comes_back_after_we_let_go(framework, array, note):
    place = framework.address(array)
    with dlw.from_dlpack(array) as tensor, tensor.reshape(6) as view:
        back = framework.from_dlpack(view)
    assert tensor.released
    assert view.released
    del array
    others = [framework.zeros((2, 3), "float32") for _ in range(8)]
    shared = framework.address(back) == place
    assert shared is framework.shares
    if shared:
        assert place not in [framework.address(other) for other in others]
    assert framework.numpy(back).tolist() == [0] * 6
    if isinstance(framework, OldTorch):
        return
    note(framework, "summary", "there and back", "shared" if shared else "copied")


def test_nothing_is_left_of_it(framework, array):
    gc.collect()
    live = dlw.live_tensors()
    for _ in range(100):
        with dlw.from_dlpack(array) as tensor, tensor[...] as view:
            framework.from_dlpack(view)
    if framework.lazy:
        gc.collect()
    assert dlw.live_tensors() == live

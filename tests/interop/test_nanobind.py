"""What only C++ bindings do: compute on our memory, refuse by signature, own memory."""

import numpy as np
import pytest
from frameworks import TITLE, Nanobind, aligned

import dlpack_web as dlw

pytestmark = pytest.mark.parametrize("framework", [Nanobind], indirect=True, ids=TITLE)


@pytest.fixture
def extension(framework):
    return framework.lib


def matrix():
    return aligned(np.arange(6, dtype=np.float32).reshape(2, 3))


def test_cpp_reads_strided_and_read_only_memory(extension):
    values = matrix()
    values.flags.writeable = False
    for view in (values, values.T, values[::-1, ::2]):
        with dlw.from_dlpack(view) as tensor:
            assert extension.sum(tensor) == view.sum()


def test_cpp_writes_into_our_memory(extension):
    values = matrix()
    with dlw.from_dlpack(values) as tensor:
        extension.double_it(tensor)
    assert values.tolist() == [[0, 2, 4], [6, 8, 10]]


def test_signature_refuses_what_it_does_not_take(extension):
    values = matrix()
    read_only = values.copy()
    read_only.flags.writeable = False
    for wrong in (values.T, values.reshape(-1), read_only):
        with dlw.from_dlpack(wrong) as tensor, pytest.raises(TypeError):
            extension.double_it(tensor)


def test_cpp_memory_is_freed_with_our_last_hold(extension):
    before = extension.freed()
    tensor = dlw.from_dlpack(extension.zeros(2, 3))
    array = tensor.numpy()
    tensor.release()
    assert extension.freed() == before
    assert array.tolist() == [[0] * 3] * 2
    del array, tensor
    assert extension.freed() == before + 1


def test_const_arrays_are_asked_for_as_nanobind_asks(extension):
    """nanobind 2.13 and newer ask for a legacy capsule first where the signature is const,
    and for a versioned one where that is refused: read-only memory of ours takes two
    calls, writable memory one."""
    values = matrix()
    read_only = values.copy()
    read_only.flags.writeable = False
    asked = []

    class Recorder:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, **keywords):
            asked.append(keywords.get("max_version"))
            return self.tensor.__dlpack__(**keywords)

    for array, versions in ((values, [None]), (read_only, [None, (1, 1)])):
        with dlw.from_dlpack(array) as tensor:
            assert extension.sum(Recorder(tensor)) == array.sum()
            assert asked == versions
        asked.clear()

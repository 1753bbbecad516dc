"""A Tensor where libraries want an array: the same as with the ndarray, or an error."""

import array_calls
import pytest

# Warnings that libraries give of themselves, with ndarrays too.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    ("library", "expression", "expected"),
    [
        pytest.param(library, *call, id=f"{library}: {call[0]}")
        for library in array_calls.CALLS
        for call in array_calls.calls(library)
    ],
)
def test_a_tensor_is_the_array_or_an_error(library, expression, expected):
    pytest.importorskip(library, reason=f"{library} is not installed")
    modules = array_calls.modules(library)
    array_calls.run(modules, expression, expected)
    if library == "matplotlib":
        modules["plt"].close("all")

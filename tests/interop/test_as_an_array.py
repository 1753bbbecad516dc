"""A Tensor where libraries want an array: the same as with the ndarray, or an error."""

import array_runs
import pytest
from array_calls import CALLS

# Warnings that libraries give of themselves, with ndarrays too.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(("library", "expression", "expected"), array_runs.calls(CALLS))
def test_a_tensor_is_the_array_or_an_error(
    library, expression, expected, tmp_path_factory
):
    pytest.importorskip(library, reason=f"{library} is not installed")
    folder = tmp_path_factory.getbasetemp()
    array_runs.run(array_runs.modules(library, folder), expression, expected)

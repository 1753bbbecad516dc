"""How blocking Python waits for JavaScript, inside the page."""

import pytest
from pyodide.ffi import JsException, create_proxy, to_js

from dlpack_web import _core

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")


def test_a_number_that_is_no_promises_is_refused():
    for number in (0, 123_456_789):
        with pytest.raises(
            JsException, match=f"waits for {number}, which is not a promise"
        ):
            _core._wait(number)


def test_below_frames_of_javascript_python_cannot_wait():
    seen = []

    def visit(*_):
        try:
            _core._wait(1)
        except RuntimeError as error:
            seen.append(str(error))

    visitor = create_proxy(visit)
    to_js([1]).forEach(visitor)
    visitor.destroy()
    assert seen == ["Python cannot wait here: that needs JSPI"]

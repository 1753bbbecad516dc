"""What importing dlpack_web.widget raises where it cannot work."""

import sys

import pytest


def test_the_error_says_what_to_do():
    in_page = sys.platform == "emscripten"
    hint = "webgpu.request_device" if in_page else r"pip install 'dlpack-web\[widget\]'"
    with pytest.raises(ImportError, match=hint) as caught:
        import dlpack_web.widget  # noqa: F401
    assert caught.value.name == ("dlpack_web.widget" if in_page else "anywidget")

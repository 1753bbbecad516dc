"""What importing dlpack_web_page.widget raises where it cannot work."""

import sys

import pytest


def test_the_error_says_what_to_do():
    in_page = sys.platform == "emscripten"
    hint = "webgpu.request_device" if in_page else "pip install anywidget"
    with pytest.raises(ImportError, match=hint) as caught:
        import dlpack_web_page.widget  # noqa: F401
    assert caught.value.name == ("dlpack_web_page.widget" if in_page else "anywidget")

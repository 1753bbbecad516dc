"""The caller of a function is the nearest frame outside of this package."""

from types import FunctionType

import pytest

from dlpack_web._backends import calls


@pytest.mark.parametrize(
    ("package", "ours"),
    [
        ("dlpack_web", True),
        ("dlpack_web._layout", True),
        ("dlpack_web.of.tomorrow", True),
        ("dlpack_web_beside.of_it", True),  # a package beside ours
        ("dlpack_webs", False),
        ("user", False),
        (None, False),
    ],
)
def test_the_caller_is_the_nearest_frame_that_is_not_ours(package, ours):
    def user():
        return outer(calls.calling)

    code = (lambda call: call()).__code__
    outer = FunctionType(code, {"__package__": package})
    assert user().code is (user.__code__ if ours else code)
    assert outer(user).code is (user.__code__ if ours else code)

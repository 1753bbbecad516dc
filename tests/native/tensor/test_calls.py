"""The caller of a function is the nearest frame outside of this package."""

import pkgutil
from types import FunctionType

import dlpack_web as dlw
from dlpack_web._backends import calls


def test_every_package_of_ours_is_known():
    modules = pkgutil.walk_packages(dlw.__path__, "dlpack_web.", lambda _: None)
    rooms = {module.name for module in modules if module.ispkg}
    # The wheel of Pyodide lacks them.
    lacking = {"_backends.desktop", "_backends.model", "_page"}
    missing = {f"dlpack_web.{name}" for name in lacking}
    assert rooms | {"dlpack_web"} | missing == calls._OURS


def test_the_caller_is_the_nearest_frame_that_is_not_ours():
    ours = {"__package__": "dlpack_web._layout"}
    outer = FunctionType((lambda call: call()).__code__, ours)

    def user():
        return outer(calls.calling)

    assert calls.calling().code.co_name.startswith("test_the_caller")
    assert user().code is user.__code__
    assert outer(user).code is user.__code__

"""The caller of a function is the nearest frame outside of this package."""

from types import FunctionType

from dlpack_web._backends import calls


def test_our_packages_are_known_by_their_names():
    for name in "dlpack_web", "dlpack_web._kernels", "dlpack_web.one.to.come":
        assert calls._OURS[name]
    for name in None, "", "dlpack_webs", "numpy", "my.dlpack_web":
        assert not calls._OURS[name]


def test_the_caller_is_the_nearest_frame_that_is_not_ours():
    ours = {"__package__": "dlpack_web._layout"}
    outer = FunctionType((lambda call: call()).__code__, ours)

    def user():
        return outer(calls.calling)

    assert calls.calling().code.co_name.startswith("test_the_caller")
    assert user().code is user.__code__
    assert outer(user).code is user.__code__

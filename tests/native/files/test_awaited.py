"""open() and save() without `await` say so."""

import asyncio
import inspect

import pytest

import dlpack_web as dlw


@pytest.mark.parametrize(
    ("call", "state", "way"),
    [
        (lambda: dlw.open("a.npy"), "nothing is opened", "dlw.open(…)"),
        (lambda: dlw.save("a.npy", [1]), "nothing is saved", "dlw.save(…)"),
    ],
    ids=["open", "save"],
)
def test_open_and_save_have_to_be_awaited(call, state, way):
    awaitable = call()
    with pytest.raises(AttributeError) as caught:
        _ = awaitable.shape
    assert str(caught.value) == (
        f"{state} yet, so there is no 'shape': use `await {way}`"
    )
    with pytest.raises(TypeError) as told:
        awaitable[0]
    assert str(told.value) == f"{state} yet: use `await {way}`"
    assert repr(awaitable) == f"<awaitable of {way}: {state} before `await {way}`>"
    assert asyncio.iscoroutine(awaitable)
    awaitable.close()


def test_open_and_save_keep_their_names():
    assert (dlw.open.__name__, dlw.save.__name__) == ("open", "save")
    assert "source" in inspect.signature(dlw.open).parameters

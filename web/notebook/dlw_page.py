"""What the notebook page has for Python: sliders.

>>> from dlw_page import interact, slider
>>> gain = slider(0, 2, value=1, label="gain")  # shown by the cell; gain.value is where it stands
>>> interact(lambda gain: gain**2, gain=(0.0, 2.0))
"""

import asyncio
import inspect
import itertools
import sys
from collections.abc import Callable
from typing import Any

from IPython import get_ipython
from IPython.display import display
from IPython.utils.capture import capture_output

__all__ = ["Slider", "interact", "slider"]

SLIDER = "application/vnd.dlpack-web.slider+json"
_numbers = itertools.count(1)
_sliders: "dict[int, Slider]" = {}


class Slider:
    """A number between two limits, which the reader moves with a slider.

    minimum, maximum, step: if they are ints, so is the value; the default step of a
    float is a hundredth of the range. on_change: called with the value after each move,
    one call at a time; may be async.
    """

    def __init__(
        self,
        minimum: float,
        maximum: float,
        *,
        value: float | None = None,
        step: float | None = None,
        label: str = "",
        on_change: Callable[[float], Any] | None = None,
    ) -> None:
        if not minimum < maximum:
            raise ValueError(
                f"a slider from {minimum} to {maximum}: the minimum must be less than the maximum"
            )
        ints = all(isinstance(each, int) for each in (minimum, maximum, step or 0))
        self.minimum, self.maximum = minimum, maximum
        self.step = step or (1 if ints else (maximum - minimum) / 100)
        if self.step < 0:
            raise ValueError(f"step must be more than 0, not {step}")
        self._type = int if ints else float
        self.value = self._fit(minimum if value is None else value)
        self.label, self.on_change = label, on_change
        self._calling = self._again = False
        self._id = next(_numbers)
        _sliders[self._id] = self

    def __repr__(self) -> str:
        return f"slider {self.label or self._id}: {self.value}"

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        facts = {"id": self._id, "label": self.label, "value": self.value}
        facts |= {"min": self.minimum, "max": self.maximum, "step": self.step}
        return {"text/plain": repr(self), SLIDER: facts}

    def _fit(self, value: float) -> float:
        return self._type(min(max(value, self.minimum), self.maximum))

    def _moved(self, value: float) -> None:
        """Called by the page. Of several moves during a call, only the last counts."""
        self.value = self._fit(value)
        if self.on_change is None:
            return
        self._again = True
        if not self._calling:
            self._calling = True
            task = asyncio.ensure_future(self._call())
            self._task = task  # otherwise it might be collected

    async def _call(self) -> None:
        try:
            while self._again:
                self._again = False
                result = self.on_change(self.value)  # type: ignore[misc]
                if inspect.isawaitable(result):
                    await result
        except Exception:  # noqa: BLE001 - the reader's error; it is shown
            get_ipython().showtraceback()
        finally:
            self._calling = False


slider = Slider


def moved(number: int, value: float) -> None:
    """Called by the page's worker; sliders of an earlier Python are unknown here."""
    if found := _sliders.get(number):
        found._moved(value)


def interact(function: Callable[..., Any], **sliders: Any) -> Any:
    """Shows the result of function(name=value, ...) and the figures that it makes, and
    replaces them after each move of a slider.

    sliders: a Slider for each parameter, or (minimum, maximum) or (minimum, maximum, step).
    An async function is awaited: `await interact(...)`.
    """
    made = {
        name: each if isinstance(each, Slider) else Slider(*each[:2], step=_step(each))
        for name, each in sliders.items()
    }
    for name, each in made.items():
        each.label = each.label or name
        each.on_change = lambda _: show()
        display(each)
    outputs = _Outputs()

    def show() -> Any:
        before = _figures()
        with capture_output(stdout=False, stderr=False) as captured:
            result = function(**{name: each.value for name, each in made.items()})
            if not inspect.isawaitable(result):
                _display(result, before)
        if inspect.isawaitable(result):
            return finish(result, before)
        outputs.replace(captured.outputs)
        return None

    async def finish(result: Any, before: set[int]) -> None:
        """What the function itself displays while it awaits goes to its cell."""
        found = await result
        with capture_output(stdout=False, stderr=False) as captured:
            _display(found, before)
        outputs.replace(captured.outputs)

    return show()


class _Outputs:
    """The outputs of a call, in the place of those of the call before."""

    def __init__(self) -> None:
        self._handles: list[Any] = []

    def replace(self, found: list[Any]) -> None:
        empty = len(self._handles) - len(found)
        bundles = [(each.data, each.metadata) for each in found]
        bundles += [({"text/plain": ""}, {})] * empty
        for i, (data, metadata) in enumerate(bundles):
            if i < len(self._handles):
                self._handles[i].update(data, metadata=metadata, raw=True)
            else:
                handle = display(data, metadata=metadata, raw=True, display_id=True)
                self._handles.append(handle)


def _figures() -> set[int]:
    """The numbers of matplotlib's open figures."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    return set(pyplot.get_fignums()) if pyplot else set()


def _display(result: Any, before: set[int]) -> None:
    """Displays the figures that were not open before, and closes them, and the result."""
    for number in sorted(_figures() - before):
        pyplot = sys.modules["matplotlib.pyplot"]
        figure = pyplot.figure(number)
        if figure is not result:
            display(figure)
        pyplot.close(figure)
    if result is not None:
        display(result)


def _step(given: Any) -> float | None:
    return given[2] if len(given) > 2 else None

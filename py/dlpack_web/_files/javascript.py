"""Files that JavaScript opens, reads and writes."""

from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._backends import javascript


class OpenFile:
    """JavaScript's TensorFile; closed when this is collected."""

    def __init__(self, kept: "javascript.Kept[Any]", file: Any) -> None:
        self._kept, self.js = kept, file
        facts = javascript.invoke(javascript.calls().files.factsOf, file)
        self.name = facts.name
        self.metadata: dict[str, str] = dict(facts.metadata.to_py())
        self.infos: list[tuple[str, str, Sequence[int], int, str]] = facts.infos.to_py()

    def close(self) -> None:
        self.js.close()


class Opening:
    """One load by JavaScript, which reports its progress to a Python function.
    Cancelling the wait aborts it."""

    def __init__(self, progress: Callable[[int, int | None], object] | None) -> None:
        self._progress = progress
        self._raised: BaseException | None = None

    def _told(self, loaded: int, total: int | None) -> None:
        assert self._progress is not None
        try:
            self._progress(loaded, total)
        except BaseException as error:
            self._raised = error
            raise

    async def _finish(
        self, function: Any, *args: Any
    ) -> "tuple[javascript.Kept[Any], Any]":
        told = None if self._progress is None else javascript.callback(self._told)
        try:
            kept = javascript.Kept(function, *args, told)
            try:
                return kept, await javascript.finish(kept.js.promise)
            except BaseException:
                kept.js.release()  # aborts the load of a cancelled task
                if self._raised is not None:
                    raise self._raised from None
                raise
        finally:
            if told is not None:
                told.destroy()

    async def open(
        self,
        source: Any,
        format: str | None,
        shape: Sequence[int] | None,
        device_id: int,
        dtype: str | None,
    ) -> "_core.Tensor | OpenFile":
        wanted = javascript.options({"format": format, "dtype": dtype, "shape": shape})
        args = source, device_id, wanted
        kept, found = await self._finish(javascript.calls().files.open, *args)
        if hasattr(found, "names"):
            return OpenFile(kept, found)
        return javascript.receive(javascript.calls().tensors.fromJs, found)

    async def load(
        self, file: OpenFile, name: str, device_id: int, dtype: str | None
    ) -> _core.Tensor:
        args = file.js, name, device_id, javascript.options({"dtype": dtype})
        _, found = await self._finish(javascript.calls().files.load, *args)
        return javascript.receive(javascript.calls().tensors.fromJs, found)


async def save(
    target: Any, tensors: Any, format: str, metadata: dict[str, str]
) -> None:
    """Lets JavaScript write tensors to one of its streams or files."""
    wanted = javascript.options({"format": format, "metadata": metadata})
    names = javascript.js_list(tensors)
    kept = javascript.Kept(
        javascript.calls().files.save, target, names, wanted, *map(id, tensors.values())
    )
    try:
        await javascript.finish(kept.js.promise)
    finally:
        kept.js.release()

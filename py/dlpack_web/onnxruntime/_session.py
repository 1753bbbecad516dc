"""InferenceSession over JavaScript's Session (js/src/onnxruntime/sessions.ts)."""

import re
import warnings
from asyncio import ensure_future
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np

from .._backends import browser
from .._backends.browser import seam
from .._layout.words import type_of
from .._tensor.device import Device, first_device, webgpu_device
from .._tensor.making import empty
from .._tensor.tensor import Tensor
from ._binding import IOBinding
from ._feeds import Feeds, NodeArg, node_arg, shape_of
from ._library import get_available_providers, library, was_said
from ._models import ModelMetadata, model_of
from ._options import (
    CPU_PROVIDER,
    Given,
    Providers,
    ProvidersError,
    RunOptions,
    SessionOptions,
)
from ._state import (
    Fail,
    InvalidArgument,
    InvalidGraph,
    RuntimeException,
    detail_of,
    invalid,
    translated,
    worded,
)
from ._state import NotImplemented as NotThere
from ._types import dtype_meant
from ._values import OrtValue, array_of

# Where an output goes, to JavaScript.
TO_CPU, ON_DEVICE = 0, 1


class InferenceSession:
    """A model, ready to run: onnxruntime's class, over onnxruntime-web.

    path_or_bytes: a file of Pyodide's, the bytes of a model, or a URL; weights in files
    beside it are found. providers: "WebGPUExecutionProvider", "WasmExecutionProvider" (or
    onnxruntime's "CPUExecutionProvider"), the first that works; default: all of them. The
    first may be `(name, {"device": device})` for a certain GPUDevice. Where all are of the CPU,
    onnxruntime-web's build without WebGPU is loaded, which has more operators and dtypes.

    The constructor waits, which needs JSPI; where Python cannot wait,
    `await InferenceSession.create(...)` is the same. The model's bytes are kept, as
    onnxruntime does. Exceptions are onnxruntime's.

    >>> from dlpack_web import onnxruntime as ort
    >>> session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    >>> session.run(None, {"x": np.arange(3, dtype="float32")})
    [array([0., 2., 4.], dtype=float32)]
    """

    def __init__(
        self,
        path_or_bytes: Any,
        sess_options: SessionOptions | None = None,
        providers: Given = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        if not seam.can_block():
            raise RuntimeError(
                "Python cannot wait here for a model to be loaded (that needs JSPI and an "
                "entry through async Python): use `await InferenceSession.create(...)`"
            )
        opening = self._open(path_or_bytes, sess_options, providers, provider_options)
        seam.block_on(opening)

    @classmethod
    async def create(
        cls,
        path_or_bytes: Any,
        sess_options: SessionOptions | None = None,
        providers: Given = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> Self:
        """The same as `InferenceSession(...)`, to be awaited: also where Python cannot wait.

        >>> from dlpack_web import onnxruntime as ort
        >>> session = await ort.InferenceSession.create(model)
        >>> [result] = await session.run_async(None, {"x": np.ones(3, "float32")})
        >>> result
        array([2., 2., 2.], dtype=float32)
        """
        made_one = cls.__new__(cls)
        await made_one._open(path_or_bytes, sess_options, providers, provider_options)
        return made_one

    async def _open(
        self,
        source: Any,
        options: SessionOptions | None,
        providers: Given,
        provider_options: Sequence[Mapping[str, Any]] | None,
    ) -> None:
        if options is not None and not isinstance(options, SessionOptions):
            # As natively, where it is looked at without a check.
            raise AttributeError(f"sess_options is a SessionOptions, not {options!r}")
        self._options = options or SessionOptions()
        self._source = source
        try:
            await self._reopen(providers, provider_options)
        except ProvidersError as error:
            # onnxruntime's words, which it prints, too.
            print(f"EP Error {error} when using {providers}")
            print(f"Falling back to ['{CPU_PROVIDER}'] and retrying.")
            await self._reopen([CPU_PROVIDER], None)

    async def _reopen(
        self,
        given: Given,
        provider_options: Sequence[Mapping[str, Any]] | None,
    ) -> None:
        providers = Providers(given, provider_options, get_available_providers())
        try:
            await self._open_with(providers)
        except (BufferError, NotThere, InvalidGraph, Fail) as error:
            # There is no WebGPU after all, or its build lacks an operator.
            others = _instead(providers, error)
            if others is None and isinstance(error, BufferError):
                raise Fail(f"[ONNXRuntimeError] : 1 : FAIL : {error}") from None
            if others is None:
                raise _advised(error, providers) from None
            try:
                await self._open_with(others)
            except (NotThere, InvalidGraph, Fail):
                raise error from None
            warnings.warn(
                f"the session runs on {others.names}, not on WebGPU: {error}",
                stacklevel=2,
            )

    async def _open_with(self, providers: Providers) -> None:
        ort = await library(on_cpu=not providers.on_gpu)
        model, files = model_of(self._source, self._options, ort)
        await self._load(ort, model, files, providers)

    async def _load(
        self, ort: Any, model: Any, files: dict[str, Any], providers: Providers
    ) -> None:
        wanted = self._options._to_js() | {"executionProviders": providers.kinds}
        device = usual = None
        if providers.on_gpu:
            device = providers.device
            usual = _usual_device()
        with translated(BufferError):
            kept = seam.Kept(
                ort.open,
                model,
                seam.options(files),
                seam.options(wanted),
                usual and usual.gpu,
                device and device.gpu,
            )
            await seam.finish(kept.js.ready)
            facts = kept.js.facts.to_py()
            gpu = kept.js.device
            used = webgpu_device(browser.use_device(gpu)) if gpu else None
        self._kept, self._device, self._providers = kept, used, providers
        self._tell(facts)
        # Looked up once: each look makes an object of Python's.
        js = kept.js
        self._runs = _Runs(js.start, js.wait, js.done, js.take, js.strings, js.end)

    def _tell(self, facts: dict[str, Any]) -> None:
        """Keeps what is known of the model."""
        graph = facts["graph"]
        slots = [*graph["inputs"], *graph["outputs"]]
        types = {slot["name"]: slot["type"] for slot in slots}
        self._zipped: dict[str, list[Any]] = {
            name: [int(key) if isinstance(key, int) else key for key in keys]
            for name, keys in facts["zipped"].items()  # ints are JavaScript's BigInts
        }
        self._inputs = [node_arg(slot, types) for slot in facts["inputs"]]
        self._outputs = [
            NodeArg(slot["name"], types[slot["name"]], [])
            if slot["name"] in self._zipped
            else node_arg(slot, types)
            for slot in facts["outputs"]
        ]
        self._overridable = [
            NodeArg(slot["name"], slot["type"], shape_of(slot["shape"]))
            for slot in graph["overridable"]
        ]
        known = {
            key: value for key, value in facts["model"].items() if value is not None
        }
        self._meta = ModelMetadata(**known)
        self._feeds = Feeds(
            self._inputs, self._overridable, self._device, graph["indices"]
        )
        self._places = {arg.name: i for i, arg in enumerate(self._outputs)}
        self._plan_of_all: _Plan | None = None  # what `run` gives by default

    # --- facts ------------------------------------------------------------------------

    def get_inputs(self) -> list[NodeArg]:
        """The inputs: name, type, shape with names for symbolic dimensions."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, likewise."""
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs that have a value in the model. A run that feeds some of them has a session of
        its own, which is loaded with the first such run."""
        return self._overridable

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself."""
        return self._meta

    def get_providers(self) -> list[str]:
        """The providers, by the names that they were asked for by; the CPU is the last."""
        return self._providers.names

    def get_provider_options(self) -> dict[str, dict[str, Any]]:
        """The options of each provider."""
        known = self._providers.options
        # Those of the CPU are taken without effect, and not listed, as natively.
        return {
            name: {} if name == CPU_PROVIDER else known.get(name, {})
            for name in self.get_providers()
        }

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._options

    @property
    def device(self) -> Device | None:
        """The WebGPU device that it runs on; None on the CPU."""
        return self._device

    def disable_fallback(self) -> None:
        """Nothing: sessions never move to another provider by themselves."""

    enable_fallback = disable_fallback

    def set_providers(
        self,
        providers: Given = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Loads the model once more, for other providers. Waits, which needs JSPI; elsewhere
        make another session."""
        if not seam.can_block():
            raise RuntimeError(
                "Python cannot wait here for a model to be loaded: use "
                "`await InferenceSession.create(..., providers=...)`"
            )
        before = self._kept
        seam.block_on(self._reopen(providers, provider_options))
        before.js.release()

    def end_profiling(self) -> str:
        """ "", the name of no file: onnxruntime-web writes no profiles."""
        return ""

    def get_profiling_start_time_ns(self) -> int:
        """0: nothing is profiled."""
        return 0

    def get_tuning_results(self) -> list[Any]:
        """None: kernels of a page are not tuned."""
        return []

    def set_tuning_results(
        self, results: list[Any], *, error_on_invalid: bool = False
    ) -> None:
        """Nothing: kernels of a page are not tuned."""

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Nothing: no graphs are captured."""

    def create_ortvalue_from_shape_and_type(
        self,
        shape: Sequence[int],
        element_type: Any,
        device_type: str,
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:
        """Fresh memory, as `OrtValue.ortvalue_from_shape_and_type` makes it; on the session's
        device where that is WebGPU."""
        if self.place(device_type) == TO_CPU or self._device is None:
            return OrtValue.ortvalue_from_shape_and_type(shape, element_type)
        dtype = dtype_meant(element_type)
        return OrtValue(empty(shape, dtype, device=self._device))

    # --- runs -------------------------------------------------------------------------

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> "list[np.ndarray[Any, Any]]":
        """Results as arrays, in the order of `output_names` (default: all outputs).

        input_feed: for each input an array, a Tensor on the CPU or on the session's device,
        an OrtValue, anything that has `__dlpack__`, or a list. Waits, which needs JSPI;
        elsewhere `await session.run_async(...)`.
        """
        _check_can_wait()
        pending = self._begin(output_names, input_feed, run_options)
        pending.wait()
        return pending.arrays()

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Any, Any, str], object] | None = None,
        user_data: Any = None,
        run_options: RunOptions | None = None,
    ) -> "Awaitable[list[np.ndarray[Any, Any]]]":
        """The same as `run`, to be awaited. The feeds are taken at once, and read when it is
        the run's turn: do not write to them before it is over.

        With a callback it is onnxruntime's: `callback(results, user_data, "")` is called
        when they are there, and with no results and the error's text if that fails. There are
        no threads in a page: where Python can wait, it is called before this returns, so that
        it arrives however the script waits for it.
        """
        if callback is None:
            return self._begin(output_names, input_feed, run_options).arrays_later()
        self._feeds.check_names(input_feed)
        told = self._told(output_names, input_feed, callback, user_data, run_options)
        if not seam.can_block():
            return ensure_future(told)
        return _Arrived(seam.block_on(told))

    async def _told(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Any, Any, str], object],
        user_data: Any,
        run_options: RunOptions | None,
    ) -> "list[np.ndarray[Any, Any]]":
        try:
            pending = self._begin(output_names, input_feed, run_options)
            found = await pending.arrays_later()
        except Exception as error:  # noqa: BLE001 - the callback gets each of them
            callback([], user_data, detail_of(error))
            return []
        callback(found, user_data, "")
        return found

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
        *,
        device_type: str | None = None,
    ) -> list[OrtValue]:
        """Results as OrtValues. device_type: where they are to be, "cpu" or "webgpu";
        default: on the GPU if an input is there. Results that stay on the GPU are neither
        read back nor copied.
        """
        _check_can_wait()
        pending = self._begin_values(
            output_names, input_dict_ort_values, run_options, device_type
        )
        pending.wait()
        return pending.values()

    async def run_with_ort_values_async(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
        *,
        device_type: str | None = None,
    ) -> list[OrtValue]:
        """The same as `run_with_ort_values`, to be awaited."""
        pending = self._begin_values(
            output_names, input_dict_ort_values, run_options, device_type
        )
        await pending.later()
        return pending.values()

    def io_binding(self) -> IOBinding:
        """Inputs and outputs that are bound before a run, and may stay on the GPU."""
        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Runs with what is bound; `iobinding.get_outputs()` are the results."""
        _check_can_wait()
        with _bound():
            pending = self._begin_bound(iobinding, run_options)
            pending.wait()
        iobinding._results = pending.values()

    async def run_with_iobinding_async(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """The same as `run_with_iobinding`, to be awaited."""
        with _bound():
            pending = self._begin_bound(iobinding, run_options)
            await pending.later()
        iobinding._results = pending.values()

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions,
        feed_names: Sequence[str],
        feeds: Sequence[OrtValue],
        fetch_names: Sequence[str],
        fetches: list[OrtValue],
        fetch_devices: Sequence[Any],
    ) -> None:
        """Runs with OrtValues, and appends the results to `fetches`. fetch_devices: an OrtDevice
        for each of them."""
        given = dict(zip(feed_names, feeds, strict=True))
        kinds = {
            "cpu" if each.device_type() == 0 else "webgpu" for each in fetch_devices
        }
        if len(kinds) > 1:
            raise worded(NotThere, "results go to one device: use an IOBinding")
        fetches += self.run_with_ort_values(
            fetch_names, given, run_options, device_type=next(iter(kinds), None)
        )

    def release(self) -> None:
        """Ends the session now, not when it is collected; runs that were begun are done
        first. Runs raise ReleasedError then."""
        self._kept.js.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    # --- how --------------------------------------------------------------------------

    def _begin(
        self,
        names: Sequence[str] | None,
        feeds: Mapping[str, Any],
        options: RunOptions | None,
    ) -> "_Pending":
        self._feeds.check_names(feeds)
        plan = self._plan_of_all
        if names or plan is None:
            plan = self._plan([(i, TO_CPU) for i in self._indices(names)])
            if not names:
                self._plan_of_all = plan
        return self._launch(feeds, plan, options)

    def _begin_values(
        self,
        names: Sequence[str] | None,
        feeds: Mapping[str, OrtValue],
        options: RunOptions | None,
        device_type: str | None,
    ) -> "_Pending":
        self._feeds.check_names(feeds)
        for name, value in feeds.items():
            if not isinstance(value, OrtValue):
                raise AttributeError(  # noqa: TRY004 - onnxruntime's
                    f"input {name} is {type_of(value)}, not an OrtValue: use "
                    "OrtValue.from_dlpack(), or run()"
                )
        if device_type is None:
            kinds = {value.device_name() for value in feeds.values()}
            device_type = "webgpu" if "webgpu" in kinds else "cpu"
        to = self.place(device_type)
        plan = self._plan([(i, to) for i in self._indices(names)])
        return self._launch(feeds, plan, options)

    def _begin_bound(
        self, binding: IOBinding, options: RunOptions | None
    ) -> "_Pending":
        if binding._session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        if not binding._outputs:
            raise RuntimeError(
                "Error in execution: At least one output should be requested."
            )
        missing = self._feeds.missing(binding._inputs)
        if missing:
            raise RuntimeError(f"Error in execution: Missing Input: {missing[0]}")
        self._feeds.check_names(binding._inputs)
        self._indices(list(binding._outputs))
        outputs: list[tuple[int, Any]] = [
            (self._places[name], target) for name, target in binding._outputs.items()
        ]
        plan = self._plan(outputs)
        pending: _Pending = self._launch(binding._inputs, plan, options)
        return pending

    def place(self, device_type: str) -> int:
        """What JavaScript calls a device of outputs."""
        kind = device_type.lower()
        if kind == "cpu":
            return TO_CPU
        if kind not in ("webgpu", "gpu"):
            raise RuntimeError(f"Unsupported device type: {device_type}")
        if self._device is None:
            raise RuntimeError(
                f"this session runs on {self.get_providers()}: outputs cannot be on "
                "WebGPU; make one with providers=['WebGPUExecutionProvider']"
            )
        return ON_DEVICE

    def _indices(self, names: Sequence[str] | None) -> list[int]:
        if not names:
            return list(range(len(self._outputs)))
        if isinstance(names, str):
            raise TypeError(f"output_names is a list of names: [{names!r}]")
        try:
            return [self._places[name] for name in names]
        except (KeyError, TypeError):
            wrong = next(name for name in names if name not in self._places)
            if not isinstance(wrong, str):
                raise TypeError(f"names of outputs are str, not {wrong!r}") from None
            raise invalid(f"Invalid output name:{wrong}") from None

    def _check_output(self, arg: NodeArg) -> None:
        """NotImplemented for what is neither a tensor nor a list of dicts."""
        if arg.type.startswith("tensor(") or arg.name in self._zipped:
            return
        raise worded(
            NotThere,
            f"output {arg.name} is {arg.type}, and onnxruntime-web gives tensors alone: ask "
            "for other outputs by their names",
        )

    def _plan(self, outputs: list[tuple[int, Any]]) -> "_Plan":
        """outputs: number of each, and where it goes: a place, or a Tensor to write to."""
        args = [self._outputs[i] for i, _ in outputs]
        for arg in args:
            self._check_output(arg)
        unique = dict(outputs)
        order = list(unique)
        return _Plan(
            outputs,
            [
                number
                for i, to in unique.items()
                for number in (i, id(to) if isinstance(to, Tensor) else to)
            ],
            [order.index(i) for i, _ in outputs],
            [arg.type == "tensor(string)" for arg in args],
            [self._zipped.get(arg.name) for arg in args],
        )

    def _launch(
        self,
        feeds: Mapping[str, Any],
        plan: "_Plan",
        options: RunOptions | None,
    ) -> "_Pending":
        if options is not None and not isinstance(options, RunOptions):
            raise TypeError(f"run_options is a RunOptions, not {options!r}")
        tensors, strings = self._feeds.collected(feeds)
        numbers: list[int] = []
        for i, tensor in tensors:
            numbers += (i, id(tensor))
        with translated():
            kept = seam.Numbered(
                self._runs.end,
                self._runs.start,
                None if options is None else seam.options(options._to_js()),
                seam.options(strings) if strings else None,
                len(tensors),
                *numbers,
                *plan.numbers,
            )
        return _Pending(self._runs, kept, plan)


class _Plan(NamedTuple):
    """What a run is to give."""

    outputs: list[tuple[int, Any]]  # keeps the Tensors that are written to
    numbers: list[int]  # for JavaScript: of each output, and where it goes
    order: list[int]  # which of those each result is
    are_strings: list[bool]
    zipped: list[list[Any] | None]  # the keys of results that are lists of dicts


class _Runs(NamedTuple):
    """JavaScript's functions for the runs of one session."""

    start: Any
    wait: Any
    done: Any
    take: Any
    strings: Any
    end: Any


def _check_can_wait() -> None:
    if not seam.can_block():
        raise RuntimeError(
            "Python cannot wait for results here (that needs JSPI and an entry through "
            "async Python): use `await session.run_async(...)`"
        )


class _Pending:
    """A run that was begun."""

    def __init__(
        self,
        runs: _Runs,
        kept: seam.Numbered,
        plan: _Plan,
    ) -> None:
        self._runs = runs
        self._kept = kept
        self._plan = plan

    def wait(self) -> None:
        with translated():
            seam.wait_for(self._runs.wait, self._kept.number)

    async def later(self) -> None:
        with translated():
            await seam.finish(self._runs.done(self._kept.number))

    async def arrays_later(self) -> "list[np.ndarray[Any, Any]]":
        await self.later()
        return self.arrays()

    def arrays(self) -> "list[np.ndarray[Any, Any]]":
        found = self._taken()
        arrays = [_view(each) if isinstance(each, Tensor) else each for each in found]
        return [
            array if keys is None else _dicts(keys, array)
            for array, keys in zip(arrays, self._plan.zipped, strict=True)
        ]

    def values(self) -> list[OrtValue]:
        if any(keys is not None for keys in self._plan.zipped):
            raise worded(NotThere, "lists of dicts are no OrtValues here: use run()")
        return [OrtValue(each) for each in self._taken()]

    def _taken(self) -> "list[Tensor | np.ndarray[Any, Any]]":
        """The results, those of strings as arrays; one that was asked for twice is one."""
        number, runs, plan = self._kept.number, self._runs, self._plan
        found: dict[int, Any] = {}
        for i, is_strings in zip(plan.order, plan.are_strings, strict=True):
            if i not in found:
                found[i] = (
                    array_of(runs.strings(number, i))
                    if is_strings
                    else seam.receive(runs.take, number, i)
                )
        self._kept.ended()
        return [found[i] for i in plan.order]


class _Arrived:
    """Results that are there, for those who await them; nobody has to."""

    def __init__(self, results: "list[np.ndarray[Any, Any]]") -> None:
        self._results = results

    def __await__(self) -> "Generator[Any, Any, list[np.ndarray[Any, Any]]]":
        return self._results
        yield  # a generator


def _view(tensor: Tensor) -> "np.ndarray[Any, Any]":
    """The array over a result; NumPy's own way costs less than `numpy()`."""
    try:
        return np.from_dlpack(tensor)
    except (BufferError, RuntimeError):  # of a dtype that NumPy lacks
        return tensor.numpy()


def _dicts(keys: list[Any], rows: "np.ndarray[Any, Any]") -> Any:
    """What ZipMap makes of a row for each key."""
    return [dict(zip(keys, row, strict=True)) for row in rows.tolist()]


@contextmanager
def _bound() -> Iterator[None]:
    """Errors of a run with an IOBinding, as onnxruntime raises those."""
    try:
        yield
    except (Fail, InvalidArgument, RuntimeException, NotThere) as error:
        raise RuntimeError(f"Error in execution: {detail_of(error)}") from None


# What onnxruntime-web says of operators and dtypes that a build lacks.
_LACKING = re.compile(
    "Could not find an implementation|is not a registered function/op|No Op registered"
    r"|Provider type for \w+ node .* is not set"
)


def _instead(providers: Providers, error: Exception) -> Providers | None:
    """The providers to try after those on WebGPU failed; None: there are none."""
    if not providers.on_gpu:
        return None
    if isinstance(error, BufferError):
        return providers.without_gpu()
    lacks = _LACKING.search(str(error)) and not was_said()
    return providers.without_gpu() if lacks else None


def _advised(error: Exception, providers: Providers) -> Exception:
    """The error for what a build lacks, with what helps."""
    if not _LACKING.search(str(error)):
        return error
    if was_said():
        helps = (
            "load() was given this build: ort.wasm.bundle.min.mjs and ort.all have more"
        )
    elif providers.on_gpu:
        helps = "providers=['CPUExecutionProvider'] takes a build that has more"
    else:
        return error
    return type(error)(f"{error}\n{helps}")


def _usual_device() -> Device | None:
    """The device that tensors go to."""
    try:
        return first_device()
    except BufferError:
        return None

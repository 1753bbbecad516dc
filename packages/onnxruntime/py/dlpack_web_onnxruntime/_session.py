"""InferenceSession over JavaScript's Session (js/src/sessions.ts)."""

from asyncio import ensure_future, get_event_loop
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from dlpack_web import Device, empty, internal
from dlpack_web.internal import type_of as kind_of

from . import _javascript as javascript
from ._arrays import dtype_meant
from ._binding import IOBinding
from ._feeds import Feeds, NodeArg, node_arg, shape_of
from ._library import ModelMetadata, Opened, open_model
from ._names import RefusedMethods
from ._options import CPU_PROVIDER, Given, ProvidersError, RunOptions, SessionOptions
from ._runs import (
    ON_DEVICE,
    TO_CPU,
    Outputs,
    Pending,
    Plan,
    Runs,
    bound,
    check_can_wait,
)
from ._state import detail_of, unsupported
from ._values import OrtValue, named_device

if TYPE_CHECKING:
    import numpy as np


class InferenceSession(RefusedMethods):
    """A model, ready to run: onnxruntime's class, over onnxruntime-web.

    The constructor blocks, which needs JSPI; where Python cannot block, use
    `await InferenceSession.create(...)`. The model's bytes are kept, as in onnxruntime.
    Exceptions are onnxruntime's.

    Parameters
    ----------
    path_or_bytes : str, path or bytes
        A file of Pyodide's, the bytes of a model, or a URL, also a relative one that begins
        with / or ./; weights in files beside it are found.
    sess_options : SessionOptions, optional
        Threads, graph optimization and more.
    providers : list, optional
        "WebGPUExecutionProvider", "WasmExecutionProvider" (or onnxruntime's
        "CPUExecutionProvider"), the first that works; default: all of them. The first may be
        `(name, {"device": device})` for a specific GPUDevice. If all are of the CPU,
        onnxruntime-web's build without WebGPU is loaded, which has more operators and dtypes.
    provider_options : list of dict, optional
        The options of each provider.
    **kwargs
        Those of onnxruntime, which have no effect here.

    Examples
    --------
    >>> import dlpack_web_onnxruntime as ort
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
        if not javascript.can_block():
            raise RuntimeError(
                "Python cannot wait here for the model to load (that needs JSPI and a call "
                "from async Python): use `await InferenceSession.create(...)`"
            )
        opening = self._open(path_or_bytes, sess_options, providers, provider_options)
        internal.block_on(opening)

    @classmethod
    async def create(
        cls,
        path_or_bytes: Any,
        sess_options: SessionOptions | None = None,
        providers: Given = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> Self:
        """The same as `InferenceSession(...)`, asynchronously: also where Python cannot block.

        Parameters
        ----------
        path_or_bytes, sess_options, providers, provider_options, **kwargs
            As for `InferenceSession`.

        Examples
        --------
        >>> import dlpack_web_onnxruntime as ort
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
            # As in native onnxruntime, which does not check it.
            raise AttributeError(
                f"sess_options must be a SessionOptions, not {options!r}"
            )
        self._options = options or SessionOptions()
        self._source = source
        try:
            opened = await open_model(
                source, self._options, providers, provider_options
            )
        except ProvidersError as error:
            opened = await open_model(source, self._options, [CPU_PROVIDER], None)
            # onnxruntime prints the same messages, also before an error of the CPU.
            print(f"EP Error {error} when using {providers}")
            print(f"Falling back to ['{CPU_PROVIDER}'] and retrying.")
        self._use(opened)

    def _use(self, opened: Opened) -> None:
        self._kept, self._device, self._providers, facts = opened
        self._tell(facts)
        # Looked up once: each lookup makes a Python object.
        js = self._kept.js
        self._runs = Runs(
            js.start, js.startToWait, js.wait, js.done, js.take, js.strings, js.end
        )

    def _tell(self, facts: dict[str, Any]) -> None:
        """Stores the model's properties."""
        graph = facts["graph"]
        slots = [*graph["inputs"], *graph["outputs"]]
        types = {slot["name"]: slot["type"] for slot in slots}
        zipped: dict[str, list[Any]] = {
            name: [int(key) if isinstance(key, int) else key for key in keys]
            for name, keys in facts["zipped"].items()  # ints are JavaScript's BigInts
        }
        self._inputs = [node_arg(slot, types) for slot in facts["inputs"]]
        outputs = [node_arg(slot, types) for slot in facts["outputs"]]
        self._outputs = Outputs(outputs, zipped, graph["flaw"])
        self._overridable = [
            NodeArg(slot["name"], slot["type"], shape_of(slot["shape"]))
            for slot in graph["overridable"]
        ]
        self._meta = ModelMetadata(**facts["model"])
        self._feeds = Feeds(
            self._inputs,
            self._overridable,
            self._device,
            graph["indices"],
            any(arg.type == "tensor(string)" for arg in outputs),
        )
        self._plan_of_all: Plan | None = None  # for all outputs

    # --- facts ------------------------------------------------------------------------

    def get_inputs(self) -> list[NodeArg]:
        """The inputs: name, type, shape with names for symbolic dimensions."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the same form."""
        return self._outputs.args

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs that have a value in the model. A run that feeds some of them has its
        own session, which the first such run loads."""
        return self._overridable

    def get_modelmeta(self) -> ModelMetadata:
        """The model's own metadata."""
        return self._meta

    def get_providers(self) -> list[str]:
        """The providers, by the names that were requested; the CPU is the last."""
        return self._providers.names

    def get_provider_options(self) -> dict[str, dict[str, Any]]:
        """The options of each provider."""
        known = self._providers.options
        # Options of the CPU have no effect and are not listed, as in native onnxruntime.
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
        """Nothing: sessions never move to another provider automatically."""

    enable_fallback = disable_fallback

    def set_providers(
        self,
        providers: Given = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Loads the model again, for other providers. Blocks, which needs JSPI;
        elsewhere make another session."""
        if not javascript.can_block():
            raise RuntimeError(
                "Python cannot wait here for the model to load: use `await "
                "InferenceSession.create(..., providers=...)`"
            )
        before = self._kept
        opening = open_model(self._source, self._options, providers, provider_options)
        self._use(internal.block_on(opening))
        before.js.release()

    def end_profiling(self) -> str:
        """ "", no file name: onnxruntime-web writes no profiles."""
        return ""

    def get_profiling_start_time_ns(self) -> int:
        """0: nothing is profiled."""
        return 0

    def get_tuning_results(self) -> list[Any]:
        """None: kernels are not tuned in a page."""
        return []

    def set_tuning_results(
        self, results: list[Any], *, error_on_invalid: bool = False
    ) -> None:
        """Nothing: kernels are not tuned in a page."""

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
        """New memory, as from `OrtValue.ortvalue_from_shape_and_type`, but for WebGPU
        on the session's device."""
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
        """Runs the model. Blocks, which needs JSPI; elsewhere use `await session.run_async(...)`.

        Parameters
        ----------
        output_names : list of str or None
            None: all outputs.
        input_feed : dict
            For each input an array, a Tensor on the CPU or on the session's device, an OrtValue,
            any object with `__dlpack__`, or a list.
        run_options : RunOptions, optional
            Logging, and `terminate`.

        Returns
        -------
        list of ndarray
            In the order of `output_names`.
        """
        check_can_wait()
        return self._prepare(output_names, input_feed, run_options).wait().arrays()

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Any, Any, str], object] | None = None,
        user_data: Any = None,
        run_options: RunOptions | None = None,
    ) -> "Awaitable[list[np.ndarray[Any, Any]]]":
        """The same as `run`, asynchronously.

        Parameters
        ----------
        output_names, input_feed, run_options
            As for `run`. The feeds are held at once, but read only when the run starts: do not
            write to them before it ends.
        callback : callable, optional
            As in onnxruntime: `callback(results, user_data, "")`, or, if the run fails, with no
            results and the error's text. A page has no threads: if Python can block, it is called
            before this returns, so it arrives however the script waits for it.
        user_data : object
            For the callback.
        """
        if callback is None:
            pending = self._prepare(output_names, input_feed, run_options)
            return pending.start().arrays_later()
        self._feeds.check_names(input_feed)

        async def report() -> "list[np.ndarray[Any, Any]]":
            try:
                pending = self._prepare(output_names, input_feed, run_options)
                found = await pending.start().arrays_later()
            except Exception as error:  # noqa: BLE001 - all of them go to the callback
                callback([], user_data, detail_of(error))
                return []
            callback(found, user_data, "")
            return found

        if not javascript.can_block():
            return ensure_future(report())
        arrived = get_event_loop().create_future()
        arrived.set_result(internal.block_on(report()))
        return arrived

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
        *,
        device_type: str | None = None,
    ) -> list[OrtValue]:
        """Runs the model with OrtValues.

        Parameters
        ----------
        output_names : list of str or None
            None: all outputs.
        input_dict_ort_values : dict
            An OrtValue for each input.
        run_options : RunOptions, optional
            Logging, and `terminate`.
        device_type : str, optional
            Of the results, "cpu" or "webgpu"; default: the GPU if an input is there.

        Returns
        -------
        list of OrtValue
            Those on the GPU are neither read back nor copied.
        """
        check_can_wait()
        pending = self._prepare_values(
            output_names, input_dict_ort_values, run_options, device_type
        )
        return pending.wait().values()

    async def run_with_ort_values_async(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
        *,
        device_type: str | None = None,
    ) -> list[OrtValue]:
        """The same as `run_with_ort_values`, asynchronously."""
        pending = self._prepare_values(
            output_names, input_dict_ort_values, run_options, device_type
        )
        await pending.start().later()
        return pending.values()

    def io_binding(self) -> IOBinding:
        """Inputs and outputs to bind before a run, which may stay on the GPU."""
        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Runs with a binding; `iobinding.get_outputs()` returns the results."""
        check_can_wait()
        with bound():
            pending = self._prepare_bound(iobinding, run_options).wait()
        iobinding._results = pending.values()

    async def run_with_iobinding_async(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """The same as `run_with_iobinding`, asynchronously."""
        with bound():
            pending = self._prepare_bound(iobinding, run_options).start()
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
        """Runs with OrtValues, and appends the results to `fetches`. fetch_devices: an
        OrtDevice for each result."""
        given = dict(zip(feed_names, feeds, strict=True))
        kinds = {
            "cpu" if each.device_type() == 0 else "webgpu" for each in fetch_devices
        }
        if len(kinds) > 1:
            raise unsupported("all results must be on one device: use an IOBinding")
        fetches += self.run_with_ort_values(
            fetch_names, given, run_options, device_type=next(iter(kinds), None)
        )

    def release(self) -> None:
        """Ends the session now, not when it is collected, but after the runs that have
        started. Later runs raise ReleasedError."""
        self._kept.js.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    # --- implementation ---------------------------------------------------------------

    def _prepare(
        self,
        names: Sequence[str] | None,
        feeds: Mapping[str, Any],
        options: RunOptions | None,
    ) -> Pending:
        self._feeds.check_names(feeds)
        plan = self._plan_of_all
        if names or plan is None:
            plan = self._outputs.plan(
                [(i, TO_CPU) for i in self._outputs.indices(names)]
            )
            if not names:
                self._plan_of_all = plan
        return self._pending(feeds, plan, options)

    def _prepare_values(
        self,
        names: Sequence[str] | None,
        feeds: Mapping[str, OrtValue],
        options: RunOptions | None,
        device_type: str | None,
    ) -> Pending:
        self._feeds.check_names(feeds)
        for name, value in feeds.items():
            if not isinstance(value, OrtValue):
                raise AttributeError(  # noqa: TRY004 - onnxruntime's
                    f"input {name} is {kind_of(value)}, not an OrtValue: use "
                    "OrtValue.from_dlpack(), or run()"
                )
        if device_type is None:
            kinds = {value.device_name() for value in feeds.values()}
            device_type = "webgpu" if "webgpu" in kinds else "cpu"
        to = self.place(device_type)
        plan = self._outputs.plan([(i, to) for i in self._outputs.indices(names)])
        return self._pending(feeds, plan, options)

    def _prepare_bound(self, binding: IOBinding, options: RunOptions | None) -> Pending:
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
        places = self._outputs.indices(list(binding._outputs))
        targets = binding._outputs.values()
        plan = self._outputs.plan([*zip(places, targets, strict=True)])
        pending: Pending = self._pending(binding._inputs, plan, options)
        return pending

    def place(self, device_type: str) -> int:
        """JavaScript's number for a device of outputs."""
        if named_device(device_type) == "cpu":
            return TO_CPU
        if self._device is None:
            raise RuntimeError(
                f"this session runs on {self.get_providers()}: outputs cannot be on WebGPU; "
                "create one with providers=['WebGPUExecutionProvider']"
            )
        return ON_DEVICE

    def _pending(
        self,
        feeds: Mapping[str, Any],
        plan: Plan,
        options: RunOptions | None,
    ) -> Pending:
        if options is not None and not isinstance(options, RunOptions):
            raise TypeError(f"run_options must be a RunOptions, not {options!r}")
        tensors, strings = self._feeds.collected(feeds)
        numbers: list[int] = []
        for i, tensor in tensors:
            numbers += (i, id(tensor))
        given = (
            None if options is None else javascript.options(options._to_js()),
            javascript.options(strings) if strings else None,
            len(tensors),
            *numbers,
            *plan.numbers,
        )
        return Pending(self._runs, plan, tensors, given)

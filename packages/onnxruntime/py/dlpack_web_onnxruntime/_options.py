"""Options of sessions and runs, with onnxruntime's names, for onnxruntime-web."""

import difflib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from inspect import Parameter, Signature
from operator import index
from typing import Any, NoReturn

from dlpack_web import Device
from dlpack_web.internal import CPU, parse_device

from ._arrays import check_texts
from ._names import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
from ._state import unsupported

_LEVELS = {0: "disabled", 1: "basic", 2: "extended", 3: "layout", 99: "all"}
_MODES = {0: "sequential", 1: "parallel"}


class _Option[T]:
    """An option that accepts the same types as in pybind11."""

    def __init__(self, default: T, take: Callable[[Any], T]) -> None:
        self._default, self._take = default, take

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, options: Any, owner: Any = None) -> Any:
        if options is None:
            return self
        return vars(options).get(f"_{self._name}", self._default)

    def __set__(self, options: Any, value: Any) -> None:
        try:
            taken = self._take(value)
        except TypeError as error:
            raise TypeError(f"{self._name} must be {error}, not {value!r}") from None
        vars(options)[f"_{self._name}"] = taken


def _flag(value: Any) -> bool:
    if value is None or hasattr(type(value), "__bool__"):
        return bool(value)
    raise TypeError("True or False")


def _integer(value: Any) -> int:
    if isinstance(value, float) or not hasattr(type(value), "__int__"):
        raise TypeError("an int")
    return int(value)


def _text(value: Any) -> str:
    text = value.decode() if isinstance(value, bytes) else value
    if not isinstance(text, str):
        raise TypeError("a str")
    check_texts([text], "this option")
    return text


def _member[E: IntEnum](kind: type[E]) -> Callable[[Any], E]:
    def take(value: Any) -> E:
        if isinstance(value, kind):
            return value
        article = "an" if kind.__name__[0] in "AEIO" else "a"
        raise TypeError(f"{article} {kind.__name__}")

    return take


def _no_profiles(value: Any) -> bool:
    if _flag(value):
        raise unsupported(
            "onnxruntime-web does not write profiles: use the browser's profiler"
        )
    return False


def _no_file(value: Any) -> str:
    if _text(value):
        raise unsupported(
            "onnxruntime-web does not write optimized models: write the file on the "
            "desktop"
        )
    return ""


class _Options:
    """Rejects unknown names, and cannot be pickled, as in native onnxruntime."""

    log_severity_level = _Option(-1, _integer)
    log_verbosity_level = _Option(0, _integer)
    logid = _Option("", _text)

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def _add_entry(self, key: str, value: str) -> None:
        """Sets one of the options that have only a key, such as "session.…"."""
        self._entries[_entry(key)] = _entry(value)

    def _get_entry(self, key: str) -> str:
        """The value that was set; RuntimeError if none was."""
        try:
            return self._entries[key]
        except KeyError:
            raise RuntimeError(
                f"{type(self).__name__} does not have configuration with key: {key}"
            ) from None

    def _to_js(self, name_of_logid: str) -> dict[str, Any]:
        """The options for onnxruntime-web."""
        found: dict[str, Any] = {}
        if self.log_severity_level >= 0:
            found["logSeverityLevel"] = self.log_severity_level
            found["logVerbosityLevel"] = self.log_verbosity_level
        if self.logid:
            found[name_of_logid] = self.logid
        if self._entries:
            found["extra"] = dict(self._entries)
        return found

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and not hasattr(type(self), name):
            near = difflib.get_close_matches(name, dir(type(self)), 1)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
                + (f": did you mean {near[0]!r}?" if near else ""),
                name=name,
                obj=self,
            )
        super().__setattr__(name, value)


def _entry(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"keys and values of entries must be str, not {value!r}")
    check_texts([value], "an entry")
    return value


def _refused(why: str, *names: str) -> Any:
    """A method without a counterpart in onnxruntime-web. names: of its parameters."""

    def refuse(*args: Any, **options: Any) -> NoReturn:
        raise unsupported(why)

    refuse.__doc__ = f"Raises NotImplemented: {why}."
    parameters = [Parameter(each, _BY_NAME) for each in ("self", *names)]
    vars(refuse)["__signature__"] = Signature(parameters)
    return refuse


_BY_NAME = Parameter.POSITIONAL_OR_KEYWORD
_FOLDER = "session.model_external_initializers_file_folder_path"
_PASS_PROVIDERS = "pass providers=[...] to InferenceSession"


class SessionOptions(_Options):
    """Options of an `InferenceSession`, with onnxruntime's names and defaults.

    Options without a use in a page (numbers of threads, arenas) are stored and ignored;
    those that need files (profiles, optimized models) raise NotImplemented. An unknown
    name raises AttributeError, a value of another type TypeError.
    """

    enable_cpu_mem_arena = _Option(True, _flag)
    enable_mem_pattern = _Option(True, _flag)
    enable_mem_reuse = _Option(True, _flag)
    enable_profiling = _Option(False, _no_profiles)
    execution_mode = _Option(ExecutionMode.ORT_SEQUENTIAL, _member(ExecutionMode))
    execution_order = _Option(ExecutionOrder.DEFAULT, _member(ExecutionOrder))
    graph_optimization_level = _Option(
        GraphOptimizationLevel.ORT_ENABLE_ALL, _member(GraphOptimizationLevel)
    )
    inter_op_num_threads = _Option(0, _integer)
    intra_op_num_threads = _Option(0, _integer)
    optimized_model_filepath = _Option("", _no_file)
    profile_file_prefix = _Option("onnxruntime_profile_", _text)
    use_deterministic_compute = _Option(False, _flag)
    use_per_session_threads = _Option(True, _flag)

    def __init__(self) -> None:
        super().__init__()
        self._dimensions: dict[str, int] = {}
        self._files: dict[str, bytes] = {}

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Fixes a symbolic dimension, such as "batch"."""
        if not isinstance(name, str) or not hasattr(type(value), "__index__"):
            raise TypeError(
                f"a name (str) and an extent (int) are needed, not {name!r} and {value!r}"
            )
        check_texts([name], "the name of a dimension")
        self._dimensions[name] = int(value)

    add_free_dimension_override_by_denotation = _refused(
        "onnxruntime-web fixes dimensions only by name: use "
        "add_free_dimension_override_by_name()",
        "name",
        "value",
    )
    add_session_config_entry = _Options._add_entry
    get_session_config_entry = _Options._get_entry

    def add_external_initializers_from_files_in_memory(
        self,
        file_names: Sequence[str],
        buffers: Sequence[bytes],
        lengths: Sequence[int],
    ) -> None:
        """Passes the contents of files with the model's weights, by the model's names
        for them; they are copied. Files beside the model are found without this, and
        those of a model given as bytes in the folder of the entry
        "session.model_external_initializers_file_folder_path"."""
        if isinstance(file_names, (str, bytes)):
            raise TypeError(f"file_names must be a list of names: [{file_names!r}]")
        if not len(file_names) == len(buffers) == len(lengths):
            raise RuntimeError(
                "Expecting file names, buffers and lengths to be of equal length"
            )
        files = dict(self._files)
        for given, data, length in zip(file_names, buffers, lengths, strict=True):
            name, view = _text(given), memoryview(data)
            if index(length) < 0 or not view.c_contiguous or name in files:
                raise RuntimeError(
                    f"file {name!r} must be given once, as contiguous bytes with their "
                    "number"
                )
            files[name] = view.tobytes()[:length]
        self._files = files

    @property
    def _folder(self) -> str | None:
        """The folder of the weights' files, if it is not the model's."""
        return self._entries.get(_FOLDER)

    def has_providers(self) -> bool:
        """False: pass providers to the session."""
        return False

    add_initializer = add_external_initializers = _refused(
        "onnxruntime-web reads initializers only from the model's files: feed an "
        "input, or use add_external_initializers_from_files_in_memory()",
        "name",
        "ortvalue",
    )
    add_provider = _refused(_PASS_PROVIDERS, "name", "options")
    add_provider_for_devices = _refused(_PASS_PROVIDERS, "devices", "options")
    set_provider_selection_policy_delegate = _refused(_PASS_PROVIDERS, "delegate")
    set_load_cancellation_flag = _refused(
        "loading cannot be cancelled: release() the session", "cancel"
    )
    set_ep_context_data_read_func = _refused(
        "onnxruntime-web does not read compiled models", "function"
    )

    def set_provider_selection_policy(self, policy: Any) -> None:
        """Nothing: a page has one device of each kind, and `providers=` chooses."""

    def register_custom_ops_library(self, path: str) -> None:
        """Raises NotImplemented: a page cannot load native libraries."""
        raise unsupported(f"a page cannot load native libraries such as {path}")

    def clear_ep_context_data_read_func(self) -> None:
        """Nothing: there is none."""

    def _to_js(self, name_of_logid: str = "logId") -> dict[str, Any]:
        found = super()._to_js(name_of_logid) | {
            "graphOptimizationLevel": _LEVELS[self.graph_optimization_level],
            "executionMode": _MODES[self.execution_mode],
        }
        if not self.enable_mem_pattern:
            found["enableMemPattern"] = False
        if self._folder is not None:  # its files are passed with the model
            del found["extra"][_FOLDER]
        if self._dimensions:
            found["freeDimensionOverrides"] = dict(self._dimensions)
        return found


class RunOptions(_Options):
    """Options of one run, with onnxruntime's names and defaults."""

    terminate = _Option(False, _flag)
    only_execute_path_to_fetches = _Option(False, _flag)
    add_active_adapter = _refused(
        "onnxruntime-web does not support LoRA adapters", "adapter"
    )
    add_run_config_entry = _Options._add_entry
    get_run_config_entry = _Options._get_entry

    def _to_js(self, name_of_logid: str = "tag") -> dict[str, Any]:
        return super()._to_js(name_of_logid) | {"terminate": self.terminate}


# --- providers ----------------------------------------------------------------------------

WEBGPU = "WebGPUExecutionProvider"
WASM = "WasmExecutionProvider"
CPU_PROVIDER = "CPUExecutionProvider"
# onnxruntime-web's names for them. onnxruntime itself writes WebGpu.
_KINDS = {
    WEBGPU: "webgpu",
    "WebGpuExecutionProvider": "webgpu",
    "JsExecutionProvider": "webgpu",
    WASM: "wasm",
    CPU_PROVIDER: "wasm",
}

Given = Sequence[str | tuple[str, Mapping[str, Any]]] | None


class ProvidersError(ValueError):
    """Invalid providers or provider options."""


class Providers:
    """The providers of a session: names and options in order."""

    def __init__(
        self,
        given: Given,
        options: Sequence[Mapping[str, Any]] | None,
        there: list[str],
    ) -> None:
        self.asked = bool(given)
        pairs = list(_pairs(given or there, options))
        self.options: dict[str, dict[str, Any]] = {}
        for name, values in pairs:
            if name not in _KINDS or (_KINDS[name] == "webgpu" and WEBGPU not in there):
                warnings.warn(
                    f"Specified provider '{name}' is not in available provider names."
                    f"Available providers: '{', '.join(there)}'",
                    stacklevel=4,
                )
            elif name in self.options:
                warnings.warn(
                    f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4
                )
            else:
                self.options[name] = dict(values)
        if not self.options:
            self.options[CPU_PROVIDER] = {}

    @property
    def on_gpu(self) -> bool:
        """Whether the session may run on WebGPU."""
        return "webgpu" in self.kinds

    @property
    def kinds(self) -> list[str]:
        """onnxruntime-web's names."""
        return list(dict.fromkeys(_KINDS[name] for name in self.options))

    @property
    def names(self) -> list[str]:
        """The result of `get_providers`: the CPU is always there, and last."""
        names = list(self.options)
        return names if {WASM, CPU_PROVIDER} & set(names) else [*names, WASM]

    @property
    def device(self) -> Device | None:
        """The device in the options of the provider, if any."""
        for name, values in self.options.items():
            if _KINDS[name] == "webgpu" and "device" in values:
                found = parse_device(values["device"])
                if found == CPU:
                    raise ValueError("WebGPU does not run on the device 'cpu'")
                return found
        return None

    def without_gpu(self) -> "Providers | None":
        """The providers without those on WebGPU; None if there are none of these, or no
        others."""
        names = [name for name in self.options if _KINDS[name] != "webgpu"]
        if not self.on_gpu or (self.asked and not names):
            return None
        return Providers(names or [WASM], None, [WASM, CPU_PROVIDER])


def _pairs(
    given: Iterable[Any], options: Sequence[Mapping[str, Any]] | None
) -> Iterable[tuple[str, Mapping[str, Any]]]:
    if isinstance(given, str):
        warnings.warn(f"providers must be a list of names: [{given!r}]", stacklevel=5)
        given = [given]
    listed = list(given)
    for one in listed:
        is_pair = isinstance(one, tuple) and len(one) == 2
        name, values = one if is_pair else (one, {})
        if not isinstance(name, str) or not isinstance(values, Mapping):
            raise ProvidersError(
                "'providers' values must be either strings or (string, dict) tuples."
            )
    if options is not None and len(options) != len(listed):
        raise ProvidersError(
            "'providers' and 'provider_options' should be the same length if both are "
            "given."
        )
    if not all(isinstance(each, Mapping) for each in options or ()):
        raise ProvidersError("'provider_options' values must be dicts.")
    for i, one in enumerate(listed):
        if isinstance(one, tuple):
            yield one
        else:
            yield one, {} if options is None else options[i]

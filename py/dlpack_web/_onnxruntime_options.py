"""Options of sessions and runs, by onnxruntime's names, as onnxruntime-web takes them."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from ._device import CPU, Device, parse_device
from ._onnxruntime_state import NotImplemented as NotThere
from ._onnxruntime_state import worded


class GraphOptimizationLevel(IntEnum):
    """How far a graph is rewritten before it runs.

    >>> from dlpack_web import onnxruntime as ort
    >>> ort.GraphOptimizationLevel.ORT_ENABLE_ALL.value
    99
    """

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Whether independent nodes may run at once; in a page they do not."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


_LEVELS = {0: "disabled", 1: "basic", 2: "extended", 3: "layout", 99: "all"}
_MODES = {0: "sequential", 1: "parallel"}


class SessionOptions:
    """Options of an `InferenceSession`, with onnxruntime's names and defaults.

    Those that a page has no use for (numbers of threads, arenas) are kept and passed over;
    profiling, which needs files, raises NotImplemented.
    """

    def __init__(self) -> None:
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.use_deterministic_compute = False
        self._level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self._entries: dict[str, str] = {}
        self._dimensions: dict[str, int] = {}
        self._files: dict[str, bytes] = {}

    @property
    def graph_optimization_level(self) -> GraphOptimizationLevel:
        """How far the graph is rewritten."""
        return self._level

    @graph_optimization_level.setter
    def graph_optimization_level(self, level: GraphOptimizationLevel) -> None:
        if not isinstance(level, GraphOptimizationLevel):
            raise TypeError(
                f"graph_optimization_level is a GraphOptimizationLevel, not {level!r}"
            )
        self._level = level

    @property
    def enable_profiling(self) -> bool:
        """False: profiles are files, which onnxruntime-web does not write."""
        return False

    @enable_profiling.setter
    def enable_profiling(self, on: bool) -> None:
        if on:
            raise worded(
                NotThere,
                "onnxruntime-web writes no profiles: look at the browser's own profiler",
            )

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Fixes a symbolic dimension, such as "batch"."""
        if not isinstance(name, str) or not isinstance(value, int) or value < 0:
            raise TypeError(
                f"a name and an extent are needed, not {name!r} and {value!r}"
            )
        self._dimensions[name] = value

    def add_free_dimension_override_by_denotation(self, name: str, value: int) -> None:
        """Raises NotImplemented: onnxruntime-web fixes dimensions by their names."""
        raise worded(
            NotThere,
            "onnxruntime-web fixes dimensions by their names: use "
            "add_free_dimension_override_by_name()",
        )

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets one of the many options that have a key alone, "session.…"."""
        self._entries[str(key)] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        """What was set; RuntimeError if nothing was."""
        try:
            return self._entries[key]
        except KeyError:
            raise RuntimeError(
                f"SessionOptions does not have configuration with key: {key}"
            ) from None

    def add_external_initializers_from_files_in_memory(
        self,
        file_names: Sequence[str],
        buffers: Sequence[bytes],
        lengths: Sequence[int],
    ) -> None:
        """Gives the contents of files that the model has its weights in, by the names that
        it has for them. Files beside the model are found without."""
        if not len(file_names) == len(buffers) == len(lengths):
            raise RuntimeError(
                "Expecting file names, buffers and lengths to be of equal length"
            )
        for name, data, length in zip(file_names, buffers, lengths, strict=True):
            self._files[name] = bytes(memoryview(data).cast("B")[:length])

    def has_providers(self) -> bool:
        """False: providers are given to the session."""
        return False

    def _to_js(self) -> dict[str, Any]:
        """The options that onnxruntime-web has."""
        found: dict[str, Any] = {
            "graphOptimizationLevel": _LEVELS[self._level],
            "executionMode": _MODES[self.execution_mode],
        }
        if not self.enable_mem_pattern:
            found["enableMemPattern"] = False
        if self.log_severity_level >= 0:
            found["logSeverityLevel"] = self.log_severity_level
            found["logVerbosityLevel"] = self.log_verbosity_level
        if self.logid:
            found["logId"] = self.logid
        if self._dimensions:
            found["freeDimensionOverrides"] = dict(self._dimensions)
        if self._entries:
            found["extra"] = dict(self._entries)
        return found


class RunOptions:
    """Options of one run, with onnxruntime's names and defaults."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.terminate = False
        self.only_execute_path_to_fetches = False
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets one of the options that have a key alone."""
        self._entries[str(key)] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        """What was set; RuntimeError if nothing was."""
        try:
            return self._entries[key]
        except KeyError:
            raise RuntimeError(
                f"RunOptions does not have configuration with key: {key}"
            ) from None

    def _to_js(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "logSeverityLevel": self.log_severity_level,
            "logVerbosityLevel": self.log_verbosity_level,
            "terminate": self.terminate,
        }
        if self.logid:
            found["tag"] = self.logid
        if self._entries:
            found["extra"] = dict(self._entries)
        return found


# --- providers ----------------------------------------------------------------------------

WEBGPU = "WebGPUExecutionProvider"
WASM = "WasmExecutionProvider"
CPU_PROVIDER = "CPUExecutionProvider"
# What they are to onnxruntime-web. onnxruntime itself writes WebGpu.
_KINDS = {
    WEBGPU: "webgpu",
    "WebGpuExecutionProvider": "webgpu",
    "JsExecutionProvider": "webgpu",
    WASM: "wasm",
    CPU_PROVIDER: "wasm",
}

Given = Sequence[str | tuple[str, Mapping[str, Any]]] | None


class Providers:
    """The providers of a session: names and options in order, and what they come to."""

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
                    f"Specified provider '{name}' is not in available provider names. "
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
            raise RuntimeError(
                f"none of the providers {[name for name, _ in pairs]} is here: there are "
                f"{there}"
            )

    @property
    def on_gpu(self) -> bool:
        """Whether the session is to run on WebGPU."""
        return "webgpu" in self.kinds

    @property
    def kinds(self) -> list[str]:
        """By onnxruntime-web's names."""
        return list(dict.fromkeys(_KINDS[name] for name in self.options))

    @property
    def names(self) -> list[str]:
        """As `get_providers` has them: the CPU is always there, and last."""
        names = list(self.options)
        return names if {WASM, CPU_PROVIDER} & set(names) else [*names, WASM]

    @property
    def device(self) -> Device | None:
        """The device that was asked for in the options of the provider."""
        for name, values in self.options.items():
            if _KINDS[name] == "webgpu" and "device" in values:
                found = parse_device(values["device"])
                if found == CPU:
                    raise ValueError("WebGPU does not run on the device 'cpu'")
                return found
        return None

    def without_gpu(self) -> "Providers | None":
        """Those that are left where WebGPU does not work; None: there are none."""
        names = [name for name in self.options if _KINDS[name] != "webgpu"]
        if self.asked and not names:
            return None
        return Providers(names or [WASM], None, [WASM, CPU_PROVIDER])


def _pairs(
    given: Iterable[Any], options: Sequence[Mapping[str, Any]] | None
) -> Iterable[tuple[str, Mapping[str, Any]]]:
    if isinstance(given, str):
        raise TypeError(f"providers is a list of names: [{given!r}]")
    listed = list(given)
    if options is not None and len(options) != len(listed):
        raise ValueError(
            "'providers' and 'provider_options' should be the same length if both are "
            "given."
        )
    for i, one in enumerate(listed):
        if isinstance(one, tuple):
            yield one
        else:
            yield one, {} if options is None else options[i]

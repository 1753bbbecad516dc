"""Names of onnxruntime without a counterpart in a page: using them raises the
reason."""

from typing import Any, NoReturn

from ._state import NotImplemented as NotThere
from ._state import worded

_NATIVE = "it is for native execution providers; a page has only WebGPU and WebAssembly"
_PACKAGES = "onnxruntime-web does not read model packages: load the .onnx file inside"
# name -> reason.
REASONS = {
    "AdapterFormat": "onnxruntime-web does not support LoRA adapters",
    "LoraAdapter": "onnxruntime-web does not support LoRA adapters",
    "ModelCompiler": "onnxruntime-web does not compile models: compile them on the desktop",
    "ModelPackage": _PACKAGES,
    "ModelPackageComponentContext": _PACKAGES,
    "ModelPackageContext": _PACKAGES,
    "ModelPackageOptions": _PACKAGES,
    "ModelPackageWriteMode": _PACKAGES,
    "OrtArenaCfg": "the memory of a page has no arenas to configure",
    "OrtEpAssignedNode": _NATIVE,
    "OrtEpAssignedSubgraph": _NATIVE,
    "OrtEpContextData": _NATIVE,
    "OrtEpContextDataBuffer": _NATIVE,
    "OrtEpDevice": _NATIVE,
    "OrtExternalInitializerInfo": "onnxruntime-web does not compile models",
    "OrtHardwareDevice": _NATIVE,
    "OrtMemoryInfo": "the memory of a page has no allocators to choose from",
    "OrtSyncStream": "WebGPU has one queue, which runs everything in order",
    "SessionIOBinding": "use session.io_binding()",
    "SparseTensor": "onnxruntime-web has no sparse tensors: feed a dense array",
    "create_and_register_allocator": "the memory of a page has no allocators to choose from",
    "create_and_register_allocator_v2": "the memory of a page has no allocators to choose from",
    "get_ep_devices": _NATIVE,
    "register_execution_provider_library": "a page cannot load native libraries",
    "set_default_logger_callback": "onnxruntime-web logs to the page's console",
    "unregister_execution_provider_library": "a page cannot load native libraries",
}
# Methods of InferenceSession.
METHODS = {
    "get_input_epdevices": _NATIVE,
    "get_input_memory_infos": "the memory of a page has no allocators to choose from",
    "get_output_memory_infos": "the memory of a page has no allocators to choose from",
    "get_provider_graph_assignment_info": "onnxruntime-web does not report which nodes run where",
    "set_ep_dynamic_options": "the providers of a page have no options that change",
}


def refuse(name: str, why: str) -> NoReturn:
    """Raises NotImplemented with the reason."""
    raise worded(NotThere, f"{name} is not available in a page: {why}")


class _Refused(type):
    """A class whose calls and members raise the reason why it is missing."""

    def __call__(cls, *args: Any, **options: Any) -> NoReturn:
        refuse(cls.__name__, REASONS[cls.__name__])

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(f"{cls.__name__}.{name}", REASONS[cls.__name__])


def _function(name: str) -> Any:
    def refused(*args: Any, **options: Any) -> NoReturn:
        refuse(name, REASONS[name])

    refused.__name__ = refused.__qualname__ = name
    refused.__doc__ = f"Raises NotImplemented: {REASONS[name]}."
    return refused


def _class(name: str) -> Any:
    return _Refused(name, (), {"__doc__": f"Not available in a page: {REASONS[name]}."})


REFUSED = {
    name: _class(name) if name[0].isupper() else _function(name) for name in REASONS
}


class RefusedMethods:
    """The methods of a session without a counterpart in a page."""

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            return lambda *args, **options: refuse(name, METHODS[name])
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}",
            name=name,
            obj=self,
        )

"""`onnxruntime.backend`: ONNX's backend interface, over sessions in a page."""

from collections.abc import Sequence
from typing import Any

from ._library import get_device
from ._options import RunOptions, SessionOptions
from ._session import InferenceSession


class OnnxRuntimeBackendRep:
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def run(self, inputs: Any, **options: Any) -> Any:
        """inputs: an array for a model with one input, or a list of arrays. options:
        those of RunOptions. Returns a list of results, one for each output; results
        that are lists stay lists."""
        chosen = RunOptions()
        for name, value in options.items():
            if hasattr(RunOptions, name):
                setattr(chosen, name, value)
        arguments = self._session.get_inputs()
        if isinstance(inputs, list):
            feeds = {arg.name: inputs[i] for i, arg in enumerate(arguments)}
        else:
            if len(arguments) != 1:
                raise RuntimeError(f"Model expect {len(arguments)} inputs")
            feeds = {arguments[0].name: inputs}
        return self._session.run(None, feeds, chosen)


class OnnxRuntimeBackend:
    """ONNX's backend interface."""

    @classmethod
    def is_compatible(cls, model: Any, device: str | None = None, **more: Any) -> bool:
        """Whether the device is available; does not check the model."""
        return cls.supports_device(device or get_device())

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether "CPU" or "WEBGPU" is available."""
        return device in ("CPU", get_device())

    @classmethod
    def prepare(cls, model: Any, device: str | None = None, **options: Any) -> Any:
        """A model that is ready to run. model: a path, bytes, a ModelProto or a session.
        options: those of SessionOptions."""
        if isinstance(model, OnnxRuntimeBackendRep):
            return model
        if isinstance(model, InferenceSession):
            return OnnxRuntimeBackendRep(model)
        if device is not None and not cls.supports_device(device):
            raise RuntimeError(
                f"Incompatible device expected '{device}', got '{get_device()}'"
            )
        chosen = SessionOptions()
        for name, value in options.items():
            if hasattr(SessionOptions, name):
                setattr(chosen, name, value)
        source = model if isinstance(model, (str, bytes)) else model.SerializeToString()
        providers = ["CPUExecutionProvider"] if device == "CPU" else None
        return OnnxRuntimeBackendRep(InferenceSession(source, chosen, providers))

    @classmethod
    def run_model(
        cls, model: Any, inputs: Sequence[Any], device: str | None = None, **more: Any
    ) -> Any:
        """Prepares a model and runs it."""
        return cls.prepare(model, device, **more).run(inputs, **more)

    @classmethod
    def run_node(cls, *args: Any, **options: Any) -> Any:
        """Raises NotImplementedError, as onnxruntime's own does."""
        raise NotImplementedError(
            "It is much more efficient to run a whole model than every node independently."
        )


is_compatible = OnnxRuntimeBackend.is_compatible
prepare = OnnxRuntimeBackend.prepare
run = OnnxRuntimeBackend.run_model
supports_device = OnnxRuntimeBackend.supports_device

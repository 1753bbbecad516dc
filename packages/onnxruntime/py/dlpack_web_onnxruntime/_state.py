"""onnxruntime's exceptions, and the translation of onnxruntime-web's errors to them."""

# ruff: noqa: N818 - the names are onnxruntime's

import re

from dlpack_web import DeviceLostError, KernelError, ReleasedError

_CODE = re.compile(r"ERROR_CODE: (\d+), ERROR_MESSAGE: (.*)", re.DOTALL)


class Fail(Exception):
    """Loading or running a model failed."""


class InvalidArgument(Exception):
    """A name, dtype or shape that the model does not have."""


class NoSuchFile(Exception):
    """A model file that does not exist."""


class NoModel(Exception):
    """There is no model."""


class EngineError(Exception):
    """onnxruntime itself does not work."""


class RuntimeException(Exception):
    """An error while running, such as out of memory."""


class InvalidProtobuf(Exception):
    """A file that is not a model."""


class ModelLoaded(Exception):
    """The model is already loaded."""


class NotImplemented(Exception):
    """An operator that no provider of the session implements for these dtypes."""


class InvalidGraph(Exception):
    """A model that violates ONNX's rules, or has an unknown operator."""


class EPFail(Exception):
    """An execution provider failed."""


class NotFound(Exception):
    """A name that does not exist."""


class DeviceLost(EPFail, DeviceLostError):
    """The session's GPUDevice was lost: onnxruntime's `EPFail` and dlpack_web's
    `DeviceLostError`."""


# By their codes, with the words for these in messages.
_CLASSES: dict[int, tuple[type[Exception], str]] = {
    1: (Fail, "FAIL"),
    2: (InvalidArgument, "INVALID_ARGUMENT"),
    3: (NoSuchFile, "NO_SUCHFILE"),
    4: (NoModel, "NO_MODEL"),
    5: (EngineError, "ENGINE_ERROR"),
    6: (RuntimeException, "RUNTIME_EXCEPTION"),
    7: (InvalidProtobuf, "INVALID_PROTOBUF"),
    8: (ModelLoaded, "MODEL_LOADED"),
    9: (NotImplemented, "NOT_IMPLEMENTED"),
    10: (InvalidGraph, "INVALID_GRAPH"),
    11: (EPFail, "EP_FAIL"),
    14: (NotFound, "NOT_FOUND"),
}
_CODES = {kind: code for code, (kind, _) in _CLASSES.items()}


def worded(kind: type[Exception], message: str) -> Exception:
    """An exception with onnxruntime's message format."""
    code = _CODES[kind]
    return kind(f"[ONNXRuntimeError] : {code} : {_CLASSES[code][1]} : {message}")


def invalid(message: str) -> Exception:
    """The exception for most invalid arguments."""
    return worded(InvalidArgument, message)


def unsupported(message: str) -> Exception:
    """The exception for what onnxruntime-web lacks."""
    return worded(NotImplemented, message)


def detail_of(error: Exception) -> str:
    """The message of an exception, without its class and code."""
    found = re.match(r"\[ONNXRuntimeError\] : \d+ : \w+ : ", str(error))
    return str(error)[found.end() :] if found else str(error)


class translated:  # noqa: N801 - used as a function
    """Makes JavaScript's errors in its block onnxruntime's, except `passing`."""

    def __init__(self, *passing: type[Exception]) -> None:
        # A KernelError is the fault of an input, and is raised unchanged.
        self._passing: tuple[type[Exception], ...] = (
            ReleasedError,
            KernelError,
            *passing,
        )

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        if error is None or isinstance(error, DeviceLost):
            return
        if isinstance(error, DeviceLostError):
            raise DeviceLost(f"[ONNXRuntimeError] : 11 : EP_FAIL : {error}") from None
        if isinstance(error, self._passing):
            return
        if isinstance(error, BufferError):  # our own errors keep their message
            raise invalid(str(error)) from None
        if isinstance(error, (RuntimeError, ValueError, TypeError)):
            found = _translated(str(error))
            if found is not None:
                raise found from None


def _translated(message: str) -> Exception | None:
    """The exception for an error of onnxruntime-web; None for other errors."""
    found = _CODE.search(message)
    if found is not None:
        detail = found[2].strip()
        # Builds without their own exceptions report these with another code.
        if detail.startswith(("No Op registered for", "Unrecognized attribute")):
            return worded(InvalidGraph, f"This is an invalid model. Error {detail}")
        if "Invalid dispatch group size" in detail:
            return unsupported(
                "onnxruntime-web does not compute empty results on WebGPU: use "
                "providers=['CPUExecutionProvider']"
            )
        if detail.startswith(("[ShapeInferenceError]", "[TypeInferenceError]")):
            return worded(Fail, detail)
        return worded(_CLASSES.get(int(found[1]), _CLASSES[1])[0], detail)
    if message.startswith("NO_SUCHFILE: "):
        detail = message.removeprefix("NO_SUCHFILE: ")
        return worded(NoSuchFile, f"Load model failed: {detail}")
    if message.startswith("NO_LIBRARY: "):
        detail = message.removeprefix("NO_LIBRARY: ")
        return ImportError(f"{detail}; call dlpack_web_onnxruntime.load(url)")
    if re.fullmatch(r"\d+", message) or "memory" in message.lower():
        # Thrown by C++ without a message, or by JavaScript: out of memory.
        return worded(
            RuntimeException, f"onnxruntime-web may be out of memory: {message}"
        )
    if message.startswith("[WebGPU] Kernel"):  # onnxruntime-web's older backend
        return worded(Fail, message)
    if "no available backend found" in message:
        return worded(EPFail, message)
    return None

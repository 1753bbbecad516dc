"""Tensors to and from JavaScript libraries."""

from typing import Any, Literal, get_args, overload

from ._arrow import Masked
from ._backends import javascript
from ._layout import AdapterName
from ._tensor.device import CPU, Device, await_default_device, parse_device
from ._tensor.hints import awaited
from ._tensor.tensor import Tensor, share

# The other adapters work without their library.
_NEEDED_LIBRARIES = {*get_args(AdapterName)} - {"arrow", "ndarray"}


class Adapter:
    """Converts between tensors and those of one JavaScript library; made by
    `adapter()`.

    It copies only where JavaScript's adapter does; js/src/adapters and the README say
    where.

    >>> await dlw.adapter("ndarray", None)  # doctest: +ELLIPSIS
    <dlpack_web...Adapter object at ...>
    """

    def __init__(self, js: Any) -> None:
        self._js = js

    def to_js(self, x: object, /, *, copy: bool | None = None, **options: Any) -> Any:
        """The library's own tensor over the memory of `x`, which it holds.

        Parameters
        ----------
        x : Tensor, array, buffer or DLPack producer
            On the CPU or the library's device.
        copy : bool, optional
            False: CopyError where a copy is needed.
        **options
            Those of the JavaScript function, for example dtype="bool" or renderer=....

        Returns
        -------
        JsProxy
            For you to dispose of, by the library's own means.

        Raises
        ------
        BufferError
            The library does not support it.

        Examples
        --------
        >>> tensors = await dlw.adapter("ort", ort)  # the module of onnxruntime-web
        >>> feed = tensors.to_js(np.arange(6.0).reshape(2, 3))
        >>> feed.type, feed.data.length
        ('float64', 6)
        >>> feed.dispose()
        """
        if copy is not None:
            options["copy"] = copy
        valid = options.get("valid")
        if valid is not None and not javascript.is_js(valid):
            with share(valid) as bools:
                return self.to_js(x, **{**options, "valid": bools.js})
        given = javascript.options(options)
        with share(x) as tensor:
            return javascript.invoke(self._js.give, id(tensor), given)

    @overload
    def from_js(
        self, value: Any, /, *, nulls: Literal["mask"], **options: Any
    ) -> Masked: ...
    @overload
    def from_js(self, value: Any, /, **options: Any) -> Tensor: ...
    def from_js(self, value: Any, /, **options: Any) -> Tensor | Masked:
        """A Tensor over the memory of the library's own tensor, which stays valid.

        Parameters
        ----------
        value : JsProxy
            The library's tensor.
        **options
            Those of the JavaScript function, for example column= and nulls= of Arrow.

        Returns
        -------
        Tensor or Masked
            For you to release; with nulls="mask" a `Masked`, as of `from_arrow`.

        Raises
        ------
        BufferError
            Its memory cannot be shared.
        ReleasedError
            It was disposed of.

        Examples
        --------
        >>> tensors = await dlw.adapter("ort", ort)  # the module of onnxruntime-web
        >>> value = tensors.to_js(np.arange(6.0).reshape(2, 3))
        >>> with tensors.from_js(value) as t:
        ...     t.shape
        (2, 3)
        >>> value.dispose()
        """
        given = javascript.options(options)
        if options.get("nulls") != "mask":
            return javascript.receive(self._js.take, value, given)
        both = javascript.Kept(self._js.takeMasked, value, given)
        take = javascript.calls().tensors.fromJs
        values = javascript.receive(take, both.js.values)
        return Masked(values, javascript.receive(take, both.js.valid))

    async def use_device(
        self, device: str | tuple[int, int] = "webgpu", *, renderer: Any = None
    ) -> Device:
        """Sets the library's device, before the library chooses one.

        Parameters
        ----------
        device : str or Device
            A WebGPU device.
        renderer : JsProxy, optional
            For three.js, which uses only the device of its renderer.

        Returns
        -------
        Device
            The device. Models of transformers.js also need it as session_options:
            `{"executionProviders": [{"name": "webgpu", "device": device.gpu}]}`.

        Raises
        ------
        BufferError
            The library already runs on another device, or uses none.

        Examples
        --------
        >>> tensors = await dlw.adapter("ort", ort)  # the module of onnxruntime-web
        >>> device = await dlw.webgpu.request_device()
        >>> await tensors.use_device(device) == device
        True
        """
        target = parse_device(device) or await await_default_device()
        if target is CPU:
            raise BufferError("only a WebGPU device can be shared, not 'cpu'")
        promise = javascript.invoke(self._js.useDevice, target.id, renderer)
        await javascript.finish(promise)
        return target


@awaited("the adapter is not made", "dlw.adapter(…)")
async def adapter(name: AdapterName, library: Any) -> Adapter:
    """The adapter for a JavaScript library that the page has loaded. Afterwards `from_js` takes
    the library's tensors, too.

    Parameters
    ----------
    name : str
        That of the entry point in npm, "ort" of dlpack-web/ort (onnxruntime-web). "arrow":
        its `from_js` has column= and nulls= like `from_arrow`, its `to_js` valid= like
        `to_arrow`. "ndarray": plain objects as in zarrita. "opencv": you delete the cv.Mat
        that you request.
    library : JsProxy or None
        Its module; None for "ndarray" and, as for DuckDB-wasm's results, "arrow".

    Raises
    ------
    TypeError
        No such name, or no module.

    Examples
    --------
    >>> tensors = await dlw.adapter("ort", ort)  # the module of onnxruntime-web
    >>> feed = tensors.to_js(np.arange(3.0, dtype="float32"))
    >>> feed.type
    'float32'
    >>> feed.dispose()
    """
    make = javascript.calls().adapters.adapter
    if name in _NEEDED_LIBRARIES and not javascript.is_js(library):
        raise TypeError(
            f"adapter({name!r}, library) needs the library's module, a JavaScript "
            f"object such as js.{name}, not {library!r}"
        )
    promise = javascript.invoke(make, name, library)
    return Adapter(await javascript.finish(promise))

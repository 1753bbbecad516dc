"""Kernel: a WGSL compute shader whose bindings are tensors."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from .. import _core
from .._backends import owner
from .._backends.calls import recorder
from .._backends.checks import (
    Arguments,
    Counts,
    Key,
    ShaderSource,
    check_source,
    counts_of,
)
from .._tensor.device import CPU, await_default_device, parse_device
from .._tensor.tensor import Tensor

if TYPE_CHECKING:
    from .._backends.model.kernels import kernels
    from .._formulas.formulas import Source


class Kernel:
    """A WGSL compute shader whose bindings are tensors, or numbers for uniforms.

    Calling it binds argument i at `@group(0) @binding(i)` and submits; it does not
    wait. The shader is compiled once per device. Errors that the GPU reports later
    (such as WGSL that does not compile) raise KernelError from `await kernel.ready()`
    and from reading its outputs; if nothing reads them, a warning names the
    call.

    Parameters
    ----------
    wgsl : str
        The source. It may declare `var<storage, read>`, `var<storage, read_write>` and
        `var<uniform>`.
    entry : str
        The entry point.
    label : str, optional
        Names the kernel in messages; default the entry point.
    check : bool
        Whether each argument must have the dtype and size that its binding declares:
        the same scalar type, narrower types as words of u32, structures by their size.

    Raises
    ------
    ValueError
        No WGSL, or no such entry point.

    Examples
    --------
    >>> double = dlw.webgpu.Kernel('''
    ...     @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    ...     @compute @workgroup_size(1)
    ...     fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] *= 2; }
    ... ''')
    >>> device = await dlw.webgpu.request_device()
    >>> t = dlw.from_dlpack(np.arange(3.0), device=device, dtype="float32")
    >>> double(t)
    >>> await t.to_host()
    array([0., 2., 4.], dtype=float32)
    """

    def __init__(
        self,
        wgsl: str,
        entry: str = "main",
        *,
        label: str | None = None,
        check: bool = True,
    ) -> None:
        label = entry if label is None else label
        check_source(wgsl, entry, label)
        self._source = ShaderSource(wgsl, entry, label, bool(check))
        self._compiled: dict[int, kernels.Kernel] = {}  # by device id
        self._last = 0  # the `core_number` of the last that ran
        self._names: Sequence[str] = ()  # of arguments, in messages

    @classmethod
    def _of(cls, source: "Source", label: str) -> Self:
        """A kernel of formulas."""
        made = cls(source.wgsl, label=label)
        made._source = made._source._replace(parts=source.parts, params=source.params)
        made._names = source.names
        return made

    def __call__(
        self, *args: Tensor | float, workgroups: int | Sequence[int] | None = None
    ) -> None:
        """Binds and submits; in the block of a `batch`, records instead.

        Parameters
        ----------
        *args : Tensor or float
            One for each binding. Numbers, including NumPy's, are for uniforms of f32,
            i32, u32.
        workgroups : int or sequence of int, optional
            One to three counts. Default: one invocation for each element, as the shader
            declares them, of the first argument that it may write to, from its
            @workgroup_size.

        Raises
        ------
        BufferError
            Tensors elsewhere, or that the shader would misread; default workgroups that
            cannot be determined.
        TypeError, ValueError
            Other arguments, or another number of them.

        Examples
        --------
        >>> fill = dlw.webgpu.Kernel('''
        ...     @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        ...     @group(0) @binding(1) var<uniform> value: f32;
        ...     @compute @workgroup_size(1)
        ...     fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] = value; }
        ... ''')
        >>> t = dlw.empty(3, device=await dlw.webgpu.request_device())
        >>> fill(t, 2.5, workgroups=3)
        >>> await t.to_host()
        array([2.5, 2.5, 2.5], dtype=float32)
        """
        key = args, workgroups
        if recorder() is not None or not _core._again(self._last, key):
            counts = counts_of(workgroups)
            self._run(*_core._arguments(*args), counts, key)

    def _run(self, device: int, args: Arguments, counts: Counts, key: Key = ()) -> int:
        """Runs or records a call. Returns the number for `_core._again`."""
        kernel, batch = self._on(device), recorder()
        if batch is None:
            kernel.run(counts, args, key)
            self._last = kernel.core_number
        else:
            batch._record(kernel, device, counts, args)
        return self._last

    async def time(
        self, *args: Tensor | float, workgroups: int | Sequence[int] | None = None
    ) -> float:
        """Runs once and returns the time that the GPU took.

        Parameters
        ----------
        *args, workgroups
            As for calling the kernel.

        Returns
        -------
        float
            Milliseconds.

        Raises
        ------
        BufferError
            The device lacks the feature "timestamp-query", which `request_device()` requests if
            the adapter has it.
        KernelError
            As for `ready`.

        Examples
        --------
        >>> kernel = dlw.webgpu.Kernel('''
        ...     @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        ...     @compute @workgroup_size(1) fn main() { x[0] = 1; }
        ... ''')
        >>> t = dlw.empty(1, device=await dlw.webgpu.request_device())
        >>> milliseconds = await kernel.time(t)
        >>> milliseconds >= 0
        True
        """
        counts = counts_of(workgroups)
        if recorder() is not None:
            raise BufferError(
                "time() runs a kernel at once, and a batch is being recorded: call it "
                "before or after"
            )
        # Separate holds: the caller may release its tensors during the wait.
        with ExitStack() as holds:
            own = (
                holds.enter_context(_core.from_dlpack(x))
                if isinstance(x, Tensor)
                else x
                for x in args
            )
            device, given = _core._arguments(*own)
            return await self._on(device).time(counts, given)

    async def ready(self, device: str | tuple[int, int] | None = None) -> None:
        """Returns when the shader has compiled. You can call a kernel without waiting.

        Parameters
        ----------
        device : str or Device, optional
            Default: "webgpu".

        Raises
        ------
        KernelError
            With the line, position and message of the error in the source.

        Examples
        --------
        >>> kernel = dlw.webgpu.Kernel("@compute @workgroup_size(1) fn main() { x = 1; }")
        >>> device = await dlw.webgpu.request_device()
        >>> try:
        ...     await kernel.ready(device)
        ... except dlw.KernelError as error:
        ...     error.line
        1
        """
        target = parse_device("webgpu" if device is None else device)
        if target is CPU:
            raise BufferError("kernels run on WebGPU devices, not on 'cpu'")
        target = target or await await_default_device()
        await self._on(target.id).ready()

    def __repr__(self) -> str:
        entry, label = self._source.entry, self._source.label
        named = "" if label == entry else f", entry {entry!r}"
        return f"<Kernel {label!r}{named}>"

    def _on(self, device: int) -> "kernels.Kernel":
        found = self._compiled.get(device)
        if found is None:
            made = owner(device).kernel(self._source, device)
            found = self._compiled[device] = made
        return found


Kernel.__module__ = "dlpack_web.webgpu"  # where users find it

"""Docstrings of what is written in C: the core's bytes count, a wheel's text less."""

DOCS = {
    "from_dlpack": """from_dlpack($module, x, /, *, device=None, copy=None)
--

A Tensor over the memory of x, which has __dlpack__ or is a DLPack capsule.

device: None (where x is), 'cpu', 'webgpu', 'webgpu:1' or a Device.
copy: None (only if needed), True (always fresh memory), False (CopyError if one
would be needed). The result keeps the memory of x alive until it is released.
Where the type of x has __dlpack_c_exchange_api__ and neither is given, that is used.
Exceptions of x.__dlpack__ propagate; BufferError: DLPack or this library cannot
describe x.""",
    "from_buffer": """from_buffer($module, obj, /)
--

A Tensor over the memory of obj, borrowed through the buffer protocol (bytes,
array.array, memoryview, ndarray). obj stays pinned until the Tensor and all that
was made from it are gone. BufferError: format, strides or alignment do not fit.""",
    "live_tensors": """live_tensors($module, /)
--

Managed tensors made by this library and not yet released, exports included.""",
    "__dlpack__": """__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)
--

A DLPack capsule over the same memory, kept alive by the capsule.

Versioned from max_version (1, 0) on, else legacy. copy=True exports a fresh copy.
dl_device=(1, 0) reads a WebGPU tensor back where Python may block.
Raises BufferError when DLPack or the device cannot do what is asked.""",
    "__dlpack_device__": """__dlpack_device__($self, /)
--

(device_type, device_id): (1, 0) for the CPU, (15, index) for WebGPU.""",
    "release": """release($self, /)
--

Lets go of the memory now. Arrays and capsules made from this tensor keep it alive;
the tensor itself raises ReleasedError from here on. May be called again.""",
    "shape": "Extents, a tuple of ints.",
    "strides": "Steps between neighbours in elements, a tuple of ints.",
    "byte_offset": "Bytes from the start of the memory to element 0.",
    "padded": "Whether each element of less than a byte has a byte of its own.",
    "read_only": "Whether the elements must not be written.",
    "released": "Whether release() was called.",
}

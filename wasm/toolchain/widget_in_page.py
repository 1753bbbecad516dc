"""`dlpack_web.widget` of the wheel for Pyodide: says what to use instead."""

raise ImportError(
    "dlpack_web.widget is for kernels on a server; this Python runs in the page: `await "
    "dlpack_web.webgpu.request_device()` has its GPU, and dlpack_web.wire sends tensors to "
    "the script of a widget",
    name="dlpack_web.widget",
)

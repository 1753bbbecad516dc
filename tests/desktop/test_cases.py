"""The modules of tests/browser/cases/py that run on the desktop, too: conftest.py collects them."""

CASES = [
    "docstring_cases",
    "gpu_batch",
    "gpu_batch_faults",
    "gpu_buffers",
    "gpu_cases",
    "gpu_devices",
    "gpu_elementwise",
    "gpu_errors",
    "gpu_faults",
    "gpu_files",
    "gpu_kernels",
    "gpu_layouts",
    "gpu_padding",
    "gpu_reads",
    "gpu_reductions",
    "gpu_same_bytes",
    "gpu_text",
    "gpu_upload",
    "image_cases",
]

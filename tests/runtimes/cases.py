"""The files of tests/browser that run without pages."""

JAVASCRIPT = [
    "arrow_cases.mjs",
    "counter_cases.mjs",
    "cpu_cases.mjs",
    "exchange_cases.mjs",
    "fault_cases.mjs",
    "gpu_cases.mjs",
    "image_cases.mjs",
    "image_errors.mjs",
    "kernels_cases.mjs",
    "mishap_cases.mjs",
    "realm_cases.mjs",
    "shader_cases.mjs",
]
PYTHON = [
    "docstring_cases.py",
    "gpu_buffers.py",
    "gpu_cases.py",
    "gpu_errors.py",
    "gpu_faults.py",
    "gpu_interrupts.py",
    "gpu_kernels.py",
    "gpu_same_bytes.py",
    "gpu_upload.py",
    "image_cases.py",
]

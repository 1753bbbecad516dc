"""The modules of tests/browser/cases/py whose cases need no shader, or one that gpu_world.py
has in Python: conftest.py collects them."""

CASES = [
    "gpu_buffers",
    "gpu_cases",
    "gpu_devices",
    "gpu_errors",
    "gpu_padding",
    "gpu_reads",
    "gpu_same_bytes",
    "gpu_text",
    "gpu_upload",
]

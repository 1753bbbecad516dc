"""Whether an installed dlpack_web works at all: prints its version."""

from pathlib import Path

import dlpack_web as dlw

data = bytearray(range(24))
with dlw.from_buffer(data) as tensor:
    assert tensor.shape == (24,)
    data[3] = 99
    assert bytes(memoryview(tensor)) == bytes(data)
# What Pyodide runs: it is built, and not among the sources.
assert Path(dlw.__file__).with_name("_bridge.js").stat().st_size > 10_000
print(dlw.__version__)

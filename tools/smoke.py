"""Whether an installed dlpack_web works at all: prints its version."""

import dlpack_web as dlw

data = bytearray(range(24))
with dlw.from_buffer(data) as tensor:
    assert tensor.shape == (24,)
    data[3] = 99
    assert bytes(memoryview(tensor)) == bytes(data)
print(dlw.__version__)

"""The small libraries of Arrow: nanoarrow and arro3 with what tensors hold."""

import kernels
import nanoarrow as na
import numpy as np
from arro3.core import Array, ChunkedArray, DataType, RecordBatch, Table

numbers = np.arange(10, dtype="int64") ** 2  # a Tensor
ratios = np.arange(10, dtype="float32") / 4  # a Tensor
matrix = np.arange(6.0).reshape(2, 3)  # a Tensor

light = Array.from_numpy(numbers)
light.type, len(light), light.to_numpy()
cast = light.cast(DataType.float64()).to_numpy()
part = light.slice(2, 4).to_numpy()
chunked = ChunkedArray([Array.from_numpy(numbers[:4]), Array.from_numpy(numbers[4:])])
chunked.to_numpy(), chunked.num_chunks
batch = RecordBatch.from_pydict({"n": light, "r": Array.from_numpy(ratios)})
batch.num_rows, batch["r"].to_numpy()
table = Table.from_batches([batch])
table.column("n").to_numpy()
scaled = Array.from_numpy(np.asarray(kernels.scaled(ratios, 2)))
direct = Array.from_numpy(kernels.scaled(ratios, 2))
buffer = na.c_buffer(numbers)
np.asarray(buffer)
array = na.Array(na.c_buffer(ratios), na.float32())
array.to_pylist()
built = na.c_array_from_buffers(na.int64(), 10, [None, numbers])
np.asarray(na.Array(built).to_pylist())
values = light.to_numpy()  # a Tensor: dlw.from_arrow(light)
middle = light.slice(3, 5).to_numpy()  # a Tensor: dlw.from_arrow(light.slice(3, 5))
np.add(values[3:8], middle)
Array.from_numpy(middle).to_numpy()
again = np.asarray(na.c_buffer(middle))
taken = np.take(ratios, middle[:1] if np.max(middle) < 10 else [0])
rows = [Array.from_numpy(row) for row in matrix]

"""Arrow's own conversions: arrays, nulls, chunks, batches, tensors, and the C interface."""

import io

import kernels
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

numbers = np.arange(12) ** 2  # a Tensor
halves = np.arange(12, dtype="float32") / 2  # a Tensor
flags = np.arange(12) % 3 == 0  # a Tensor
matrix = np.arange(12.0).reshape(3, 4)  # a Tensor

squares = pa.array(numbers)
small = pa.array(numbers, type=pa.int16())
missing = pa.array(numbers, mask=np.asarray(flags))
also = pa.array(numbers, mask=flags)
holes = np.array([1.0, np.nan, 3.0])  # a Tensor
unknown = pa.array(holes, from_pandas=True)
filled = pc.fill_null(pa.array(np.asarray(holes), from_pandas=True), 0)
truth = pa.array(flags)
squares.to_numpy(), pc.filter(squares, truth), pc.take(squares, pa.array(numbers[:3]))
every = pa.array(halves[::3])
scalar = pa.scalar(numbers[3])
listed = pa.ListArray.from_arrays(pa.array(numbers[:4].reshape(2, 2)[0]), squares)
fixed = pa.FixedSizeListArray.from_arrays(squares, 4)
struct = pa.StructArray.from_arrays([squares, pa.array(halves)], ["n", "h"])
dictionary = pa.DictionaryArray.from_arrays(pa.array(numbers[:2]), ["a", "b", "c"])
chunked = pa.chunked_array([numbers[:5], numbers[5:]])
chunked.num_chunks, chunked.combine_chunks().sum()
table = pa.table({"n": numbers, "h": halves, "f": flags})
table.schema, table.filter(pc.greater(table["n"], 20)).num_rows
arrays = pa.Table.from_arrays([numbers, flags], names=["n", "f"])
python = pa.Table.from_pydict({"h": halves, "s": kernels.scaled(halves, 4)})
added = table.append_column("twice", pa.array(np.multiply(numbers, 2)))
nested = pa.array([matrix[0], matrix[1]])
tensor = pa.Tensor.from_numpy(matrix)
sparse = pa.SparseCOOTensor.from_dense_numpy(matrix)
buffer = pa.py_buffer(halves)
shared = pa.Array.from_buffers(pa.float32(), 12, [None, pa.py_buffer(halves)])
pq.write_table(table, "table.parquet")
read = pq.read_table("table.parquet", columns=["h"])
stream = io.BytesIO()
with pa.ipc.new_stream(stream, table.schema) as writer:
    writer.write_table(table, max_chunksize=5)
batches = pa.ipc.open_stream(stream.getvalue()).read_all()["n"].num_chunks

column = squares.to_numpy()  # a Tensor: dlw.from_arrow(squares)
part = squares.slice(2, 5).to_numpy()  # a Tensor: dlw.from_arrow(squares.slice(2, 5))
bits = truth.to_numpy(zero_copy_only=False)  # a Tensor: dlw.from_arrow(truth)
exchanged = np.from_dlpack(squares)  # a Tensor: dlw.from_dlpack(squares)
pa.array(column).equals(squares), pa.array(part), pa.array(bits).equals(truth)
pa.array(exchanged), pa.array(np.asarray(part)[::-1])
np.sum(column), np.count_nonzero(bits)
from_interface = pa.table([pa.array(column), pa.array(bits)], names=["c", "b"])

"""A picture in blocks: dask over tensors, with filters across the borders."""

import dask
import dask.array as da
import kernels
import numpy as np
from scipy import ndimage as ndi

dask.config.set(scheduler="synchronous")
rng = np.random.default_rng(14)
picture = (rng.integers(0, 256, (32, 48)) / 256).astype("float32")  # a Tensor
weights = np.array([1.0, 2.0, 1.0])  # a Tensor
index = np.array([3, 1, 30])  # a Tensor

blocks = da.from_array(picture, chunks=(16, 16))
blocks.shape, blocks.dtype, blocks.numblocks
mean = blocks.mean(axis=0)
smooth = blocks.map_overlap(ndi.gaussian_filter, depth=4, boundary="reflect", sigma=1)
halved = blocks.map_blocks(kernels.scaled, 0.5, dtype="float32")
total = (blocks + blocks.T[:32, :32].sum()).sum().compute()
stacked = da.stack([blocks, da.from_array(picture, chunks=16)])
joined = da.concatenate([blocks, picture[:4]], axis=0)
product = da.dot(blocks.T, da.from_array(picture, chunks=(16, 16)))
counts, edges = da.histogram(blocks, bins=4, range=(0, 1))
filtered = da.where(blocks > 0.5, picture, 0)
convolved = da.map_blocks(lambda b: ndi.convolve1d(b, weights), blocks, dtype="float32")
rows = blocks[index]
also = blocks[np.asarray(index)]
shuffled = da.take(blocks, index, axis=0)
u, s, v = da.linalg.svd(da.from_array(picture, chunks=(16, 48)))
percentile = da.percentile(da.from_array(picture[0], chunks=48), [25, 75])
lazily = dask.delayed(np.linalg.norm)(picture).compute()
several = dask.compute(blocks.max(), blocks.min(), blocks.std())
target = np.zeros((32, 48), "float32")  # a Tensor
da.store(blocks * 2, target)
kept = np.zeros((32, 48), "float32")
da.store(da.from_array(picture, chunks=16), kept)
reshaped = blocks.reshape(-1).rechunk(64)
difference = da.from_array(picture) - picture

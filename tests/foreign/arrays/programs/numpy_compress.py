"""A picture in fewer numbers: NumPy's linear algebra, its files, and a kernel."""

import io
from pathlib import Path

import kernels
import numpy as np

rng = np.random.default_rng(2)
u, v = np.mgrid[:32, :32] / 32
picture = (np.round(128 * (np.sin(9 * u) * np.cos(7 * v) + 1)) / 256).astype("float32")
image = picture + rng.integers(0, 2, picture.shape) / np.float32(64)  # a Tensor

left, values, right = np.linalg.svd(image, full_matrices=False)
rank = int(np.searchsorted(-values, -0.5))
basis = left[:, :rank] * values[:rank]  # a Tensor
close = np.matmul(basis, right[:rank])
error = np.linalg.norm(np.subtract(image, close))
mean, spread = np.mean(image, axis=0), np.std(image, axis=0)
np.einsum("ij,ij->i", image, image), np.tensordot(image, image, 1).shape
order = np.argsort(image[0])  # a Tensor
sorted_row = np.take(image[0], order)
bright = np.where(np.greater(kernels.smoothed(image), 0.5), image, 0)
counts, edges = np.histogram(image, bins=8, range=(0, 1))
which = np.digitize(image[0], edges)
blocks = np.asarray(image).reshape(4, 8, 4, 8).mean(axis=(1, 3))
padded = np.pad(image, 2, mode="reflect")
stacked = np.stack([image, kernels.scaled(image, 2)])
flipped = np.flipud(image), np.rot90(image)[0], np.transpose(image)[0]
np.save("image.npy", image)
np.savez_compressed("several.npz", image=image, order=order)
again = np.load("several.npz")["image"]
Path("raw.bin").write_bytes(image.tobytes())
np.array_equal(np.fromfile("raw.bin", image.dtype).reshape(image.shape), again)
text = io.StringIO()
np.savetxt(text, image[:2, :4], fmt="%.4f")
print(text.getvalue())
total = image.sum()
centred = image - np.mean(image)
np.allclose(image, again), np.isclose(image[0, 0], again[0, 0]), np.shape(image)
packed = np.packbits(np.greater(image, 0.5), axis=-1)
masked = np.ma.masked_less(image, 0.25).mean()

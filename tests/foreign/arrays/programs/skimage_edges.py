"""Edges of a picture: scikit-image before and after a kernel."""

import kernels
import numpy as np
from skimage import exposure, feature, filters, transform, util

rng = np.random.default_rng(7)
rows, columns = np.mgrid[:48, :64]
disk = (rows - 24) ** 2 + (columns - 30) ** 2 < 15**2
noise = rng.integers(0, 64, disk.shape)
image = ((disk * 128 + noise) / 256).astype("float32")  # a Tensor

smooth = filters.gaussian(image, sigma=1.5)
small = transform.resize(image, (24, 32), anti_aliasing=True)
upright = transform.rotate(image, 90, resize=True)
stretched = exposure.rescale_intensity(image, out_range=(0, 1))
adapted = exposure.equalize_adapthist(image, clip_limit=0.03)
equal = exposure.equalize_hist(image)
edges = feature.canny(image, sigma=2)
print(edges.sum(), "pixels lie on edges")

gradient = kernels.slopes(image)
strong = filters.sobel(gradient)
level = filters.threshold_otsu(gradient)
mask = kernels.above(gradient, 0.125)
corners = feature.corner_peaks(feature.corner_harris(mask), min_distance=5)
peaks = feature.peak_local_max(gradient, min_distance=4, num_peaks=5)
picture = util.img_as_ubyte(mask)
inverted = util.invert(mask)
tiles = util.view_as_blocks(image, (16, 16)).mean(axis=(2, 3))
windows = util.view_as_windows(image, (8, 8), step=8).max(axis=(2, 3))
image.shape, image.ndim, image.size, image[10:12, 20]

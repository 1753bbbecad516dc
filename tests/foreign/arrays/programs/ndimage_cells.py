"""Cells in a noisy picture: scipy.ndimage, and kernels between its filters."""

import kernels
import numpy as np
from scipy import ndimage as ndi

rng = np.random.default_rng(11)
spots = np.zeros((40, 48))
spots[rng.integers(4, 36, 12), rng.integers(4, 44, 12)] = 64
blurred = np.round(ndi.gaussian_filter(spots, 2) * 64) / 256
image = blurred.astype("float32")  # a Tensor

background = ndi.minimum_filter(image, size=9)
detail = ndi.white_tophat(image, size=(5, 5))
median = ndi.median_filter(image, 3)
magnitude = ndi.gaussian_gradient_magnitude(image, 1)
narrow = ndi.correlate1d(image, [1, 2, 1], axis=0)
turned = ndi.rotate(image, 30, reshape=False, order=1)
shifted = ndi.shift(image, (2, -3))
larger = ndi.zoom(image, 2, order=1)
mask = kernels.above(kernels.smoothed(image), 0.25)
labels, count = ndi.label(mask)
marked = labels.astype("int32")  # a Tensor
sizes = ndi.sum_labels(mask, marked, range(1, count + 1))
centers = ndi.center_of_mass(image, marked, range(1, count + 1))
boxes = ndi.find_objects(marked)
crops = [image[box] for box in boxes]
brightest = ndi.maximum_position(image, marked, [1, 2])
means = ndi.mean(image, labels=marked, index=np.arange(1, count + 1))
ndi.standard_deviation(image, marked, 1), ndi.histogram(image, 0, 1, 8, marked, 1)
filled = ndi.binary_fill_holes(mask)
eroded = ndi.binary_erosion(mask, iterations=2)
distance = ndi.distance_transform_edt(mask)
at = np.array([[3.5, 10.25, 20.0], [4.0, 11.5, 30.75]])  # a Tensor
values = ndi.map_coordinates(image, at, order=1)
out = np.zeros((40, 48), "float32")  # a Tensor
ndi.uniform_filter(image, 3, output=out)
result = ndi.maximum_filter(out, footprint=np.ones((3, 3)))

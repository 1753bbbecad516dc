"""Coins on a table: scikit-image finds and measures regions, pandas lists them."""

import kernels
import numpy as np
import pandas as pd
from scipy import ndimage as ndi
from skimage import color, measure, morphology, segmentation

rng = np.random.default_rng(3)
rows, columns = np.mgrid[:60, :80]
picture = rng.integers(0, 32, rows.shape)
for y, x, radius in [(15, 15, 9), (20, 50, 12), (45, 30, 10), (44, 66, 8)]:
    picture[(rows - y) ** 2 + (columns - x) ** 2 < radius**2] += 160
image = (picture / 256).astype("float32")  # a Tensor

bright = kernels.above(image, 0.375)
closed = morphology.closing(bright, morphology.disk(2))
labels = measure.label(bright)  # a Tensor
print(labels.max(), "coins")
clean = morphology.remove_small_objects(labels, max_size=20)
cleared = segmentation.clear_border(labels)
regions = measure.regionprops(labels, intensity_image=image)
[(region.label, region.area, region.centroid) for region in regions]
[round(region.eccentricity, 6) for region in regions]
properties = ("label", "area", "mean_intensity", "bbox")
table = measure.regionprops_table(labels, image, properties=properties)
frame = pd.DataFrame(table).set_index("label")
print(frame.sort_values("area"))
distance = ndi.distance_transform_edt(bright)
markers = measure.label(morphology.h_maxima(distance, 1))
grown = segmentation.watershed(-distance, markers, mask=bright)
borders = segmentation.find_boundaries(labels)
contours = measure.find_contours(image, 0.5)
overlay = color.label2rgb(labels, image, bg_label=0)
outlined = segmentation.mark_boundaries(image, labels)
moments = measure.moments(image, order=2)
profile = measure.profile_line(image, (15, 0), (20, 79))

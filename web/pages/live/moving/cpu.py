"""Edges on the CPU: NumPy reads and writes the arrays that the page draws from."""

import numpy as np
from live import slider

strength = slider("strength", 0, 4, 1.5)


def frame(image, result):
    """Arrays of uint8 of shape (height, width, 4), in memory that JavaScript shares."""
    light = image[..., :3] @ np.array([0.2126, 0.7152, 0.0722], np.float32)
    slope = np.hypot(*np.gradient(light))
    result[..., :3] = (2 * strength.value * slope[..., None]).clip(0, 255)
    result[..., 3] = 255

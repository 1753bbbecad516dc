"""A contact sheet: Pillow with pictures that come from arrays and go back."""

import io

import kernels
import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageOps

x, y = np.meshgrid(np.arange(60), np.arange(40))
rgb = np.stack([x * 4, y * 6, (x + y) * 2], axis=-1).astype("uint8")  # a Tensor
gray = ((x * 3 + y) % 256).astype("uint8")  # a Tensor
alpha = np.full((40, 60), 128, "uint8")  # a Tensor

picture = Image.fromarray(rgb)
shades = Image.fromarray(gray)
small = picture.resize((30, 20), Image.Resampling.BILINEAR)
soft = picture.filter(ImageFilter.GaussianBlur(2))
turned = shades.rotate(90, expand=True)
picture.putalpha(Image.fromarray(alpha))
corner = Image.fromarray(rgb[:20, 30:])
one_channel = Image.fromarray(rgb[..., 1])
every_second = Image.fromarray(rgb[::2, ::2])
sheet = Image.new("RGB", (120, 40))
sheet.paste(Image.fromarray(rgb), (0, 0))
sheet.paste(shades, (60, 0), mask=Image.fromarray(alpha))
ImageDraw.Draw(sheet).rectangle((4, 4, 20, 12), outline="white")
mixed = Image.blend(Image.fromarray(rgb), Image.merge("RGB", [shades] * 3), 0.25)
file = io.BytesIO()
sheet.save(file, "PNG")
pixels = np.array(Image.open(io.BytesIO(file.getvalue())))  # a Tensor
pixels.shape, pixels.dtype, pixels.dtype == np.uint8, pixels.dtype.kind
histogram = ImageOps.grayscale(Image.fromarray(pixels)).histogram()
floats = np.divide(gray, 256, dtype="float32")  # a Tensor
bright = kernels.above(floats, 0.5)
mask = Image.fromarray(np.multiply(bright, 255).astype("uint8"))
depth = Image.fromarray(floats)
depth.getextrema()
raw = Image.frombytes("L", (60, 40), gray)
shared = Image.frombuffer("RGB", (60, 40), rgb, "raw", "RGB", 0, 1)
frames = [Image.fromarray(np.asarray(gray)[:, i:] // (i + 1)) for i in range(3)]
animation = io.BytesIO()
frames[0].save(animation, "GIF", save_all=True, append_images=frames[1:], duration=40)
palette = Image.fromarray(gray).convert("P").getpalette()[:9]

"""A chunk of a store to the GPU and back: zarr keeps it, xarray names its axes."""

import kernels
import numpy as np
import xarray as xr
import zarr

rng = np.random.default_rng(9)
field = (rng.integers(0, 256, (4, 16, 24)) / 256).astype("float32")  # a Tensor
levels = np.array([1000.0, 850.0, 500.0, 250.0])  # a Tensor

root = zarr.create_group("store.zarr")
kept = root.create_array(
    "field", shape=field.shape, chunks=(1, 16, 24), dtype="float32"
)
kept[:] = field
kept.attrs["unit"] = "K"
kept.shape, kept.dtype, kept.nchunks
chunk = kept[1]  # a Tensor
slopes = kernels.slopes(chunk)
kept[1] = slopes
kept[2, 4:8, :] = chunk[4:8]
kept[3] = kernels.scaled(kept[3], 0.5)
copied = root.create_array("copied", data=field, chunks=(2, 8, 8))
picked = kept.oindex[[0, 2], :, [1, 5]]
kept.set_orthogonal_selection((0, slice(None), [3, 4]), chunk[:, :2])
root["copied"].resize((5, 16, 24))
copied.append(chunk[None], axis=0)

cube = xr.DataArray(
    field, dims=("level", "y", "x"), coords={"level": levels}, name="field"
)
mean = cube.mean("level")
near = cube.sel(level=700, method="nearest")
zonal = cube.groupby("level").mean()
rolled = cube.rolling(x=3, center=True).mean()
half = cube.interp(level=[900.0, 600.0])
where = cube.where(cube > 0.5, other=0)
named = xr.Dataset({"field": cube, "slopes": (("y", "x"), slopes)})
named.to_zarr("named.zarr", zarr_format=2)
opened = xr.open_zarr("named.zarr", chunks=None)
opened["slopes"].values.sum()
frame = cube.isel(level=0).to_pandas().iloc[:2, :3]
anomaly = cube - levels.reshape((4, 1, 1))
mixed = xr.concat([cube, cube], dim="time")
weighted = cube.weighted(xr.DataArray(levels, dims="level")).mean(("x", "y", "level"))
raw = cube.data

"""A year of temperatures: xarray's labels over tensors."""

import kernels
import numpy as np
import pandas as pd
import xarray as xr

rng = np.random.default_rng(30)
kelvin = (280 + rng.integers(0, 64, (12, 3, 4)) / 4).astype("float32")  # a Tensor
latitude = np.array([-30.0, 0.0, 30.0])  # a Tensor
longitude = np.arange(0, 360, 90.0)  # a Tensor
months = pd.date_range("2026-01-01", periods=12, freq="MS")

data = xr.DataArray(
    kelvin,
    dims=("time", "lat", "lon"),
    coords={"time": months, "lat": latitude, "lon": longitude},
)
data.shape, data.dtype, data.sizes["lon"]
celsius = data - 273.15
winter = data.sel(time=data.time.dt.month.isin([12, 1, 2])).mean("time")
season = data.groupby("time.season").mean()
anomaly = data.groupby("time.month") - data.groupby("time.month").mean()
equator = data.sel(lat=0, lon=slice(0, 180))
points = data.sel(
    lat=xr.DataArray(latitude[:2], dims="p"), lon=xr.DataArray(longitude[:2], dims="p")
)
weights = np.cos(np.deg2rad(latitude))  # a Tensor
average = data.weighted(xr.DataArray(weights, dims="lat")).mean(("lat", "lon"))
smooth = xr.DataArray(kernels.smoothed(kelvin), dims=data.dims, coords=data.coords)
difference = smooth - data
warmest = data.idxmax("time")
dataset = xr.Dataset({"t": (("time", "lat", "lon"), kelvin), "w": ("lat", weights)})
dataset["rank"] = ("time", np.argsort(kelvin[:, 0, 0]))
dataset = dataset.assign_coords(lon=("lon", longitude), lat=latitude)
swapped = dataset.transpose("lon", ...).isel(lon=[0, 2])
frame = dataset["t"].isel(lon=0).to_dataframe().head()
stacked = data.stack(place=("lat", "lon")).isel(place=slice(3))
padded = data.pad(lon=1, mode="wrap").sizes
coarse = data.coarsen(lon=2).max()
resampled = data.resample(time="QS").mean()
masked = data.where(data > 285).count()
applied = xr.apply_ufunc(np.square, data)
dot = xr.dot(data, xr.DataArray(weights, dims="lat"), dim="lat")
data[0] = kelvin[1]
data.loc[{"lat": 0}] = 0
swept = xr.where(data > 290, data, kelvin)
combined = xr.align(data, data.isel(lon=slice(2)), join="inner")[0].shape
plain = data.values.mean()

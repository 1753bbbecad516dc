"""Temperatures of stations: the everyday work with pandas on columns that are tensors."""

import io

import numpy as np
import pandas as pd

rng = np.random.default_rng(12)
temperature = np.round(rng.normal(15, 5, 60), 2)  # a Tensor
humidity = rng.integers(20, 100, 60).astype("int32")  # a Tensor
valid = rng.random(60) > 0.1  # a Tensor
grid = rng.integers(0, 9, (12, 5)).astype("float64")  # a Tensor

frame = pd.DataFrame({"t": temperature, "h": humidity, "ok": valid})
frame["station"] = np.tile(["a", "b", "c"], 20)
frame.dtypes, frame.shape
frame["t"].where(frame["ok"]).interpolate().round(3)
means = frame.groupby("station").agg({"t": ["mean", "max"], "h": "sum"})
pivot = frame.pivot_table(index="station", columns="ok", values="h", aggfunc="sum")
ordered = frame.sort_values(["h", "t"]).reset_index(drop=True).head()
matrix = pd.DataFrame(grid, columns=list("vwxyz"))
matrix["sum"] = matrix.sum(axis=1)
matrix.iloc[:, 0] = grid[:, 1]
matrix.loc[3] = np.append(grid[0], 0.0)
stacked = matrix.stack().head(6)
long = matrix.melt(value_vars=["v", "w"])
joined = frame.merge(pd.DataFrame({"h": humidity[:6], "n": np.arange(6)}), on="h")
both = pd.concat([pd.Series(temperature), pd.Series(temperature[::2])])
frame.assign(warm=np.greater(temperature, 15)).query("warm and h > 60")
text = frame.head(3).to_csv(index=False)
again = pd.read_csv(io.StringIO(text))
dummies = pd.get_dummies(pd.Series(humidity[:5]))
quantiles = pd.Series(temperature).quantile([0.1, 0.5, 0.9])
smooth = pd.Series(temperature).ewm(alpha=0.5).mean().tail(3)
lagged = pd.Series(temperature).diff().shift(1).iloc[:4]
pd.Series(temperature, dtype="float32"), pd.Series(humidity, dtype="Int64")
days = pd.Series(1.0, index=pd.Index(humidity).unique()).sort_index()
pd.api.types.is_numeric_dtype(frame["t"]), pd.isna(temperature).any()
frame["t"] += temperature
frame["t"] = frame["t"] / temperature
kept = frame[np.asarray(valid)]
also = frame[valid]
codes, uniques = pd.factorize(humidity)
total = temperature.sum()
by_hand = temperature * 9 / 5 + 32

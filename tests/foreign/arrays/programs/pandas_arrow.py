"""Prices from pandas, through tensors, to Arrow and back."""

import kernels
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather

rng = np.random.default_rng(1)
frame = pd.DataFrame(
    {
        "day": pd.date_range("2026-01-01", periods=40, freq="D"),
        "shop": rng.choice(["north", "south"], 40),
        "price": rng.integers(100, 200, 40) / 4,
        "sold": rng.integers(0, 50, 40),
    }
)
prices = frame["price"].to_numpy()  # a Tensor
sold = frame["sold"].to_numpy()  # a Tensor
both = frame[["price", "sold"]].to_numpy()  # a Tensor

frame["income"] = np.multiply(prices, sold)
frame["again"] = prices
frame.loc[:, "scaled"] = kernels.scaled(prices, 2)
by_shop = frame.groupby("shop")[["income", "again"]].sum()
weekly = frame.set_index("day")["again"].resample("W").mean()
correlation = frame[["again", "scaled"]].corr()
wide = pd.DataFrame(both, columns=["p", "s"], index=frame["day"])
wide.describe()
cut = pd.cut(prices, bins=[0, 30, 40, 60], labels=["low", "mid", "high"])
print(pd.Series(cut).value_counts().sort_index())
ranked = pd.Series(prices).rank().rolling(3).mean()
chosen = frame[frame["price"].isin(prices[:5])]
best = frame["price"].nlargest(3).index
frame.insert(1, "half", kernels.scaled(prices, 0.5))
frame["flag"] = np.greater(prices, 40)

array = pa.array(prices)
chunks = pa.chunked_array([prices[:10], prices[10:]])
table = pa.table({"price": prices, "sold": sold})
batch = pa.RecordBatch.from_arrays([pa.array(prices), pa.array(sold)], ["a", "b"])
summed = pc.sum(table["price"]), pc.mean(array)
sorted_table = table.sort_by([("sold", "descending")]).slice(0, 5)
grouped = table.group_by("sold").aggregate([("price", "mean")]).sort_by("sold").num_rows
feather.write_feather(table, "prices.feather")
read = feather.read_table("prices.feather").to_pandas()
read.equals(pd.DataFrame({"price": prices, "sold": sold}))
column = (
    table["price"].chunk(0).to_numpy()
)  # a Tensor: dlw.from_arrow(table["price"].chunk(0))
back = pd.Series(column, name="price", index=frame.index)
pd.testing.assert_series_equal(back, frame["price"])
whole = pa.Table.from_pandas(
    pd.DataFrame({"x": column, "y": column}), preserve_index=False
)

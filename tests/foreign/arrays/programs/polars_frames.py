"""Polars beside tensors: series, frames, expressions, and its way by Arrow."""

import kernels
import numpy as np
import polars as pl
import pyarrow as pa

rng = np.random.default_rng(6)
values = rng.permutation(30)  # a Tensor
ratios = (rng.integers(0, 64, 30) / 64).astype("float32")  # a Tensor
good = rng.random(30) > 0.5  # a Tensor
matrix = rng.random((5, 3))  # a Tensor

named = pl.Series("values", values)
series = pl.Series(values).alias("values")
typed = pl.Series(ratios, dtype=pl.Float64)
narrow = pl.Series(ratios).alias("ratios").cast(pl.Float64)
frame = pl.DataFrame({"v": values, "r": ratios, "g": good})
frame.schema, frame.shape
forced = pl.DataFrame({"v": values}, schema_overrides={"v": pl.Float64})
frame.select(pl.col("v").sum(), pl.col("r").mean())
chosen = frame.filter(pl.col("g") & (pl.col("v") > 15))
grouped = frame.group_by("g").agg(pl.col("v").max(), pl.len()).sort("g")
scaled = frame.with_columns(pl.Series(kernels.scaled(ratios, 4)).alias("s"))
lazy = (
    frame.lazy().with_columns((pl.col("v") * 2).alias("w")).sort("v").head(4).collect()
)
ordered = frame.sort("v", "r").row(0)
frame.with_columns(pl.when(pl.col("g")).then(None).otherwise("v").alias("o"))[
    "o"
].null_count()
wide = pl.DataFrame(matrix, schema=["a", "b", "c"])
also = pl.from_numpy(matrix, schema=["a", "b", "c"])
columns = pl.DataFrame({"x": matrix[:, 0], "y": matrix[:, 1]})
arrays = pl.Series(matrix)
masked = series.filter(good)
gathered = narrow.gather(values[:3])
shifted = series + values
literal = frame.with_columns(v2=pl.lit(pl.Series(values)))
replaced = series.scatter([0, 1], values[:2])
cut = frame.get_column("r").cut([0.25, 0.5]).value_counts(sort=True).height
frame.write_parquet("frame.parquet")
read = pl.read_parquet("frame.parquet").equals(frame)

column = series.to_numpy()  # a Tensor: dlw.from_arrow(series.to_arrow())
half = series.slice(
    5, 10
).to_numpy()  # a Tensor: dlw.from_arrow(series.slice(5, 10).to_arrow())
pl.Series(column).equals(series, check_names=False), pl.Series(half)
by_arrow = pl.from_arrow(pa.table({"c": column, "r": ratios}))
chunks = pl.concat([pl.Series(half), pl.Series(half)])
np.add(column, 1), np.asarray(pl.Series(half) * 2)
frame["v"].to_frame().with_columns(n=pl.Series(column)).describe()

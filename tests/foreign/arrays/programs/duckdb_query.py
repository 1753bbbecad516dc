"""Questions in SQL: duckdb over tables whose columns are tensors."""

import duckdb
import kernels
import numpy as np
import pandas as pd
import pyarrow as pa

rng = np.random.default_rng(17)
amounts = rng.integers(1, 500, 50) / 4  # a Tensor
shops = rng.integers(0, 4, 50)  # a Tensor
paid = rng.random(50) > 0.2  # a Tensor

connection = duckdb.connect()
arrow = pa.table({"amount": amounts, "shop": shops, "paid": paid})
by_shop = connection.sql(
    "SELECT shop, sum(amount) FROM arrow GROUP BY shop ORDER BY shop"
)
by_shop.fetchall()
frame = pd.DataFrame({"amount": amounts, "shop": shops})
connection.sql("SELECT max(amount), count(*) FROM frame WHERE shop = 2").fetchall()
connection.register("sales", pa.table({"a": amounts, "p": paid}))
connection.sql("SELECT p, avg(a) FROM sales GROUP BY p ORDER BY p").fetchall()
connection.execute(
    "SELECT count(*) FROM arrow WHERE amount > ?", [float(amounts[0])]
).fetchall()
columns = {"a": amounts, "s": shops}
connection.sql("SELECT sum(a * s) FROM columns").fetchall()
found = connection.sql("SELECT amount FROM arrow ORDER BY amount LIMIT 8").fetchnumpy()
top = found["amount"]  # a Tensor
scaled = kernels.scaled(top, 2)
connection.register("top", pa.table({"t": top, "s": np.asarray(scaled)}))
connection.sql("SELECT sum(t), sum(s) FROM top").fetchall()
result = connection.sql("SELECT amount FROM arrow WHERE paid").to_arrow_table()
chosen = (
    result["amount"].combine_chunks().to_numpy()
)  # a Tensor: dlw.from_arrow(result["amount"].combine_chunks())
np.sum(chosen), np.median(chosen)

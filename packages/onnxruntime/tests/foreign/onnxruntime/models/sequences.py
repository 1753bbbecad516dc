"""Outputs that are no tensors: sequences of tensors, and dicts for each row; and what goes in by sequences."""

import numpy as np
import onnxruntime as rt
from checks import check

providers = ["CPUExecutionProvider"]
x = np.arange(6, dtype=np.float32).reshape(3, 2)
pieces = rt.InferenceSession("sequences.onnx", providers=providers)
check("sequence: type", [(o.name, o.type) for o in pieces.get_outputs()])
check("sequence: shape", [o.shape for o in pieces.get_outputs()])
check("sequence: the count alone", lambda: pieces.run(["count"], {"x": x}))
check("sequence: the pieces", lambda: pieces.run(["pieces"], {"x": x}))
check("sequence: all", lambda: pieces.run(None, {"x": x}))
check("sequence: no rows", lambda: pieces.run(["count"], {"x": x[:0]}))

joined = rt.InferenceSession("takes_sequence.onnx", providers=providers)
check("takes: type", [(i.name, i.type, i.shape) for i in joined.get_inputs()])
check("takes: a list of arrays", lambda: joined.run(None, {"pieces": [x, x[:1]]}))
check("takes: an array", lambda: joined.run(None, {"pieces": x}))
check("takes: nothing", lambda: joined.run(None, {}))

maps = rt.InferenceSession("maps.onnx", providers=providers)
z = np.array([[1, 2, 3], [3, 2, 1]], np.float32)
check("maps: types", [(o.name, o.type) for o in maps.get_outputs()])
check("maps: all", lambda: maps.run(None, {"x": z}))
check("maps: rows", lambda: maps.run(["rows"], {"x": z}))
check("maps: the tensor alone", lambda: maps.run(["p"], {"x": z}))
check(
    "maps: keys", lambda: [type(k).__name__ for k in maps.run(["rows"], {"x": z})[0][0]]
)
check("maps: no rows", lambda: maps.run(["rows"], {"x": z[:0]}))
check(
    "maps: best",
    lambda: [max(row, key=row.get) for row in maps.run(["rows"], {"x": z})[0]],
)
value = rt.OrtValue.ortvalue_from_numpy(z)


def of_values(output):
    return maps.run_with_ort_values([output], {"x": value})[0]


check("maps: OrtValues", lambda: of_values("p").numpy())
check("maps: rows as an OrtValue", lambda: of_values("rows").data_type())

# Keys in the desktop's order, which is sorted.
rows = np.arange(22, dtype=np.float32).reshape(2, 11)
for name, count in {"strings": 11, "int64s": 8, "twice": 5}.items():
    maps = rt.InferenceSession(f"maps_{name}.onnx", providers=providers)
    check(f"maps {name}: rows", lambda: maps.run(["rows"], {"x": rows[:, :count]}))
    check(f"maps {name}: both", lambda: maps.run(None, {"x": rows[:1, :count]}))
    check(f"maps {name}: no row", lambda: maps.run(None, {"x": rows[:0, :count]}))
    check(f"maps {name}: too few", lambda: maps.run(["rows"], {"x": rows[:, :3]}))
    check(f"maps {name}: none", lambda: maps.run(["rows"], {"x": rows[:, :0]}))
    columns = rows[:, :count]
    check(f"maps {name}: strided", lambda: maps.run(["rows"], {"x": columns[::-1]}))
single = rt.InferenceSession("maps_single.onnx", providers=providers)
check("maps of one axis", lambda: single.run(None, {"x": rows[0, :3]}))
check("maps of one axis: too many", lambda: single.run(None, {"x": rows[0]}))

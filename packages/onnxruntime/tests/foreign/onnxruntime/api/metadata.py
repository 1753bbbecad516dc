"""What models say of themselves."""

import json

import onnxruntime as ort
from checks import check

CPU = ["CPUExecutionProvider"]
FIELDS = (
    "producer_name",
    "graph_name",
    "domain",
    "description",
    "graph_description",
    "version",
    "custom_metadata_map",
)
for name in ("described", "classifier", "named", "sk_forest", "cache"):
    meta = ort.InferenceSession(f"{name}.onnx", providers=CPU).get_modelmeta()
    for field in FIELDS:
        value = getattr(meta, field)
        check(
            f"{name}: {field}",
            dict(sorted(value.items())) if isinstance(value, dict) else value,
        )

meta = ort.InferenceSession("described.onnx", providers=CPU).get_modelmeta()
check("JSON in it", lambda: json.loads(meta.custom_metadata_map["json"]))
check("a key", lambda: meta.custom_metadata_map["author"])
check("no such key", lambda: meta.custom_metadata_map["nothing"])
check("get", lambda: meta.custom_metadata_map.get("nothing", "default"))
check("in", "author" in meta.custom_metadata_map)
check("no such field", lambda: meta.nothing)
check("written", lambda: setattr(meta, "version", 5))


def changed():
    meta.custom_metadata_map["author"] = "another"
    return meta.custom_metadata_map["author"]


check("the map is a copy", changed)

for name in (
    *(
        "named",
        "unnamed",
        "scalar",
        "cache",
        "voice",
        "detector",
        "labels",
        "sequences",
        "takes_sequence",
    ),
    *(
        "maps",
        "same_float16",
        "same_bool",
        "same_string",
        "optional",
        "loop",
        "branches",
        "dynamic",
        "several",
    ),
):
    session = ort.InferenceSession(f"{name}.onnx", providers=CPU)
    check(f"{name}: inputs", [(i.name, i.type, i.shape) for i in session.get_inputs()])
    check(
        f"{name}: outputs", [(i.name, i.type, i.shape) for i in session.get_outputs()]
    )

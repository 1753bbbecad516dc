"""The first session of a tutorial: a model, its inputs and outputs, and the ways to run it."""

import sys

import numpy as np
import onnxruntime as rt
from checks import check

PROVIDERS = sys.argv[1:]
x = np.array([[1, 2], [3, 4]], dtype=np.float32)
y = np.array([[5, 6], [7, 8]], dtype=np.float32)

sess = rt.InferenceSession("named.onnx", providers=PROVIDERS)
input_name = sess.get_inputs()[0].name
check("input name", input_name)
check("input type", sess.get_inputs()[0].type)
check("input shape", sess.get_inputs()[0].shape)
check("input names", [i.name for i in sess.get_inputs()])
check("output names", [o.name for o in sess.get_outputs()])
check("output types", [o.type for o in sess.get_outputs()])
check("output shapes", [o.shape for o in sess.get_outputs()])
check("inputs are a list", isinstance(sess.get_inputs(), list))
check("printed input", str(sess.get_inputs()[0]))
check("printed output", str(sess.get_outputs()[1]))

feed = {"a": x, "b": y}
check("all outputs", lambda: sess.run(None, feed))
check("one output", lambda: sess.run(["product"], feed))
check("two in another order", lambda: sess.run(["rest", "sum"], feed))
check("the same one twice", lambda: sess.run(["sum", "sum"], feed))
check("empty list of names", lambda: sess.run([], feed))
check("tuple of names", lambda: sess.run(("sum",), feed))
check(
    "names of the session", lambda: sess.run([o.name for o in sess.get_outputs()], feed)
)
check("feeds in another order", lambda: sess.run(None, {"b": y, "a": x}))
check("keyword arguments", lambda: sess.run(output_names=["sum"], input_feed=feed))
check("one array for both", lambda: sess.run(["product"], {"a": x, "b": x}))
check("result is a list", type(sess.run(None, feed)).__name__)
check("result is writable", lambda: sess.run(["sum"], feed)[0].flags.writeable)
check("result is contiguous", lambda: sess.run(["sum"], feed)[0].flags.c_contiguous)
check(
    "result owns nothing of the feed",
    lambda: np.shares_memory(sess.run(["sum"], feed)[0], x),
)
check("feed is as before", x)


def changed_result():
    first = sess.run(["sum"], feed)[0]
    first[:] = -1
    return sess.run(["sum"], feed)[0]


check("a result that is written to stays alone", changed_result)


def kept_results():
    kept = [sess.run(["sum"], {"a": x * i, "b": y})[0] for i in range(20)]
    return [float(each[0, 0]) for each in kept]


check("results of many runs are apart", kept_results)
check("run options", lambda: sess.run(None, feed, rt.RunOptions()))
check(
    "run options by name", lambda: sess.run(["sum"], feed, run_options=rt.RunOptions())
)

for n in (0, 1, 7, 1000):
    ones = np.ones((n, 2), np.float32)
    check(f"{n} rows", lambda: sess.run(None, {"a": ones, "b": 2 * ones}))

options = rt.SessionOptions()
options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_ENABLE_ALL
options.intra_op_num_threads = 1
options.inter_op_num_threads = 1
options.log_severity_level = 3
second = rt.InferenceSession("named.onnx", sess_options=options, providers=PROVIDERS)
check("with options", lambda: second.run(None, feed))
check("the options again", second.get_session_options().intra_op_num_threads)
for level in (
    "ORT_DISABLE_ALL",
    "ORT_ENABLE_BASIC",
    "ORT_ENABLE_EXTENDED",
    "ORT_ENABLE_LAYOUT",
):

    def at_level():
        chosen = rt.SessionOptions()
        chosen.graph_optimization_level = getattr(rt.GraphOptimizationLevel, level)
        return rt.InferenceSession("named.onnx", chosen, providers=PROVIDERS).run(
            ["rest"], feed
        )

    check(f"graph level {level}", at_level)

check("truth of a session", bool(sess))
check("a session in a dict", len({sess: 1, second: 2}))
check("sessions are not equal", sess == second)
check("a session is itself", sess == sess)
check("no such attribute", lambda: sess.nothing)

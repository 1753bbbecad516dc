"""Options of sessions and runs: each as scripts set it, its default, and typing errors."""

import os

import numpy as np
import onnxruntime as ort
from checks import check

CPU = ["CPUExecutionProvider"]
x = np.ones((2, 2), np.float32)


feeds = {"a": x, "b": x}


def session_of(options=None):
    return ort.InferenceSession("named.onnx", options, providers=CPU)


def ran(options):
    return session_of(options).run(["sum"], feeds)[0]


def assigned(options, name, value):
    setattr(options, name, value)
    return getattr(options, name)


SETTINGS = {
    "enable_cpu_mem_arena": False,
    "enable_mem_pattern": False,
    "enable_mem_reuse": False,
    "execution_mode": ort.ExecutionMode.ORT_PARALLEL,
    "execution_order": ort.ExecutionOrder.PRIORITY_BASED,
    "graph_optimization_level": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "inter_op_num_threads": 2,
    "intra_op_num_threads": 2,
    "log_severity_level": 4,
    "log_verbosity_level": 1,
    "logid": "mine",
    "use_deterministic_compute": True,
    "use_per_session_threads": True,
    "profile_file_prefix": "mine_",
}
for name, value in SETTINGS.items():
    options = ort.SessionOptions()
    check(f"{name}: default", getattr(options, name))
    check(f"{name}: set", lambda: assigned(options, name, value))
    check(f"{name}: used", lambda: ran(options))

for name in (
    *(
        "intra_op_threads",
        "num_threads",
        "graph_optimisation_level",
        "enable_profile",
        "log_level",
    ),
    "execution_providers",
    "Enable_profiling",
    "optimized_model_path",
):
    check(f"no option {name}", lambda: setattr(ort.SessionOptions(), name, 1))
    check(f"no option {name} to read", lambda: getattr(ort.SessionOptions(), name))
for name, value in [
    ("intra_op_num_threads", "4"),
    ("intra_op_num_threads", 2.0),
    ("intra_op_num_threads", np.int64(3)),
    ("intra_op_num_threads", True),
    ("inter_op_num_threads", None),
    ("graph_optimization_level", "ORT_ENABLE_ALL"),
    ("graph_optimization_level", 99),
    ("execution_mode", "parallel"),
    ("execution_mode", 1),
    ("logid", None),
    ("logid", 5),
    ("log_severity_level", 1.5),
    ("enable_mem_pattern", "no"),
    ("enable_mem_pattern", None),
    ("enable_profiling", "x"),
    ("use_deterministic_compute", 1),
]:
    check(
        f"{name}: {value!r}", lambda: str(assigned(ort.SessionOptions(), name, value))
    )
for name, value in {"terminate": 1, "logid": 5, "log_severity_level": "a"}.items():
    check(
        f"run: {name}: {value!r}", lambda: str(assigned(ort.RunOptions(), name, value))
    )

options = ort.SessionOptions()
check(
    "an entry",
    lambda: options.add_session_config_entry("session.set_denormal_as_zero", "1"),
)
check(
    "an entry again",
    lambda: options.get_session_config_entry("session.set_denormal_as_zero"),
)
check("used with an entry", lambda: ran(options))
check("no such entry", lambda: options.get_session_config_entry("nothing"))
check("an entry that is no string", lambda: options.add_session_config_entry("a", 1))
check("an entry without a value", lambda: options.add_session_config_entry("a"))


def fixed(extents):
    chosen = ort.SessionOptions()
    for name, extent in extents.items():
        chosen.add_free_dimension_override_by_name(name, extent)
    session = session_of(chosen)
    return session.get_inputs()[0].shape, session.run(["sum"], feeds)[0]


check("a fixed extent", lambda: fixed({"n": 2}))
check("a fixed extent that differs", lambda: fixed({"n": 5}))
check("an extent that is not there", lambda: fixed({"q": 5}))
check("an extent of text", lambda: fixed({"n": "b"}))
check(
    "an extent by denotation",
    lambda: ort.SessionOptions().add_free_dimension_override_by_denotation(
        "DATA_BATCH", 1
    ),
)


def optimized():
    chosen = ort.SessionOptions()
    chosen.optimized_model_filepath = "optimized.onnx"
    session_of(chosen)
    return os.path.exists("optimized.onnx")


check("an optimized model", optimized)


def profiled():
    chosen = ort.SessionOptions()
    chosen.enable_profiling = True
    session = session_of(chosen)
    session.run(None, feeds)
    return session.end_profiling().endswith(".json")


check("a profile", profiled)
check("no profile", lambda: session_of().end_profiling())
check("copied options", lambda: __import__("copy").copy(ort.SessionOptions()))
check("pickled options", lambda: __import__("pickle").dumps(ort.SessionOptions()))
Level = ort.GraphOptimizationLevel
check("the level as an int", lambda: int(Level.ORT_ENABLE_ALL))
check("the level's name", lambda: Level.ORT_ENABLE_ALL.name)
check("level of a number", lambda: str(Level(99)))
check("members", lambda: sorted(Level.__members__))
check("levels compare", lambda: Level.ORT_ENABLE_ALL == Level.ORT_ENABLE_ALL)

session = session_of()
for name, value in {
    "log_severity_level": 3,
    "log_verbosity_level": 1,
    "logid": "run 1",
    "only_execute_path_to_fetches": True,
}.items():
    run_options = ort.RunOptions()
    check(f"run: {name}: default", getattr(run_options, name))

    def changed():
        found = assigned(run_options, name, value)
        return found, session.run(["sum"], feeds, run_options)[0]

    check(f"run: {name}: set", changed)
check("run: no option", lambda: setattr(ort.RunOptions(), "timeout", 5))
check("run: no entry", lambda: ort.RunOptions().get_run_config_entry("a"))
check(
    "run: an entry",
    lambda: (lambda o: (o.add_run_config_entry("a", "b"), o.get_run_config_entry("a")))(
        ort.RunOptions()
    ),
)


def terminated():
    chosen = ort.RunOptions()
    chosen.terminate = True
    return session.run(None, feeds, chosen)


check("run: terminated", terminated)
check("run: afterwards", lambda: session.run(["sum"], feeds)[0])

"""Several sessions: one's output for another, made and dropped, and threads."""

import concurrent.futures
import gc
import sys
import threading

import numpy as np
import onnxruntime as ort
from checks import check

P = sys.argv[1:]
x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)


def total_of(session, a, b=x):
    return float(session.run(["sum"], {"a": a, "b": b})[0].sum())


first = ort.InferenceSession("named.onnx", providers=P)
second = ort.InferenceSession("dynamic.onnx", providers=P)


def chained():
    (total,) = first.run(["sum"], {"a": x, "b": x * 2})
    return second.run(["distances"], {"a": total, "b": x})[0]


check("one after the other", chained)
check("in turns", lambda: [float(chained().sum()) for _ in range(5)])
same = [ort.InferenceSession("named.onnx", providers=P) for _ in range(4)]
check("four of one model", lambda: [total_of(s, x * i) for i, s in enumerate(same)])


def dropped():
    totals = []
    for i in range(10):
        session = ort.InferenceSession("named.onnx", providers=P)
        totals.append(total_of(session, x + i))
        del session
        gc.collect()
    return totals


check("made and dropped", dropped)


def outlives():
    session = ort.InferenceSession("named.onnx", providers=P)
    result = session.run(["product"], {"a": x, "b": x})[0]
    del session
    gc.collect()
    return result


check("a result outlives its session", outlives)


def binding_outlives():
    session = ort.InferenceSession("named.onnx", providers=P)
    binding = session.io_binding()
    binding.bind_cpu_input("a", x)
    binding.bind_cpu_input("b", x)
    binding.bind_output("sum")
    session.run_with_iobinding(binding)
    (value,) = binding.get_outputs()
    del session, binding
    gc.collect()
    return value.numpy()


check("a bound result outlives its session", binding_outlives)


def handed_on():
    value = ort.OrtValue.ortvalue_from_numpy(x)
    values = first.run_with_ort_values(["sum", "rest"], {"a": value, "b": value})
    return second.run_with_ort_values(["distances"], dict(zip("ab", values)))[0].numpy()


check("values of one session for another", handed_on)
check(
    "a binding of another session",
    lambda: second.run_with_iobinding(first.io_binding()),
)


def pipeline(rows):
    total = first.run(["sum"], {"a": rows, "b": rows})[0]
    return second.run(["distances"], {"a": total, "b": rows[:1]})[0].ravel()


check("in pieces", lambda: np.concatenate([pipeline(x[i : i + 1]) for i in range(3)]))
check(
    "a list comprehension",
    lambda: [first.run(None, {"a": r[None], "b": r[None]})[0].tolist() for r in x],
)
check("map", lambda: list(map(lambda r: total_of(first, r[None], r[None]), x)))


def in_threads():
    found = {}

    def work(i):
        found[i] = total_of(first, x * i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[i] for i in range(4)]


def in_pool():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda i: total_of(first, x * i), range(4)))


check("threads", in_threads)
check("a pool of threads", in_pool)
lock = threading.Lock()


def locked():
    with lock:
        return first.run(["sum"], {"a": x, "b": x})[0]


check("under a lock", locked)
arrived, results = threading.Event(), []


def callback(outputs, user_data, error):
    results.append(([o.copy() for o in outputs], user_data, bool(error)))
    arrived.set()


def later(feeds, data=None):
    arrived.clear()
    results.clear()
    first.run_async(["sum", "rest"], feeds, callback, data)
    arrived.wait(30)
    return results[0]


check("run_async", lambda: later({"a": x, "b": x}))
check("run_async with data", lambda: later({"a": x, "b": x}, {"job": 5}))
check("run_async that fails", lambda: later({"a": x, "b": x[:1, :1]}))
check("run_async without an input", lambda: later({"a": x}))


def later_without_output():
    arrived.clear()
    results.clear()
    first.run_async(["q"], {"a": x, "b": x}, callback, None)
    arrived.wait(30)
    return results[0]


check("run_async: no such output", later_without_output)
check("it goes on", chained)

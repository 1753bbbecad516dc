/* The functions that JavaScript calls directly, by name (js/src/pyodide/heap.ts), and
 * Python's functions for the holds of JavaScript. */
#ifndef DLW_BRIDGE_H_
#define DLW_BRIDGE_H_

#include "object.h"

#ifdef __EMSCRIPTEN__
#define DLW_EXPORT(name) __attribute__((export_name(#name), used))
#else /* the same names, for tests through ctypes */
#define DLW_EXPORT(name) __attribute__((visibility("default")))
#endif

/* _take(handle) -> the Tensor that takes the hold over. */
PyObject *dlw_bridge_take(PyObject *module, PyObject *handle);
/* _arguments(*args) -> (device id, the arguments of a kernel: WebGPU tensors, and
 * numbers as floats). Runs foreign code: the __float__ of a number. */
PyObject *dlw_bridge_arguments(PyObject *module, PyObject *args);
/* _run(number of the kernel, number of the call, (x, y, z) workgroups, arguments of
 * `_arguments`, key): makes JavaScript run a kernel, without Pyodide's calls, which
 * cost more than all of our own work. False: it failed, and JavaScript kept the error.
 * key: the arguments and options of the user's call, (args, *options), under which
 * JavaScript caches it; () for none. */
PyObject *dlw_bridge_run(PyObject *module, PyObject *args);
/* _again(number of the kernel or 0, key): runs the call that `_run` cached under the
 * same key again, without a check: the same tensors and options, and any numbers where
 * numbers were. False: nothing happened, and the call takes the checked way. */
PyObject *dlw_bridge_again(PyObject *module, PyObject *const *given, Py_ssize_t count);
/* _pass(function, args, number of the call, (x, y, z) workgroups, arguments of
 * `_arguments`): the result of JavaScript's function(*args), which finds the call of a
 * kernel where `_run` has it. */
PyObject *dlw_bridge_pass(PyObject *module, PyObject *args);

/* `_wait(number)`: returns when JavaScript's promise with this number resolves, and
 * raises its rejection. The result is the handle of a hold for `_take`, or a number
 * that is not a handle. Only where Pyodide can suspend Python; other Python code runs
 * meanwhile. */
PyObject *dlw_bridge_wait(PyObject *module, PyObject *number);
/* _raise(): raises the exception that the last failing function kept, if there is one.
 */
PyObject *dlw_bridge_raise_pending(PyObject *module, PyObject *unused);

#endif

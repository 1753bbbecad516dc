/* The functions that JavaScript calls directly, by their names
 * (js/src/pyodide/heap.ts); and what Python may do with the holds that JavaScript has.
 */
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
/* _arguments(*args) -> (device id, which of them are numbers as bits, what JavaScript
 * gets of each: a float, or the address of a WebGPU tensor's struct, which is good
 * until that Tensor is released). Runs foreign code: the __float__ of a number. */
PyObject *dlw_bridge_arguments(PyObject *module, PyObject *args);
/* _run(number of the kernel, number of the call, (x, y, z) workgroups, what _arguments
 * returned, its arguments): looks up the tensors' structs again, for any of them may
 * have been released since, and has JavaScript run a kernel, past Pyodide's way of
 * calling it, which costs more than all of our own work. False: it failed, and
 * JavaScript kept the error. */
PyObject *dlw_bridge_run(PyObject *module, PyObject *args);

/* `_wait(number)`: returns None when the promise that JavaScript has by this number is
 * resolved, and raises what it was rejected with. Only where Pyodide can suspend
 * Python; other Python code runs meanwhile. */
PyObject *dlw_bridge_wait(PyObject *module, PyObject *number);
/* _raise(): raises the exception that the last failing function kept, if there is one.
 */
PyObject *dlw_bridge_raise_pending(PyObject *module, PyObject *unused);

#endif

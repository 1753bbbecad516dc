/* The functions that JavaScript calls directly, by name (js/src/pyodide/heap.ts), and
 * Python's functions for JavaScript, which py/dlpack_web/_core.pyi describes. */
#ifndef DLW_BRIDGE_H_
#define DLW_BRIDGE_H_

#include "object.h"

#ifdef __EMSCRIPTEN__
#define DLW_EXPORT(name) __attribute__((export_name(#name), used))
#else /* the same names, for tests through ctypes */
#define DLW_EXPORT(name) __attribute__((visibility("default")))
#endif

PyObject *dlw_bridge_take(PyObject *module, PyObject *handle);
/* Runs foreign code: the __float__ of a number. */
PyObject *dlw_bridge_arguments(PyObject *module, PyObject *args);
PyObject *dlw_bridge_run(PyObject *module, PyObject *args);
PyObject *dlw_bridge_again(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *dlw_bridge_pass(PyObject *module, PyObject *args);
PyObject *dlw_bridge_wait(PyObject *module, PyObject *number);
PyObject *dlw_bridge_raise_pending(PyObject *module, PyObject *unused);

#endif

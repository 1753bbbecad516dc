/* The functions of the module that other files than module.c have, for Python:
 * py/dlpack_web/_core.pyi describes them. */
#ifndef DLW_FUNCTIONS_H_
#define DLW_FUNCTIONS_H_

#include "object.h"

/* bridge.c: */
PyObject *dlw_bridge_take(PyObject *module, PyObject *handle);
/* Runs foreign code: the __float__ of a number. */
PyObject *dlw_bridge_arguments(PyObject *module, PyObject *args);
PyObject *dlw_bridge_run(PyObject *module, PyObject *args);
PyObject *dlw_bridge_again(PyObject *module, PyObject *const *given, Py_ssize_t count);
PyObject *dlw_bridge_pass(PyObject *module, PyObject *args);
PyObject *dlw_bridge_wait(PyObject *module, PyObject *number);
PyObject *dlw_bridge_raise_pending(PyObject *module, PyObject *unused);

/* arrow_import.c and arrow_export.c: */
PyObject *dlw_from_arrow_array(PyObject *module, PyObject *args);
PyObject *dlw_from_arrow_stream(PyObject *module, PyObject *args);
PyObject *dlw_to_arrow(PyObject *module, PyObject *args);

/* desktop.c, where Python has the GPUBuffers itself: outside of a browser. */
#ifndef __EMSCRIPTEN__
PyObject *dlw_desktop_wrap(PyObject *module, PyObject *args);
PyObject *dlw_desktop_gpu(PyObject *module, PyObject *tensor);
PyObject *dlw_desktop_on_drop(PyObject *module, PyObject *function);
PyObject *dlw_desktop_chunk(PyObject *module, PyObject *args);
#endif

#endif

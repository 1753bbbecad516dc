/* Functions for Python where it has the GPUBuffers itself: outside of a browser
 * (py/dlpack_web/_backends/model); py/dlpack_web/_core.pyi describes them. In the
 * browser JavaScript has the buffers (bridge.h). */
#ifndef DLW_DESKTOP_H_
#define DLW_DESKTOP_H_

#include "object.h"

#ifndef __EMSCRIPTEN__

PyObject *dlw_desktop_wrap(PyObject *module, PyObject *args);
PyObject *dlw_desktop_gpu(PyObject *module, PyObject *tensor);
PyObject *dlw_desktop_on_drop(PyObject *module, PyObject *function);
PyObject *dlw_desktop_chunk(PyObject *module, PyObject *args);

#endif
#endif

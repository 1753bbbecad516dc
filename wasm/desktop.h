/* Functions for Python where it has the GPUBuffers itself: outside of a browser
 * (py/dlpack_web/_backends/model). In the browser JavaScript has them
 * (bridge.h). */
#ifndef DLW_DESKTOP_H_
#define DLW_DESKTOP_H_

#include "object.h"

#ifndef __EMSCRIPTEN__

/* _wrap(gpu, device_id, shape, strides, dtype, padded, read_only, byte_offset) -> a
 * Tensor over a GPU handle, of which it owns a reference; strides may be None
 * (row-major). On failure the reference stays the caller's. */
PyObject *dlw_desktop_wrap(PyObject *module, PyObject *args);
/* _gpu(tensor) -> the GPU handle of a WebGPU tensor. */
PyObject *dlw_desktop_gpu(PyObject *module, PyObject *tensor);
/* _on_gpu_drop(function): called with each handle whose last tensor is gone, on any
 * thread. */
PyObject *dlw_desktop_on_drop(PyObject *module, PyObject *function);
/* _chunk(tensor, dtype, first, scratch) -> (count, memoryview): dlw_upload_chunk. The
 * memory is the tensor's or the scratch memory's, which the caller holds; with a count
 * of -1 there is none. */
PyObject *dlw_desktop_chunk(PyObject *module, PyObject *args);

#endif
#endif

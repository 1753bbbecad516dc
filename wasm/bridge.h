/* What Python may do with the holds that JavaScript has. */
#ifndef DLW_BRIDGE_H_
#define DLW_BRIDGE_H_

#include "object.h"

PyObject *dlw_bridge_take(PyObject *module, PyObject *handle);
PyObject *dlw_bridge_raise_pending(PyObject *module, PyObject *unused);

#endif

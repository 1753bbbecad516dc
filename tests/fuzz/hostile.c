/* Functions of producers written in C: some that leave an exception behind, as none
 * that ctypes makes can, and some that need no memory. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "dlpack.h"

/* --- what raises: the Python side is found through the struct, or the object ------ */

/* Calls a Python function, whose exception stays pending; the producer is borrowed. */
static void call_deleter(void *producer, void *managed) {
  PyObject *result = PyObject_CallMethod(producer, "_delete", "n", (Py_ssize_t)managed);
  Py_XDECREF(result);
}

void delete_versioned(DLManagedTensorVersioned *self);
void delete_versioned(DLManagedTensorVersioned *self) {
  PyGILState_STATE state = PyGILState_Ensure();
  call_deleter(self->manager_ctx, self);
  PyGILState_Release(state);
}

void delete_legacy(DLManagedTensor *self);
void delete_legacy(DLManagedTensor *self) {
  PyGILState_STATE state = PyGILState_Ensure();
  call_deleter(self->manager_ctx, self);
  PyGILState_Release(state);
}

/* obj.give() -> (result, address), or an exception. */
int from_object(void *obj, DLManagedTensorVersioned **out);
int from_object(void *obj, DLManagedTensorVersioned **out) {
  int result = -1;
  Py_ssize_t address = 0;
  *out = NULL;
  PyObject *given = PyObject_CallMethod(obj, "give", NULL);
  if (given != NULL && !PyArg_ParseTuple(given, "in", &result, &address)) result = -1;
  Py_XDECREF(given);
  *out = (DLManagedTensorVersioned *)address;
  return result;
}

/* --- what needs no memory --------------------------------------------------------- */

/* Counts in the int64 that manager_ctx points to. */
void delete_counting(DLManagedTensorVersioned *self);
void delete_counting(DLManagedTensorVersioned *self) {
  int64_t *count = self->manager_ctx;
  ++*count;
}

/* Of a capsule with such a struct. */
void destroy_counting(PyObject *capsule);
void destroy_counting(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return;
  DLManagedTensorVersioned *managed =
      PyCapsule_GetPointer(capsule, "dltensor_versioned");
  if (managed != NULL) managed->deleter(managed);
}

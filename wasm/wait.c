#include "wait.h"

typedef struct wait {
  PyObject_HEAD struct wait *next; /* of those that are alive */
  PyObject *callback;              /* who asked to be told; a reference */
  uint32_t number;
  int8_t outcome; /* -1: not yet */
} wait;

/* JavaScript has numbers, not addresses: of a wait that Python gave up it finds
 * nothing. */
static wait *alive;
static uint32_t last_number;

static PyObject *wait_new(PyTypeObject *type, PyObject *args, PyObject *options) {
  if (PyTuple_Size(args) != 0 || options != NULL) {
    PyErr_SetString(PyExc_TypeError, "_Wait() takes no arguments");
    return NULL;
  }
  allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  wait *self = (wait *)alloc(type, 0);
  if (self == NULL) return NULL;
  self->outcome = -1;
  self->number = ++last_number;
  self->next = alive;
  alive = self;
  return (PyObject *)self;
}

static void wait_dealloc(PyObject *object) {
  wait *self = (wait *)object;
  PyTypeObject *type = Py_TYPE(object);
  for (wait **at = &alive; *at != NULL; at = &(*at)->next) {
    if (*at != self) continue;
    *at = self->next;
    break;
  }
  Py_CLEAR(self->callback);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

/* Tells `callback` that self is done, which may be the end of self. */
static int tell(PyObject *self, PyObject *callback) {
  PyObject *told = PyObject_CallFunctionObjArgs(callback, self, NULL);
  Py_XDECREF(told);
  return told == NULL ? -1 : 0;
}

static PyObject *wait_add_done_callback(PyObject *object, PyObject *args,
                                        PyObject *options) {
  static char *names[] = {"", "context", NULL};
  wait *self = (wait *)object;
  PyObject *callback, *context;
  if (!PyArg_ParseTupleAndKeywords(args, options, "O|$O", names, &callback, &context)) {
    return NULL;
  }
  if (self->outcome >= 0) {
    if (tell(object, callback) < 0) return NULL;
  } else if (self->callback != NULL) {
    PyErr_SetString(PyExc_RuntimeError, "somebody waits for this already");
    return NULL;
  } else {
    self->callback = Py_NewRef(callback);
  }
  Py_RETURN_NONE;
}

static PyObject *wait_result(PyObject *object, PyObject *unused) {
  (void)unused;
  wait *self = (wait *)object;
  if (self->outcome >= 0) return PyBool_FromLong(self->outcome);
  PyErr_SetString(PyExc_RuntimeError, "this is not done yet");
  return NULL;
}

/* Only asked for whether it is there. */
static PyObject *wait_await(PyObject *object) {
  (void)object;
  PyErr_SetString(PyExc_RuntimeError, "a _Wait is for run_sync(), not for await");
  return NULL;
}

static PyObject *wait_number(PyObject *object, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLong(((wait *)object)->number);
}

DLW_EXPORT(dlw_bridge_wake)
int32_t dlw_bridge_wake(uint32_t number, int32_t ok) {
  wait *self = alive;
  while (self != NULL && self->number != number) self = self->next;
  if (self == NULL || self->outcome >= 0) return 0;
  self->outcome = ok != 0;
  PyObject *callback = self->callback;
  self->callback = NULL;
  if (callback == NULL) return 1;
  PyObject *object = Py_NewRef((PyObject *)self);
  if (tell(object, callback) < 0) PyErr_WriteUnraisable(callback);
  Py_DECREF(callback);
  Py_DECREF(object);
  return 1;
}

static PyMethodDef WAIT_METHODS[] = {
    {"add_done_callback", (PyCFunction)(void (*)(void))wait_add_done_callback,
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"result", wait_result, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef WAIT_GETSET[] = {
    {"number", wait_number, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot WAIT_SLOTS[] = {
    {Py_tp_doc, "What run_sync() waits for until JavaScript wakes it by its number."},
    {Py_tp_new, wait_new},
    {Py_tp_dealloc, wait_dealloc},
    {Py_tp_methods, WAIT_METHODS},
    {Py_tp_getset, WAIT_GETSET},
    {Py_am_await, wait_await},
    {0, NULL},
};

static PyType_Spec WAIT_SPEC = {
    .name = "dlpack_web._core._Wait",
    .basicsize = sizeof(wait),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = WAIT_SLOTS,
};

PyObject *dlw_wait_type(PyObject *module) {
  PyObject *type = PyType_FromModuleAndSpec(module, &WAIT_SPEC, NULL);
  /* What asyncio.isfuture() looks for. */
  if (type != NULL &&
      PyObject_SetAttrString(type, "_asyncio_future_blocking", Py_False) < 0) {
    Py_CLEAR(type);
  }
  return type;
}

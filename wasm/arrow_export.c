/* Tensors as Arrow's arrays: the same memory if the elements are contiguous, bool as
 * Arrow's bitmap. */

#include <stdlib.h>
#include <string.h>

#include "arrow_type.h"
#include "functions.h"

/* --- types ------------------------------------------------------------------------ */

/* A level of a type: the list or, within it, its elements. */
typedef struct {
  char format[24];
  struct ArrowSchema child, *children[1];
} schema_level;

static void release_schema(struct ArrowSchema *schema) {
  schema_level *level = schema->private_data;
  if (schema->n_children > 0 && level->child.release != NULL) {
    level->child.release(&level->child);
  }
  free(level);
  schema->release = NULL;
}

/* Arrow's letter for a dtype; 0: there is none. */
static char letter_of(DLDataType dtype) {
  static const char letters[3][4] = {"csil", "CSIL", {0, 'e', 'f', 'g'}};
  if (dtype.lanes != 1) return 0;
  if (dtype.code == kDLBool) return dtype.bits == 8 ? 'b' : 0;
  if (dtype.code > kDLFloat) return 0;
  for (int i = 0; i < 4; i++) {
    if (dtype.bits == 8 << i) return letters[dtype.code][i];
  }
  return 0;
}

static int fill_schema(struct ArrowSchema *out, const DLTensor *dl, int32_t axis) {
  schema_level *level = calloc(1, sizeof *level);
  if (level == NULL) return -1;
  int is_list = axis < dl->ndim;
  *out = (struct ArrowSchema){.format = level->format,
                              .name = "",
                              .flags = 2, /* may have nulls */
                              .release = release_schema,
                              .private_data = level};
  if (!is_list) {
    level->format[0] = letter_of(dl->dtype);
    return 0;
  }
  PyOS_snprintf(level->format, sizeof level->format, "+w:%lld",
                (long long)dl->shape[axis]);
  level->children[0] = &level->child;
  out->n_children = 1, out->children = level->children;
  if (fill_schema(&level->child, dl, axis + 1) == 0) return 0;
  out->release(out);
  return -1;
}

/* --- arrays ----------------------------------------------------------------------- */

/* A level of an array. A child may be moved out, so each has its own holds. */
typedef struct {
  const void *buffers[2];
  struct ArrowArray child, *children[1];
  dlw_tensor *values, *valid;
} array_level;

static void release_array(struct ArrowArray *array) {
  array_level *level = array->private_data;
  if (array->n_children > 0 && level->child.release != NULL) {
    level->child.release(&level->child);
  }
  dlw_tensor_release(level->values);
  dlw_tensor_release(level->valid);
  free(level);
  array->release = NULL;
}

/* For empty arrays: some consumers treat NULL as an error. */
static const uint64_t NOTHING[8];

static int fill_array(struct ArrowArray *out, dlw_tensor *values, const DLTensor *dl,
                      int32_t axis, int64_t length) {
  array_level *level = calloc(1, sizeof *level);
  if (level == NULL) return -1;
  int is_list = axis < dl->ndim;
  *out = (struct ArrowArray){.length = length,
                             .n_buffers = is_list ? 1 : 2,
                             .buffers = level->buffers,
                             .release = release_array,
                             .private_data = level};
  if (!is_list) {
    level->values = dlw_tensor_share(values, 0);
    level->buffers[1] = dlw_size(dlw_dl(values)) > 0
                            ? (const void *)dlw_first(dlw_dl(values))
                            : NOTHING;
    if (level->values != NULL) return 0;
  } else {
    level->children[0] = &level->child;
    out->n_children = 1, out->children = level->children;
    int64_t count = length * dl->shape[axis]; /* of existing elements */
    if (fill_array(&level->child, values, dl, axis + 1, count) == 0) return 0;
  }
  out->release(out);
  return -1;
}

/* The bits of a row-major Tensor of bool, in fresh memory. */
static dlw_tensor *pack_bits(dlw_tensor *bools, int64_t *zeros) {
  int64_t size = dlw_size(dlw_dl(bools)), bytes = (size + 7) / 8;
  const uint8_t *from = (const uint8_t *)dlw_first(dlw_dl(bools));
  dlw_tensor *packed = dlw_empty(1, &bytes, (DLDataType){kDLUInt, 8, 1}, 0);
  if (packed == NULL) return NULL;
  uint8_t *bits = dlw_dl(packed)->data;
  if (bytes > 0) memset(bits, 0, (size_t)bytes);
  *zeros = size;
  for (int64_t i = 0; i < size; i++) {
    if (from[i] == 0) continue;
    bits[i >> 3] |= (uint8_t)(1u << (i & 7));
    --*zeros;
  }
  return packed;
}

/* --- both ------------------------------------------------------------------------- */

static void free_schema(struct ArrowSchema *schema) {
  if (schema->release != NULL) schema->release(schema);
  free(schema);
}

static void free_array(struct ArrowArray *array) {
  if (array->release != NULL) array->release(array);
  free(array);
}

static void destroy_schema(PyObject *capsule) {
  free_schema(PyCapsule_GetPointer(capsule, DLW_ARROW_SCHEMA));
}

static void destroy_array(PyObject *capsule) {
  PyObject *kept = dlw_put_aside();
  free_array(PyCapsule_GetPointer(capsule, DLW_ARROW_ARRAY));
  dlw_put_back(kept);
}

static int check_arrow(const DLTensor *dl) {
  char name[DLW_DTYPE_NAME];
  if (!dlw_is_host(dl->device)) {
    return dlw_fail(PyExc_BufferError,
                    "the tensor is on WebGPU, Arrow's arrays are on the CPU: use what "
                    "`await t.to_host()` gives");
  }
  if (dl->ndim == 0) {
    return dlw_fail(PyExc_BufferError,
                    "a Tensor without axes cannot be an Arrow array: use t.reshape(1)");
  }
  for (int32_t i = 1; i < dl->ndim; i++) {
    if (dl->shape[i] <= INT32_MAX) continue;
    return dlw_fail(
        PyExc_BufferError,
        "axis %d has %lld elements; Arrow's fixed-size lists have at most 2^31-1", i,
        (long long)dl->shape[i]);
  }
  if (letter_of(dl->dtype) != 0) return 0;
  return dlw_fail(
      PyExc_BufferError,
      "Arrow has no type for %s: integers and floats of 8 to 64 bits and bool "
      "have one",
      dlw_dtype_name(dl->dtype, name));
}

/* A hold on the elements in row-major order; a copy if they have another order. */
static dlw_tensor *in_order(dlw_tensor *tensor) {
  return dlw_is_contiguous(dlw_dl(tensor)) ? dlw_share(tensor) : dlw_copy(tensor);
}

static PyObject *schema_capsule(const DLTensor *dl) {
  struct ArrowSchema *schema = calloc(1, sizeof *schema);
  if (schema == NULL || fill_schema(schema, dl, 1) < 0) {
    free(schema);
    return PyErr_NoMemory();
  }
  PyObject *capsule = PyCapsule_New(schema, DLW_ARROW_SCHEMA, destroy_schema);
  if (capsule == NULL) free_schema(schema);
  return capsule;
}

/* `values` and `valid` (or NULL) are in Arrow's form; borrowed. */
static PyObject *array_capsule(const DLTensor *dl, dlw_tensor *values,
                               dlw_tensor *valid, int64_t nulls) {
  struct ArrowArray *array = calloc(1, sizeof *array);
  if (array == NULL || fill_array(array, values, dl, 1, dl->shape[0]) < 0) {
    free(array);
    return PyErr_NoMemory();
  }
  if (valid != NULL) {
    array_level *level = array->private_data;
    level->valid = dlw_tensor_share(valid, 0);
    if (level->valid == NULL) {
      free_array(array);
      return PyErr_NoMemory();
    }
    level->buffers[0] = dlw_dl(valid)->data;
    array->null_count = nulls;
  }
  PyObject *capsule = PyCapsule_New(array, DLW_ARROW_ARRAY, destroy_array);
  if (capsule == NULL) free_array(array);
  return capsule;
}

/* The bits of `valid`, which must be a bool for each element of axis 0. */
static dlw_tensor *pack_valid(PyObject *object, const DLTensor *dl, int64_t *nulls) {
  dlw_tensor *given = dlw_tensor_of(object);
  if (given == NULL) return NULL;
  const DLTensor *there = dlw_dl(given);
  if (!dlw_is_host(there->device) || letter_of(there->dtype) != 'b' ||
      there->ndim != 1 || there->shape[0] != dl->shape[0]) {
    char name[DLW_DTYPE_NAME];
    PyErr_Format(PyExc_BufferError,
                 "valid must be a Tensor of bool on the CPU, with one for each of the "
                 "%lld elements of axis 0; it is %s, has %d axes, and device type %d",
                 (long long)dl->shape[0], dlw_dtype_name(there->dtype, name),
                 (int)there->ndim, (int)there->device.device_type);
    return NULL;
  }
  dlw_tensor *ordered = in_order(given);
  dlw_tensor *bits = ordered != NULL ? pack_bits(ordered, nulls) : NULL;
  dlw_release_quietly(ordered);
  return bits;
}

/* --- what is requested ------------------------------------------------------------ */

/* 1 if the types have the same elements, ignoring the names of fields; -1 with an
 * exception. */
static int is_same_type(const struct ArrowSchema *ours,
                        const struct ArrowSchema *asked) {
  if (dlw_check_arrow(asked) < 0) return -1;
  int extension = dlw_is_extension(asked);
  if (extension != 0) return extension < 0 ? -1 : 0;
  if (asked->dictionary != NULL || strcmp(ours->format, asked->format) != 0) return 0;
  if (ours->n_children != asked->n_children) return 0;
  if (ours->n_children == 0) return 1;
  return is_same_type(ours->children[0], asked->children[0]);
}

/* Names both types in the exception: 'g', or '+w:3' of '+w:2' of 'g'. */
static int refuse_request(const struct ArrowSchema *ours,
                          const struct ArrowSchema *asked) {
  PyObject *words[2] = {NULL, NULL};
  const struct ArrowSchema *types[2] = {asked, ours};
  for (int i = 0; i < 2; i++) {
    const struct ArrowSchema *each = types[i];
    words[i] = PyUnicode_FromFormat("'%.40s'", each->format);
    /* The innermost levels of a long one are omitted. */
    for (int level = 1; words[i] != NULL && level < 8; level++) {
      if (each->n_children != 1 || each->children == NULL) break;
      each = each->children[0];
      if (each == NULL || each->format == NULL) break;
      dlw_set(&words[i], PyUnicode_FromFormat("%U of '%.40s'", words[i], each->format));
    }
  }
  if (words[0] != NULL && words[1] != NULL) {
    PyErr_Format(
        PyExc_BufferError,
        "requested_schema is Arrow's type %U%s, the Tensor is %U, and to_arrow "
        "does not convert: request that type or none, and cast the result, or "
        "convert the elements first, for example with t.numpy().astype()",
        words[0], dlw_is_extension(asked) > 0 ? " with an extension" : "", words[1]);
  }
  Py_XDECREF(words[0]);
  Py_XDECREF(words[1]);
  return -1;
}

/* Whether our type matches the capsule's request; borrowed. The request stays its
 * owner's. */
static int check_request(PyObject *given, PyObject *requested) {
  if (requested == Py_None) return 0;
  if (!PyCapsule_IsValid(requested, DLW_ARROW_SCHEMA)) {
    return dlw_fail(
        PyExc_TypeError,
        "requested_schema must be None or a capsule named '" DLW_ARROW_SCHEMA
        "', not %R",
        requested);
  }
  const struct ArrowSchema *asked = PyCapsule_GetPointer(requested, DLW_ARROW_SCHEMA);
  const struct ArrowSchema *ours = PyCapsule_GetPointer(given, DLW_ARROW_SCHEMA);
  int same = is_same_type(ours, asked);
  if (same != 0) return same < 0 ? -1 : 0;
  return refuse_request(ours, asked);
}

PyObject *dlw_to_arrow(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *object, *valid, *requested, *pair = NULL;
  if (!PyArg_ParseTuple(args, "OOO", &object, &valid, &requested)) return NULL;
  dlw_tensor *tensor = dlw_tensor_of(object);
  if (tensor == NULL || check_arrow(dlw_dl(tensor)) < 0) return NULL;
  PyObject *schema = schema_capsule(dlw_dl(tensor));
  if (schema == NULL || check_request(schema, requested) < 0) {
    Py_XDECREF(schema);
    return NULL;
  }
  int64_t nulls = 0, zeros;
  dlw_tensor *values = in_order(tensor), *bits = NULL;
  if (values != NULL && dlw_dl(values)->dtype.code == kDLBool) {
    dlw_tensor *packed = pack_bits(values, &zeros);
    dlw_release_quietly(values);
    values = packed;
  }
  if (values != NULL && valid != Py_None) {
    bits = pack_valid(valid, dlw_dl(tensor), &nulls);
  }
  if (values != NULL && (valid == Py_None || bits != NULL)) {
    PyObject *array = array_capsule(dlw_dl(tensor), values, bits, nulls);
    if (array != NULL) pair = Py_BuildValue("(ON)", schema, array);
  }
  Py_DECREF(schema);
  dlw_release_quietly(values);
  dlw_release_quietly(bits);
  return pair;
}

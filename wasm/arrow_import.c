#include "arrow_import.h"

#include <stdlib.h>
#include <string.h>

#include "arrow.h"

/* --- types --------------------------------------------------------------------------
 */

/* What the elements of an Arrow type are. */
typedef struct {
  DLDataType dtype;
  int bitmap;                  /* bool: a bit each */
  int32_t ndim;                /* axes of one element: fixed-size lists */
  int64_t shape[DLW_MAX_NDIM]; /* from axis 1 on */
  int64_t column;              /* which child of a struct; -1: it is none */
  int binary;                  /* the last axis is of fixed-size binary: no child */
} arrow_type;

static const struct {
  char letter;
  uint8_t code, bits;
} SCALARS[] = {{'c', kDLInt, 8},    {'C', kDLUInt, 8},  {'s', kDLInt, 16},
               {'S', kDLUInt, 16},  {'i', kDLInt, 32},  {'I', kDLUInt, 32},
               {'l', kDLInt, 64},   {'L', kDLUInt, 64}, {'e', kDLFloat, 16},
               {'f', kDLFloat, 32}, {'g', kDLFloat, 64}};

/* Types without a DLPack dtype, by how their letters begin, and what leads to one. */
static const struct {
  const char *format, *name, *way;
} OTHERS[] = {
    {"n", "null", "there is nothing in it to share"},
    {"d:", "decimal", "cast it to float64, or to int64 where its scale is 0"},
    {"td", "date", "cast it to int32 or int64"},
    {"tt", "time", "cast it to int32 or int64"},
    {"ts", "timestamp", "cast it to int64"},
    {"tD", "duration", "cast it to int64"},
    {"ti", "interval", "take its parts as integers"},
    {"u", "string", "encode it to numbers, for example by dictionary_encode()"},
    {"U", "large string", "encode it to numbers, for example by dictionary_encode()"},
    {"vu", "string view", "encode it to numbers, for example by dictionary_encode()"},
    {"z", "binary", "cast it to fixed-size binary where all have one length"},
    {"Z", "large binary", "cast it to fixed-size binary where all have one length"},
    {"vz", "binary view", "cast it to fixed-size binary where all have one length"},
    {"+w", "fixed-size list", "its length is no number"},
    {"w:", "fixed-size binary", "its length is no number"},
    {"+s", "struct", "take one of its fields"},
    {"+m", "map", "take its keys or values, flattened"},
    {"+u", "union", "take one of its fields"},
    {"+r", "run-end encoded", "decode it first"},
    {"+", "list", "flatten it, or cast it to a fixed-size list"},
};

static int refuse_type(const char *format) {
  for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++) {
    if (strncmp(format, OTHERS[i].format, strlen(OTHERS[i].format)) != 0) continue;
    PyErr_Format(
        PyExc_BufferError,
        "cannot share an Arrow array of type %s ('%.40s'), which has no DLPack "
        "dtype: %s",
        OTHERS[i].name, format, OTHERS[i].way);
    return -1;
  }
  PyErr_Format(PyExc_BufferError,
               "cannot share an Arrow array of the unknown type '%.40s': integers, "
               "floats, bool, and fixed-size lists of them are supported",
               format);
  return -1;
}

/* Calls release of what holds something. It may be anybody's code, which must not see
 * a pending exception. */
#define RELEASE(place)                                     \
  do {                                                     \
    PyObject *kept = dlw_put_aside();                      \
    if ((place)->release != NULL) (place)->release(place); \
    dlw_put_back(kept);                                    \
  } while (0)

static int wrong(const char *what) {
  PyErr_Format(PyExc_BufferError,
               "the Arrow producer gave %s: this is an error of its own", what);
  return -1;
}

/* The number behind the colon of "+w:3" or "w:16"; -1 for what is none. */
static int64_t parse_width(const char *format) {
  const char *digits = strchr(format, ':');
  int64_t width = 0;
  if (digits == NULL || *++digits == 0) return -1;
  for (; *digits != 0; digits++) {
    if (*digits < '0' || *digits > '9') return -1;
    width = 10 * width + (*digits - '0');
    if (width > INT32_MAX) return -1;
  }
  return width;
}

static int check_schema(const struct ArrowSchema *schema) {
  if (schema == NULL) return wrong("a type that is not there");
  if (schema->release == NULL) return wrong("a type that was released");
  if (schema->format == NULL) return wrong("a type without a format");
  if (schema->n_children < 0) return wrong("a type with fewer than no children");
  if (schema->n_children > 0 && schema->children == NULL) {
    return wrong("a type whose children are not there");
  }
  return 0;
}

/* Which child of a struct is meant; -1 with an exception. */
static int64_t find_column(const struct ArrowSchema *schema, const char *column) {
  int64_t found = -1;
  for (int64_t i = 0; i < schema->n_children; i++) {
    if (check_schema(schema->children[i]) < 0) return -1;
    const char *name = schema->children[i]->name;
    if (column != NULL && strcmp(name != NULL ? name : "", column) != 0) continue;
    if (found >= 0) {
      PyErr_Format(PyExc_BufferError,
                   column != NULL
                       ? "there are several columns named '%.80s'"
                       : "there are several columns: name one, with column='name'",
                   column);
      return -1;
    }
    found = i;
  }
  if (found < 0) {
    PyErr_Format(PyExc_BufferError,
                 column != NULL ? "there is no column named '%.80s'"
                                : "there is no column to share",
                 column);
  }
  return found;
}

static int parse_scalar(const char *format, arrow_type *type) {
  if (strcmp(format, "b") == 0) {
    type->bitmap = 1;
    type->dtype = (DLDataType){kDLBool, 8, 1};
    return 0;
  }
  for (size_t i = 0; i < sizeof SCALARS / sizeof SCALARS[0]; i++) {
    if (format[0] == SCALARS[i].letter && format[1] == 0) {
      type->dtype = (DLDataType){SCALARS[i].code, SCALARS[i].bits, 1};
      return 0;
    }
  }
  return refuse_type(format);
}

static int parse_type(const struct ArrowSchema *schema, const char *column,
                      arrow_type *type) {
  *type = (arrow_type){.column = -1};
  if (check_schema(schema) < 0) return -1;
  if (strcmp(schema->format, "+s") == 0) {
    type->column = find_column(schema, column);
    if (type->column < 0) return -1;
    schema = schema->children[type->column];
  } else if (column != NULL) {
    PyErr_Format(PyExc_BufferError,
                 "there are no columns, of which one is named '%.80s': it is an array",
                 column);
    return -1;
  }
  for (;;) {
    if (schema->dictionary != NULL) {
      PyErr_SetString(
          PyExc_BufferError,
          "cannot share a dictionary-encoded Arrow array, whose numbers mean "
          "others: share its indices or its values");
      return -1;
    }
    const char *format = schema->format;
    int list = strncmp(format, "+w:", 3) == 0;
    if (!list && strncmp(format, "w:", 2) != 0) return parse_scalar(format, type);
    int64_t width = parse_width(format);
    if (width < 0) return refuse_type(format);
    if (type->ndim == DLW_MAX_NDIM - 1) return refuse_type("+w");
    type->shape[type->ndim++] = width;
    if (!list) {
      type->binary = 1;
      type->dtype = (DLDataType){kDLUInt, 8, 1};
      return 0;
    }
    if (schema->n_children != 1) return wrong("a fixed-size list without its child");
    schema = schema->children[0];
    if (check_schema(schema) < 0) return -1;
  }
}

/* --- arrays -------------------------------------------------------------------------
 */

/* Whether the array has what its type needs, and enough elements: up to `end`. */
static int check_array(const struct ArrowArray *array, int64_t buffers,
                       int64_t children, int64_t end) {
  if (array == NULL) return wrong("an array that is not there");
  if (array->release == NULL) return wrong("an array that was released");
  if (array->length < 0 || array->offset < 0 ||
      array->offset > INT64_MAX - array->length) {
    return wrong("a negative length or offset, or one beyond all memory");
  }
  if (array->null_count < -1 || array->null_count > array->length) {
    return wrong("a number of nulls that cannot be");
  }
  if (array->n_buffers != buffers || (buffers > 0 && array->buffers == NULL)) {
    return wrong("another number of buffers than the type has");
  }
  if (array->n_children < children || (children > 0 && array->children == NULL)) {
    return wrong("fewer children than the type has");
  }
  if (array->dictionary != NULL) return wrong("a dictionary that the type has not");
  if (end > array->length) return wrong("a child with too few elements");
  return 0;
}

static inline int bit_at(const uint8_t *bits, int64_t i) {
  return bits[i >> 3] >> (i & 7) & 1;
}

/* Whether there can be such a bitmap, up to bit `end` > 0; -1 with an exception. */
static int check_bits(const void *bits, int64_t end) {
  int64_t bytes = (end - 1) / 8 + 1;
  DLTensor described = {.data = (void *)(uintptr_t)bits,
                        .device = {kDLCPU, 0},
                        .ndim = 1,
                        .dtype = {kDLUInt, 8, 1},
                        .shape = &bytes};
  /* No machine of 64 bits has as much; how much there is, wasm alone can tell. */
  dlw_status status = bytes >> 57 == 0 ? dlw_check(&described, 0) : DLW_TOO_LARGE;
  if (status != DLW_OK) dlw_raise(status, &described);
  return status == DLW_OK ? 0 : -1;
}

/* Nulls among `length` elements from `first` on (both without the array's own offset);
 * -1 with an exception. */
static int64_t count_nulls(const struct ArrowArray *array, int64_t first,
                           int64_t length) {
  const uint8_t *bits = array->buffers[0];
  if (array->null_count == 0 || length == 0) return 0;
  if (bits == NULL) {
    return array->null_count < 0 ? 0 : wrong("nulls, and does not say which they are");
  }
  int64_t at = array->offset + first, end = at + length, valid = 0;
  if (check_bits(bits, end) < 0) return -1;
  for (; at < end && at % 8 != 0; at++) valid += bit_at(bits, at);
  for (; at + 8 <= end; at += 8) valid += __builtin_popcount(bits[at / 8]);
  for (; at < end; at++) valid += bit_at(bits, at);
  return length - valid;
}

/* The elements of an array, checked. */
typedef struct {
  const void *data;
  int64_t first;  /* the element of `data` that is element 0 */
  int64_t length; /* of axis 0 */
  const uint8_t *validity;
  int64_t valid_from; /* the bit that is of element 0 */
  int64_t nulls;
} arrow_elements;

static int refuse_nulls(int64_t nulls, const char *where) {
  if (nulls > 0) {
    PyErr_Format(PyExc_BufferError,
                 "%lld %s null: fill them first, for example with fill_null(0)",
                 (long long)nulls, where);
  }
  return nulls != 0 ? -1 : 0;
}

/* Nulls in lists of `width` elements, which begin at `first`, that are not null
 * themselves; -1 with an exception. */
static int64_t count_nulls_inside(const arrow_elements *lists,
                                  const struct ArrowArray *array, int64_t first,
                                  int64_t width) {
  if (lists->nulls == 0) return count_nulls(array, first, lists->length * width);
  int64_t nulls = 0;
  for (int64_t i = 0; i < lists->length; i++) {
    if (!bit_at(lists->validity, lists->valid_from + i)) continue;
    int64_t here = count_nulls(array, first + i * width, width);
    if (here < 0) return -1;
    nulls += here;
  }
  return nulls;
}

static int find_elements(const struct ArrowArray *array, const arrow_type *type,
                         arrow_elements *found) {
  int lists = type->ndim - type->binary;
  int64_t first = 0, length, buffers = lists > 0 ? 1 : 2;
  if (array == NULL) return wrong("an array that is not there");
  if (type->column >= 0) {
    if (check_array(array, 1, type->column + 1, 0) < 0) return -1;
    if (refuse_nulls(count_nulls(array, 0, array->length), "whole rows are") < 0) {
      return -1;
    }
    const struct ArrowArray *column = array->children[type->column];
    first = array->offset, length = array->length;
    if (check_array(column, buffers, lists > 0, first + length) < 0) return -1;
    array = column;
  } else {
    if (check_array(array, buffers, lists > 0, 0) < 0) return -1;
    length = array->length;
  }
  found->length = length;
  found->nulls = count_nulls(array, first, length);
  if (found->nulls < 0) return -1;
  found->validity = array->buffers[0];
  found->valid_from = array->offset + first;

  int64_t count = length; /* of elements of this level from `first` on */
  int64_t per_list = 1;   /* of axis 0 */
  for (int i = 0; i < lists; i++) {
    int64_t width = type->shape[i], end;
    first += array->offset;
    if (__builtin_mul_overflow(first, width, &first) ||
        __builtin_mul_overflow(count, width, &count) ||
        __builtin_mul_overflow(per_list, width, &per_list) ||
        __builtin_add_overflow(first, count, &end)) {
      return wrong("lists of more elements than memory can hold");
    }
    const struct ArrowArray *child = array->children[0];
    int last = i == lists - 1;
    if (check_array(child, last ? 2 : 1, !last, end) < 0) return -1;
    int64_t nulls = count_nulls_inside(found, child, first, per_list);
    if (refuse_nulls(nulls, "elements of lists are") < 0) return -1;
    array = child;
  }
  first += array->offset;
  if (type->binary &&
      __builtin_mul_overflow(first, type->shape[type->ndim - 1], &first)) {
    return wrong("more elements than memory can hold");
  }
  found->data = array->buffers[1];
  found->first = first;
  return 0;
}

/* --- tensors ------------------------------------------------------------------------
 */

static void unpack_bits(const uint8_t *bits, int64_t first, int64_t count,
                        uint8_t *out) {
  for (int64_t i = 0; i < count; i++) out[i] = (uint8_t)bit_at(bits, first + i);
}

static int32_t full_shape(const arrow_type *type, int64_t length,
                          int64_t shape[DLW_MAX_NDIM]) {
  shape[0] = length;
  memcpy(shape + 1, type->shape, sizeof(int64_t) * (size_t)type->ndim);
  return type->ndim + 1;
}

static void drop_arrow(dlw_tensor *root) {
  struct ArrowArray *array = dlw_payload(root);
  array->release(array);
}

/* A Tensor's memory: that of the array, which is moved, or for bitmaps a copy. */
static dlw_tensor *take_elements(struct ArrowArray *array, const arrow_type *type,
                                 const arrow_elements *from) {
  int64_t shape[DLW_MAX_NDIM];
  int32_t ndim = full_shape(type, from->length, shape);
  if (type->bitmap) {
    dlw_tensor *tensor = dlw_empty(ndim, shape, type->dtype, 0);
    int64_t size = tensor != NULL ? dlw_size(dlw_dl(tensor)) : 0;
    if (size > 0 && check_bits(from->data, from->first + size) < 0) {
      dlw_release_quietly(tensor);
      return NULL;
    }
    if (size > 0) unpack_bits(from->data, from->first, size, dlw_dl(tensor)->data);
    return tensor;
  }
  DLTensor described = {.data = (void *)(uintptr_t)from->data,
                        .device = {kDLCPU, 0},
                        .ndim = ndim,
                        .dtype = type->dtype,
                        .shape = shape};
  uint64_t bytes = dlw_itemsize(type->dtype);
  if (__builtin_mul_overflow((uint64_t)from->first, bytes, &described.byte_offset)) {
    return dlw_raise(DLW_TOO_LARGE, &described);
  }
  dlw_tensor *tensor = dlw_tensor_reserve(sizeof *array);
  if (tensor == NULL) return dlw_raise(DLW_NO_MEMORY, NULL);
  dlw_status status =
      dlw_tensor_describe(tensor, &described, DLPACK_FLAG_BITMASK_READ_ONLY);
  if (status == DLW_OK && !dlw_is_aligned(dlw_dl(tensor))) status = DLW_MISALIGNED;
  if (status != DLW_OK) {
    dlw_tensor_release(tensor);
    return dlw_raise(status, &described);
  }
  *(struct ArrowArray *)dlw_payload(tensor) = *array;
  array->release = NULL;
  tensor->drop = drop_arrow;
  return tensor;
}

/* One array as memory, and which of it is valid: NULL where all is. */
typedef struct {
  dlw_tensor *values, *validity;
} chunk;

static void release_chunk(chunk *given) {
  if (given->values != NULL) dlw_release_quietly(given->values);
  if (given->validity != NULL) dlw_release_quietly(given->validity);
  *given = (chunk){0};
}

static int import_array(struct ArrowArray *array, const arrow_type *type, chunk *out) {
  arrow_elements from;
  *out = (chunk){0};
  if (find_elements(array, type, &from) < 0) return -1;
  if (from.nulls > 0) {
    DLDataType boolean = {kDLBool, 8, 1};
    out->validity = dlw_empty(1, &from.length, boolean, 0);
    if (out->validity == NULL) return -1;
    uint8_t *valid = dlw_dl(out->validity)->data;
    unpack_bits(from.validity, from.valid_from, from.length, valid);
  }
  out->values = take_elements(array, type, &from);
  if (out->values != NULL) return 0;
  release_chunk(out);
  return -1;
}

static PyObject *to_python(chunk *given) {
  chunk taken = *given;
  *given = (chunk){0};
  PyObject *values = dlw_tensor_object(taken.values);
  if (values == NULL) {
    if (taken.validity != NULL) dlw_release_quietly(taken.validity);
    return NULL;
  }
  PyObject *validity =
      taken.validity != NULL ? dlw_tensor_object(taken.validity) : Py_NewRef(Py_None);
  if (validity == NULL) {
    Py_DECREF(values);
    return NULL;
  }
  return Py_BuildValue("(NN)", values, validity);
}

/* --- one array ----------------------------------------------------------------------
 */

/* UTF-8 of a name; NULL for None, and with an exception. */
static const char *column_name(PyObject *column) {
  return column == Py_None ? NULL : PyUnicode_AsUTF8AndSize(column, NULL);
}

/* The array in a capsule of either kind; NULL with an exception. */
static struct ArrowArray *array_in(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, DLW_ARROW_DEVICE_ARRAY)) {
    return PyCapsule_GetPointer(capsule, DLW_ARROW_ARRAY);
  }
  struct ArrowDeviceArray *there =
      PyCapsule_GetPointer(capsule, DLW_ARROW_DEVICE_ARRAY);
  DLDevice device = {there->device_type, (int32_t)there->device_id};
  if (dlw_is_host(device) && there->sync_event == NULL) return &there->array;
  PyErr_Format(PyExc_BufferError,
               "the Arrow array is on a device of type %d, or not there yet: only the "
               "CPU's, which nobody waits for, can be shared; copy it there first",
               (int)there->device_type);
  return NULL;
}

PyObject *dlw_from_arrow_array(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *schema_capsule, *array_capsule, *column;
  arrow_type type;
  chunk made;
  if (!PyArg_ParseTuple(args, "OOO", &schema_capsule, &array_capsule, &column)) {
    return NULL;
  }
  const char *name = column_name(column);
  if (name == NULL && PyErr_Occurred()) return NULL;
  struct ArrowSchema *schema = PyCapsule_GetPointer(schema_capsule, DLW_ARROW_SCHEMA);
  struct ArrowArray *array = schema != NULL ? array_in(array_capsule) : NULL;
  if (array == NULL || parse_type(schema, name, &type) < 0) return NULL;
  return import_array(array, &type, &made) == 0 ? to_python(&made) : NULL;
}

/* --- streams ------------------------------------------------------------------------
 */

typedef struct {
  chunk *chunks;
  size_t count, room;
} chunk_list;

static void release_chunks(chunk_list *list) {
  for (size_t i = 0; i < list->count; i++) release_chunk(&list->chunks[i]);
  free(list->chunks);
}

static int append_chunk(chunk_list *list, chunk *given) {
  if (list->count == list->room) {
    size_t room = list->room > 0 ? 2 * list->room : 8;
    chunk *more = realloc(list->chunks, room * sizeof *more);
    if (more == NULL) {
      release_chunk(given);
      PyErr_NoMemory();
      return -1;
    }
    list->chunks = more, list->room = room;
  }
  list->chunks[list->count++] = *given;
  return 0;
}

static int stream_failed(struct ArrowArrayStream *stream, int code) {
  const char *text =
      stream->get_last_error != NULL ? stream->get_last_error(stream) : NULL;
  PyErr_Format(PyExc_BufferError, "the Arrow stream failed (%d): %.400s", code,
               text != NULL ? text : "it does not say why");
  return -1;
}

/* The next array; 0: there is none any more, -1 with an exception. The GIL is free
 * meanwhile: producers compute in threads, which may ask for it. */
static int next_array(struct ArrowArrayStream *stream, struct ArrowArray *out) {
  int code;
  *out = (struct ArrowArray){0};
  Py_BEGIN_ALLOW_THREADS;
  code = stream->get_next(stream, out);
  Py_END_ALLOW_THREADS;
  if (code != 0) return stream_failed(stream, code);
  if (PyErr_CheckSignals() < 0) {
    RELEASE(out);
    return -1;
  }
  return out->release != NULL;
}

/* All arrays of a stream, without those that have no elements. */
static int read_stream(struct ArrowArrayStream *stream, const arrow_type *type,
                       chunk_list *list) {
  for (;;) {
    struct ArrowArray array;
    chunk made;
    int found = next_array(stream, &array);
    if (found <= 0) return found;
    int failed = import_array(&array, type, &made) < 0;
    RELEASE(&array); /* if it was not moved */
    if (failed) return -1;
    if (dlw_dl(made.values)->shape[0] == 0) {
      release_chunk(&made);
    } else if (append_chunk(list, &made) < 0) {
      return -1;
    }
  }
}

/* Fresh memory with all chunks, one after the other. */
static int join_chunks(const chunk_list *list, const arrow_type *type, chunk *out) {
  int64_t shape[DLW_MAX_NDIM], length = 0;
  int nulls = 0;
  *out = (chunk){0};
  for (size_t i = 0; i < list->count; i++) {
    int64_t here = dlw_dl(list->chunks[i].values)->shape[0];
    if (__builtin_add_overflow(length, here, &length)) {
      return wrong("more elements than memory can hold");
    }
    nulls |= list->chunks[i].validity != NULL;
  }
  int32_t ndim = full_shape(type, length, shape);
  DLDataType boolean = {kDLBool, 8, 1};
  out->values = dlw_empty(ndim, shape, type->dtype, 0);
  if (out->values != NULL && nulls) out->validity = dlw_empty(1, shape, boolean, 0);
  if (out->values == NULL || (nulls && out->validity == NULL)) {
    release_chunk(out);
    return -1;
  }
  char *to = dlw_dl(out->values)->data;
  uint8_t *valid = nulls ? dlw_dl(out->validity)->data : NULL;
  for (size_t i = 0; i < list->count; i++) {
    const chunk *one = &list->chunks[i];
    const DLTensor *from = dlw_dl(one->values);
    size_t bytes = (size_t)dlw_nbytes(from, 0), rows = (size_t)from->shape[0];
    if (bytes > 0) memcpy(to, dlw_first(from), bytes);
    to += bytes;
    if (!nulls) continue;
    if (one->validity == NULL) {
      memset(valid, 1, rows);
    } else {
      memcpy(valid, dlw_dl(one->validity)->data, rows);
    }
    valid += rows;
  }
  return 0;
}

static int import_stream(struct ArrowArrayStream *stream, const char *name,
                         chunk *out) {
  struct ArrowSchema schema = {0};
  arrow_type type;
  chunk_list list = {0};
  if (stream->release == NULL) return wrong("a stream that was released");
  int code;
  Py_BEGIN_ALLOW_THREADS;
  code = stream->get_schema(stream, &schema);
  Py_END_ALLOW_THREADS;
  if (code != 0) return stream_failed(stream, code);
  int failed = parse_type(&schema, name, &type) < 0;
  RELEASE(&schema);
  failed = failed || read_stream(stream, &type, &list) < 0;
  if (!failed && list.count == 1) {
    *out = list.chunks[0];
    list.count = 0;
  } else if (!failed) {
    failed = join_chunks(&list, &type, out) < 0;
  }
  release_chunks(&list);
  return failed ? -1 : 0;
}

PyObject *dlw_from_arrow_stream(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *capsule, *column;
  chunk made;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &column)) return NULL;
  const char *name = column_name(column);
  if (name == NULL && PyErr_Occurred()) return NULL;
  struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, DLW_ARROW_STREAM);
  if (stream == NULL) return NULL;
  int failed = import_stream(stream, name, &made) < 0;
  RELEASE(stream);
  return failed ? NULL : to_python(&made);
}

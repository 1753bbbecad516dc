/* Arrow's arrays, by their capsules, as Tensors: the memory of one chunk without a
 * copy, read-only as Arrow's memory is; bitmaps (of bools, and of nulls) and several
 * chunks copied. Every struct is checked before its pointers are used. The content of
 * capsules is moved out before any code of the producer runs, and released once, also
 * on failure: an empty capsule is a BufferError.
 *
 * More than 500 lines: one format, whose readers share one table of types. */

#include <stdlib.h>
#include <string.h>

#include "arrow_type.h"
#include "functions.h"

/* Calls release of a struct that is not empty. It may be foreign code, which must not
 * see a pending exception. */
#define RELEASE(place)                                     \
  do {                                                     \
    PyObject *kept = dlw_put_aside();                      \
    if ((place)->release != NULL) (place)->release(place); \
    dlw_put_back(kept);                                    \
  } while (0)

/* --- arrays ----------------------------------------------------------------------- */

/* Whether the array has what its type needs, and enough elements: up to `end`. */
static int check_array(const struct ArrowArray *array, int64_t buffers,
                       int64_t children, int64_t end) {
  if (array == NULL) return dlw_arrow_wrong("an array that is not there");
  if (array->release == NULL) return dlw_arrow_wrong("an array that was released");
  if (array->length < 0 || array->offset < 0 ||
      array->offset > INT64_MAX - array->length) {
    return dlw_arrow_wrong("a negative length or offset, or one beyond all memory");
  }
  if (array->null_count < -1 || array->null_count > array->length) {
    return dlw_arrow_wrong("a number of nulls that cannot be");
  }
  if (array->n_buffers != buffers || (buffers > 0 && array->buffers == NULL)) {
    return dlw_arrow_wrong("another number of buffers than the type has");
  }
  if (array->n_children < children || (children > 0 && array->children == NULL)) {
    return dlw_arrow_wrong("fewer children than the type has");
  }
  if (array->dictionary != NULL) {
    return dlw_arrow_wrong("a dictionary that the type lacks");
  }
  if (end > array->length) return dlw_arrow_wrong("a child with too few elements");
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
  /* No 64-bit machine has as much; only wasm knows its memory size. */
  dlw_status status = bytes >> 57 == 0 ? dlw_check(&described, 0) : DLW_TOO_LARGE;
  if (status != DLW_OK) dlw_raise(status, &described);
  return status == DLW_OK ? 0 : -1;
}

/* Nulls among `length` elements from `first` on (both without the array's own offset);
 * -1 with an exception. A null_count of 0 says that there are none, as in all of Arrow;
 * any other may be wrong, and the bitmap is counted. */
static int64_t count_nulls(const struct ArrowArray *array, int64_t first,
                           int64_t length) {
  const uint8_t *bits = array->buffers[0];
  if (array->null_count == 0 || length == 0) return 0;
  if (bits == NULL) {
    return array->null_count < 0 ? 0 : dlw_arrow_wrong("nulls without saying which");
  }
  int64_t at = array->offset + first, end = at + length, valid = 0;
  if (check_bits(bits, end) < 0) return -1;
  for (; at < end && at % 8 != 0; at++) valid += bit_at(bits, at);
  for (; at + 8 <= end; at += 8) valid += __builtin_popcount(bits[at / 8]);
  for (; at < end; at++) valid += bit_at(bits, at);
  return length - valid;
}

/* One level of an array: `count` elements from `first` on, without its own offset. */
typedef struct {
  const struct ArrowArray *array;
  int64_t first, count;
} arrow_level;

/* The elements of an array, checked. */
typedef struct {
  const void *data;
  int64_t first;  /* the element of `data` that is element 0 */
  int64_t length; /* of axis 0 */
  /* From the outermost on, `rows` of them of axis 0: the array and, before it, the
   * struct that it is a column of. The others are in lists. */
  arrow_level levels[DLW_MAX_NDIM + 1];
  int rows, depth;
} arrow_elements;

static void add_level(arrow_elements *found, const struct ArrowArray *array,
                      int64_t first, int64_t count) {
  found->levels[found->depth++] = (arrow_level){array, first, count};
}

/* Checks the levels against each other before any bitmap is read: a bitmap has no
 * length of its own. */
static int find_elements(const struct ArrowArray *array, const arrow_type *type,
                         arrow_elements *found) {
  int64_t first = 0, end = 0, buffers = type->lists > 0 ? 1 : 2;
  found->depth = 0;
  if (array == NULL) return dlw_arrow_wrong("an array that is not there");
  found->length = array->length;
  if (type->column >= 0) {
    if (check_array(array, 1, type->column + 1, 0) < 0) return -1;
    add_level(found, array, 0, found->length);
    first = array->offset, end = first + found->length;
    array = array->children[type->column];
  }
  if (check_array(array, buffers, type->lists > 0, end) < 0) return -1;
  add_level(found, array, first, found->length);
  found->rows = found->depth;

  int64_t count = found->length; /* of elements of this level from `first` on */
  for (int i = 0; i < type->lists; i++) {
    int64_t width = type->widths[i];
    first += array->offset;
    if (__builtin_mul_overflow(first, width, &first) ||
        __builtin_mul_overflow(count, width, &count) ||
        __builtin_add_overflow(first, count, &end)) {
      return dlw_arrow_wrong("lists of more elements than memory can hold");
    }
    const struct ArrowArray *child = array->children[0];
    int last = i == type->lists - 1;
    if (check_array(child, last ? 2 : 1, !last, end) < 0) return -1;
    add_level(found, child, first, count);
    array = child;
  }
  first += array->offset;
  if (type->binary &&
      __builtin_mul_overflow(first, type->shape[type->ndim - 1], &first)) {
    return dlw_arrow_wrong("more elements than memory can hold");
  }
  found->data = array->buffers[1];
  found->first = first;
  return 0;
}

/* --- nulls ------------------------------------------------------------------------ */

/* Nulls of a level within lists, in those of the rows that are valid (NULL: all are);
 * -1 with an exception. */
static int64_t count_nulls_inside(const arrow_elements *from, const arrow_level *level,
                                  const uint8_t *valid) {
  if (valid == NULL) return count_nulls(level->array, level->first, level->count);
  int64_t nulls = 0, width = level->count / from->length;
  for (int64_t i = 0; i < from->length; i++) {
    if (!valid[i]) continue;
    int64_t here = count_nulls(level->array, level->first + i * width, width);
    if (here < 0) return -1;
    nulls += here;
  }
  return nulls;
}

/* Which elements of axis 0 are valid, as fresh bools: those that are null neither
 * themselves nor as rows of the struct; NULL if all are valid. -1 with an exception,
 * also for nulls within lists. */
static int find_valid(const arrow_elements *from, dlw_tensor **out) {
  uint8_t *valid = NULL;
  *out = NULL;
  for (int i = 0; i < from->depth; i++) {
    const arrow_level *level = &from->levels[i];
    int64_t nulls = i < from->rows
                        ? count_nulls(level->array, level->first, level->count)
                        : count_nulls_inside(from, level, valid);
    if (nulls > 0 && i >= from->rows) {
      PyErr_Format(PyExc_BufferError,
                   "%lld elements of lists are null: fill them first, for example with "
                   "fill_null(0)",
                   (long long)nulls);
      nulls = -1;
    }
    if (nulls > 0 && valid == NULL) {
      *out = dlw_empty(1, &from->length, (DLDataType){kDLBool, 8, 1}, 0);
      if (*out == NULL) return -1;
      valid = dlw_dl(*out)->data;
      memset(valid, 1, (size_t)from->length);
    }
    if (nulls > 0) {
      const uint8_t *bits = level->array->buffers[0];
      int64_t at = level->array->offset + level->first;
      for (int64_t j = 0; j < from->length; j++) {
        valid[j] &= (uint8_t)bit_at(bits, at + j);
      }
    }
    if (nulls < 0) {
      dlw_release_quietly(*out);
      *out = NULL;
      return -1;
    }
  }
  return 0;
}

/* --- tensors ---------------------------------------------------------------------- */

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
static dlw_tensor *share_elements(struct ArrowArray *array, const arrow_type *type,
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
  dlw_tensor *tensor = dlw_import_described(sizeof *array, &described,
                                            DLPACK_FLAG_BITMASK_READ_ONLY, &DLW_ANY);
  if (tensor == NULL) return NULL;
  *(struct ArrowArray *)dlw_payload(tensor) = *array;
  array->release = NULL;
  tensor->drop = drop_arrow;
  return tensor;
}

/* Bytes of arrow.bool8 other than 0 and 1 mean 1, but other readers do not know that.
 */
static int has_other_bools(const DLTensor *dl) {
  const uint8_t *bytes = (const uint8_t *)dlw_first(dl);
  uint8_t all = 0;
  for (int64_t i = 0, size = dlw_size(dl); i < size; i++) all |= bytes[i];
  return all > 1;
}

/* A copy with 0 and 1 alone, in place of the hold. */
static dlw_tensor *as_bools(dlw_tensor *tensor) {
  dlw_tensor *copy = dlw_copy(tensor);
  dlw_release_quietly(tensor);
  if (copy == NULL) return NULL;
  uint8_t *bytes = dlw_dl(copy)->data;
  for (int64_t i = 0, size = dlw_size(dlw_dl(copy)); i < size; i++) {
    bytes[i] = bytes[i] != 0;
  }
  return copy;
}

static dlw_tensor *take_elements(struct ArrowArray *array, const arrow_type *type,
                                 const arrow_elements *from) {
  dlw_tensor *tensor = share_elements(array, type, from);
  int others = tensor != NULL && type->bool8 && has_other_bools(dlw_dl(tensor));
  return others ? as_bools(tensor) : tensor;
}

/* One array as memory, and its valid elements: NULL if all are. */
typedef struct {
  dlw_tensor *values, *valid;
} chunk;

static void release_chunk(chunk *given) {
  dlw_release_quietly(given->values);
  dlw_release_quietly(given->valid);
  *given = (chunk){0};
}

static int import_array(struct ArrowArray *array, const arrow_type *type, chunk *out) {
  arrow_elements from;
  *out = (chunk){0};
  if (find_elements(array, type, &from) < 0) return -1;
  if (find_valid(&from, &out->valid) < 0) return -1;
  out->values = take_elements(array, type, &from);
  if (out->values != NULL) return 0;
  release_chunk(out);
  return -1;
}

/* The axes in the order of the type, instead of that of memory. */
static int permute(const arrow_type *type, chunk *made) {
  int64_t shape[DLW_MAX_NDIM], strides[DLW_MAX_NDIM];
  const DLTensor *dl = dlw_dl(made->values);
  dlw_tensor *view;
  shape[0] = dl->shape[0], strides[0] = dl->strides[0];
  for (int32_t i = 0; i < type->ndim; i++) {
    shape[i + 1] = dl->shape[type->order[i] + 1];
    strides[i + 1] = dl->strides[type->order[i] + 1];
  }
  dlw_status status = dlw_tensor_view(made->values, dl->ndim, shape, strides, 0, &view);
  if (status != DLW_OK) {
    dlw_raise(status, dl);
    return -1;
  }
  dlw_release_quietly(made->values);
  made->values = view;
  return 0;
}

static PyObject *to_python(const arrow_type *type, chunk *given) {
  if (type->permuted && permute(type, given) < 0) {
    release_chunk(given);
    return NULL;
  }
  chunk taken = *given;
  *given = (chunk){0};
  PyObject *values = dlw_tensor_object(taken.values);
  if (values == NULL) {
    dlw_release_quietly(taken.valid);
    return NULL;
  }
  PyObject *valid =
      taken.valid != NULL ? dlw_tensor_object(taken.valid) : Py_NewRef(Py_None);
  if (valid == NULL) {
    Py_DECREF(values);
    return NULL;
  }
  return Py_BuildValue("(NN)", values, valid);
}

/* --- one array -------------------------------------------------------------------- */

/* The content of a capsule is moved out in one step, before anything else runs: it
 * always has one owner. */
static int taken_before(const char *what) {
  return dlw_fail(
      PyExc_BufferError,
      "the Arrow capsule holds no %s: it was taken already, or was released; ask "
      "its producer for another one",
      what);
}

static int take_schema(PyObject *capsule, struct ArrowSchema *out) {
  struct ArrowSchema *there = PyCapsule_GetPointer(capsule, DLW_ARROW_SCHEMA);
  if (there == NULL) return -1;
  *out = *there;
  there->release = NULL;
  return out->release != NULL ? 0 : taken_before("type");
}

static int take_stream(PyObject *capsule, struct ArrowArrayStream *out) {
  struct ArrowArrayStream *there = PyCapsule_GetPointer(capsule, DLW_ARROW_STREAM);
  if (there == NULL) return -1;
  *out = *there;
  there->release = NULL;
  return out->release != NULL ? 0 : taken_before("stream");
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
               "the Arrow array is on a device of type %d, or not ready: only arrays "
               "on the CPU that need no waiting can be shared; copy it there first",
               (int)there->device_type);
  return NULL;
}

static int take_array(PyObject *capsule, struct ArrowArray *out) {
  struct ArrowArray *there = array_in(capsule);
  if (there == NULL) return -1;
  *out = *there;
  there->release = NULL;
  return out->release != NULL ? 0 : taken_before("array");
}

PyObject *dlw_from_arrow_array(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *schema_capsule, *array_capsule, *axes_of;
  const char *name;
  struct ArrowSchema schema;
  struct ArrowArray array = {0};
  arrow_type type;
  chunk made;
  if (!PyArg_ParseTuple(args, "OOzO", &schema_capsule, &array_capsule, &name,
                        &axes_of)) {
    return NULL;
  }
  if (take_schema(schema_capsule, &schema) < 0) return NULL;
  int failed = take_array(array_capsule, &array) < 0 ||
               dlw_parse_arrow(&schema, name, axes_of, &type) < 0;
  RELEASE(&schema);
  failed = failed || import_array(&array, &type, &made) < 0;
  RELEASE(&array); /* if it was not moved on */
  return failed ? NULL : to_python(&type, &made);
}

/* --- streams ---------------------------------------------------------------------- */

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
  return dlw_fail(PyExc_BufferError, "the Arrow stream failed (%d): %.400s", code,
                  text != NULL ? text : "it does not say why");
}

/* The next array; 0 at the end, -1 with an exception. The GIL is free meanwhile:
 * producers compute in threads, which may ask for it. */
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

/* Fresh memory with all chunks in order. */
static int join_chunks(const chunk_list *list, const arrow_type *type, chunk *out) {
  int64_t shape[DLW_MAX_NDIM], length = 0;
  int nulls = 0;
  *out = (chunk){0};
  for (size_t i = 0; i < list->count; i++) {
    int64_t here = dlw_dl(list->chunks[i].values)->shape[0];
    if (__builtin_add_overflow(length, here, &length)) {
      return dlw_arrow_wrong("more elements than memory can hold");
    }
    nulls |= list->chunks[i].valid != NULL;
  }
  int32_t ndim = full_shape(type, length, shape);
  DLDataType boolean = {kDLBool, 8, 1};
  out->values = dlw_empty(ndim, shape, type->dtype, 0);
  if (out->values != NULL && nulls) out->valid = dlw_empty(1, shape, boolean, 0);
  if (out->values == NULL || (nulls && out->valid == NULL)) {
    release_chunk(out);
    return -1;
  }
  char *to = dlw_dl(out->values)->data;
  uint8_t *valid = nulls ? dlw_dl(out->valid)->data : NULL;
  for (size_t i = 0; i < list->count; i++) {
    const chunk *one = &list->chunks[i];
    const DLTensor *from = dlw_dl(one->values);
    size_t bytes = (size_t)dlw_nbytes(from, 0), rows = (size_t)from->shape[0];
    if (bytes > 0) memcpy(to, dlw_first(from), bytes);
    to += bytes;
    if (!nulls) continue;
    if (one->valid == NULL) {
      memset(valid, 1, rows);
    } else {
      memcpy(valid, dlw_dl(one->valid)->data, rows);
    }
    valid += rows;
  }
  return 0;
}

static int import_stream(struct ArrowArrayStream *stream, const char *name,
                         PyObject *axes_of, arrow_type *type, chunk *out) {
  struct ArrowSchema schema = {0};
  chunk_list list = {0};
  if (stream->get_schema == NULL) return dlw_arrow_wrong("a stream without get_schema");
  if (stream->get_next == NULL) return dlw_arrow_wrong("a stream without get_next");
  int code;
  Py_BEGIN_ALLOW_THREADS;
  code = stream->get_schema(stream, &schema);
  Py_END_ALLOW_THREADS;
  if (code != 0) return stream_failed(stream, code);
  int failed = dlw_parse_arrow(&schema, name, axes_of, type) < 0;
  RELEASE(&schema);
  failed = failed || read_stream(stream, type, &list) < 0;
  if (!failed && list.count == 1) {
    *out = list.chunks[0];
    list.count = 0;
  } else if (!failed) {
    failed = join_chunks(&list, type, out) < 0;
  }
  release_chunks(&list);
  return failed ? -1 : 0;
}

PyObject *dlw_from_arrow_stream(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *capsule, *axes_of;
  const char *name;
  struct ArrowArrayStream stream;
  arrow_type type;
  chunk made;
  if (!PyArg_ParseTuple(args, "OzO", &capsule, &name, &axes_of)) return NULL;
  if (take_stream(capsule, &stream) < 0) return NULL;
  int failed = import_stream(&stream, name, axes_of, &type, &made) < 0;
  RELEASE(&stream);
  return failed ? NULL : to_python(&type, &made);
}

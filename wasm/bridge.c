/* The functions that JavaScript calls directly, and the table of the holds it has.
 *
 * JavaScript never sees a bare pointer that it could give back twice: it has handles, a
 * slot and a generation, and a handle that was released or made up is refused. Failing
 * functions return 0 and keep the Python exception until JavaScript has it raised.
 */
#include <stdlib.h>

#include "convert.h"
#include "core.h"
#include "pack.h"

#ifdef __EMSCRIPTEN__
#define EXPORTED(name) __attribute__((export_name(#name), used))
#else /* the same names, for tests through ctypes */
#define EXPORTED(name) __attribute__((visibility("default")))
#endif
#define BRIDGE(type, name) EXPORTED(dlw_bridge_##name) type dlw_bridge_##name

/* --- handles --------------------------------------------------------------------- */

#define SLOT_BITS 20
#define SLOT_MASK ((1u << SLOT_BITS) - 1)
#define GENERATION_MASK ((1u << (32 - SLOT_BITS)) - 1)

typedef struct {
  dlw_tensor *tensor; /* NULL: free */
  uint32_t generation;
  uint32_t next_free;
} slot;

static slot *slots; /* slot 0 is never given out, so that 0 is no handle */
static uint32_t capacity, next_free;

static int grow(void) {
  uint32_t wanted = capacity ? capacity * 2 : 64;
  if (wanted > SLOT_MASK + 1) return -1;
  slot *larger = realloc(slots, wanted * sizeof(slot));
  if (larger == NULL) return -1;
  slots = larger;
  for (uint32_t i = capacity; i < wanted; i++) {
    slots[i] = (slot){.next_free = i + 1 < wanted ? i + 1 : 0};
  }
  next_free = capacity ? capacity : 1;
  capacity = wanted;
  return 0;
}

static slot *find(uint32_t handle) {
  uint32_t index = handle & SLOT_MASK;
  if (index == 0 || index >= capacity) return NULL;
  slot *entry = &slots[index];
  int current = entry->generation == handle >> SLOT_BITS;
  return entry->tensor != NULL && current ? entry : NULL;
}

/* Hands the hold to JavaScript; on failure it is released and an exception is set. */
static dlw_tensor *lend(dlw_tensor *tensor) {
  if (tensor == NULL) return NULL;
  if (next_free == 0 && grow() < 0) {
    dlw_tensor_release(tensor);
    PyErr_NoMemory();
    return NULL;
  }
  uint32_t index = next_free;
  next_free = slots[index].next_free;
  slots[index].tensor = tensor;
  tensor->handle = index | slots[index].generation << SLOT_BITS;
  return tensor;
}

/* Takes the hold back from JavaScript; NULL when the handle is stale. */
static dlw_tensor *take(uint32_t handle) {
  slot *entry = find(handle);
  if (entry == NULL) return NULL;
  dlw_tensor *tensor = entry->tensor;
  entry->tensor = NULL;
  entry->generation = (entry->generation + 1) & GENERATION_MASK;
  entry->next_free = next_free;
  next_free = handle & SLOT_MASK;
  tensor->handle = 0;
  return tensor;
}

static void raise_stale(uint32_t handle) { dlw_fail("stale", "(I)", handle); }

/* --- errors ---------------------------------------------------------------------- */

static PyObject *pending, *pending_text;

/* What a function returns to JavaScript; keeps the exception when there is no tensor.
 */
static dlw_tensor *result(dlw_tensor *tensor) {
  tensor = lend(tensor);
  if (tensor == NULL) {
    PyObject *raised = PyErr_GetRaisedException();
    dlw_set(&pending, raised);
  }
  return tensor;
}

/* 0 none, 1 other, 2 cannot be shared, 3 released, 4 copy needed, 5 device lost. */
BRIDGE(int32_t, error_kind)(void) {
  if (pending == NULL) return 0;
  PyObject *kind = PyObject_CallFunctionObjArgs(dlw_core->kind, pending, NULL);
  long number = kind != NULL ? PyLong_AsLong(kind) : -1;
  Py_XDECREF(kind);
  PyErr_Clear();
  return number > 0 ? (int32_t)number : 1;
}

/* str(exception), NUL-terminated UTF-8, valid until the next call of this function. */
BRIDGE(const char *, error_text)(void) {
  dlw_set(&pending_text, pending != NULL ? PyObject_Str(pending) : NULL);
  const char *text =
      pending_text != NULL ? PyUnicode_AsUTF8AndSize(pending_text, NULL) : NULL;
  PyErr_Clear();
  return text != NULL ? text : "";
}

PyObject *dlw_bridge_raise_pending(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  Py_CLEAR(pending_text);
  if (pending == NULL) Py_RETURN_NONE;
  PyObject *raised = pending;
  pending = NULL;
  PyErr_SetRaisedException(raised);
  return NULL;
}

/* --- arguments that do not fit into 32 bits -------------------------------------- */

static struct {
  int64_t shape[DLW_MAX_NDIM];
  uint64_t byte_offset;
} scratch;

BRIDGE(void *, scratch)(void) { return &scratch; }

/* --- tensors --------------------------------------------------------------------- */

/* A hold on the memory of any object that shares some. */
BRIDGE(dlw_tensor *, borrow)(PyObject *obj, int32_t writable) {
  dlw_tensor *tensor = dlw_import_any(obj);
  if (tensor != NULL && writable && dlw_read_only(tensor)) {
    dlw_tensor_release(tensor);
    tensor = NULL;
    dlw_fail("not_writable", "()");
  }
  return result(tensor);
}

BRIDGE(dlw_tensor *, empty)(int32_t ndim, uint32_t dtype, uint32_t flags) {
  return result(dlw_empty(ndim, scratch.shape, dlw_dtype_unpack(dtype), flags));
}

BRIDGE(dlw_tensor *, wrap)(uint32_t gpu, int32_t device_id, int32_t ndim,
                           uint32_t dtype, uint32_t flags) {
  dlw_tensor *tensor = NULL;
  DLTensor described = {
      .device = {kDLWebGPU, device_id}, .ndim = ndim, .dtype = dlw_dtype_unpack(dtype)};
  dlw_status status =
      dlw_tensor_wrap_gpu(gpu, device_id, ndim, scratch.shape, described.dtype, flags,
                          scratch.byte_offset, &tensor);
  if (status != DLW_OK) {
    dlw_raise(status, &described);
    return result(NULL);
  }
  /* Until nothing can fail any more, the GPU handle stays the caller's. */
  void (*drop)(dlw_tensor *) = tensor->drop;
  tensor->drop = NULL;
  tensor = result(tensor);
  if (tensor != NULL) tensor->drop = drop;
  return tensor;
}

/* The tensor of a handle, with the exception for a stale one. */
static dlw_tensor *expect(uint32_t handle) {
  slot *entry = find(handle);
  if (entry == NULL) raise_stale(handle);
  return entry != NULL ? entry->tensor : NULL;
}

BRIDGE(dlw_tensor *, share)(uint32_t handle) {
  dlw_tensor *tensor = expect(handle);
  return result(tensor != NULL ? dlw_share(tensor) : NULL);
}

BRIDGE(dlw_tensor *, pack)(uint32_t handle) {
  dlw_tensor *tensor = expect(handle);
  return result(tensor != NULL ? dlw_copy(tensor) : NULL);
}

/* --- elements on their way to a GPU ---------------------------------------------- */

#define CHUNK_BYTES ((size_t)8 << 20)

/* Memory that every upload uses again: as large as the largest so far, up to
 * CHUNK_BYTES.
 */
static char *chunk;
static size_t chunk_bytes;

static int reserve_chunk(uint64_t wanted) {
  size_t bytes = wanted < CHUNK_BYTES ? (size_t)wanted : CHUNK_BYTES;
  if (bytes <= chunk_bytes) return 0;
  free(chunk);
  chunk = malloc(bytes);
  chunk_bytes = chunk != NULL ? bytes : 0;
  if (chunk == NULL) PyErr_NoMemory();
  return chunk != NULL ? 0 : -1;
}

/* Packs and converts elements from position `first` on; how many, 0 with an exception.
 * Where they are comes back in scratch.shape[0]. -1 where they are no whole words, of
 * which alone GPU buffers can be written: pack all of them first. */
static int64_t fill_chunk(const DLTensor *source, DLDataType dtype, int64_t first) {
  int64_t lanes, from = dlw_itemsize(source->dtype), to = dlw_itemsize(dtype);
  int64_t width = from > to ? from : to;
  int same = dlw_dtype_pack(source->dtype) == dlw_dtype_pack(dtype);
  dlw_converter convert = same ? NULL : dlw_converter_for(source->dtype, dtype, &lanes);
  if (!same && convert == NULL) {
    dlw_fail("conversion", "(II)", dlw_dtype_pack(source->dtype),
             dlw_dtype_pack(dtype));
    return 0;
  }
  if (reserve_chunk((uint64_t)dlw_size(source) * (uint64_t)width) < 0) return 0;
  int64_t limit = (int64_t)chunk_bytes / width;
  /* Narrower elements end where the wider ones will, so that none is written over. */
  char *target = to > from ? chunk + limit * (to - from) : chunk;
  const void *packed;
  int64_t count = dlw_pack_some(target, source, first, limit, &packed);
  if (count * to % 4 != 0 && first + count < dlw_size(source)) return -1;
  if (convert != NULL) {
    int64_t done =
        dlw_convert(convert, chunk, packed, count * lanes, from / lanes, to / lanes);
    if (done < count * lanes) {
      dlw_fail("overflow", source->dtype.code == kDLInt ? "(IILL)" : "(IILK)",
               dlw_dtype_pack(source->dtype), dlw_dtype_pack(dtype),
               (long long)(first + done / lanes),
               (long long)((const int64_t *)packed)[done]);
      return 0;
    }
    packed = chunk;
  }
  scratch.shape[0] = (int64_t)(uintptr_t)packed;
  return count;
}

BRIDGE(int32_t, chunk)(uint32_t handle, uint32_t dtype, double first) {
  dlw_tensor *tensor = expect(handle);
  int64_t count = 0;
  if (tensor != NULL) {
    count = fill_chunk(dlw_dl(tensor), dlw_dtype_unpack(dtype), (int64_t)first);
  }
  if (count == 0) result(NULL);
  return (int32_t)count;
}

/* --- releasing ------------------------------------------------------------------- */

BRIDGE(int32_t, release)(uint32_t handle) {
  dlw_tensor *tensor = take(handle);
  if (tensor == NULL) return -1;
  dlw_tensor_release(tensor);
  return 0;
}

BRIDGE(void, on_drop)(void (*callback)(uint32_t gpu)) { dlw_on_gpu_drop(callback); }

/* --- the same table, from Python ------------------------------------------------- */

PyObject *dlw_bridge_take(PyObject *module, PyObject *arg) {
  (void)module;
  unsigned long handle = PyLong_AsUnsignedLong(arg);
  if (handle == (unsigned long)-1 && PyErr_Occurred()) return NULL;
  dlw_tensor *tensor = handle <= UINT32_MAX ? take((uint32_t)handle) : NULL;
  if (tensor == NULL) raise_stale((uint32_t)handle);
  return dlw_tensor_object(tensor);
}

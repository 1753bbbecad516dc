#include "upload.h"

#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "pack.h"

#define CHUNK_BYTES ((size_t)4 << 20) /* js/src/webgpu/buffers/upload.ts: PIECE */

/* Bytes of an element before or after its conversion, whichever are more. */
static int64_t width_of(const DLTensor *source, DLDataType dtype) {
  int64_t from = dlw_itemsize(source->dtype), to = dlw_itemsize(dtype);
  return from > to ? from : to;
}

char *dlw_upload_scratch(const dlw_tensor *tensor, DLDataType dtype, size_t *bytes) {
  static char *scratch;
  static size_t size;
  const DLTensor *source = &tensor->managed.dl_tensor;
  uint64_t all = (uint64_t)dlw_size(source) * (uint64_t)width_of(source, dtype) + 1;
  size_t wanted = all < CHUNK_BYTES ? (size_t)all : CHUNK_BYTES;
  if (wanted > size) {
    free(scratch);
    scratch = malloc(wanted);
    size = scratch != NULL ? wanted : 0;
    if (scratch == NULL) PyErr_NoMemory();
  }
  *bytes = size;
  return scratch;
}

static int check_request(dlw_tensor *tensor, int64_t first) {
  const DLTensor *source = dlw_dl(tensor);
  if (!dlw_is_host(source->device)) {
    dlw_raise(DLW_BAD_DEVICE, source);
    return -1;
  }
  if (dlw_element_bits(source->dtype, tensor->managed.flags) % 8 != 0) {
    return dlw_fail(PyExc_BufferError,
                    "packed sub-byte elements do not come in pieces");
  }
  if (first >= 0 && first < dlw_size(source)) return 0;
  return dlw_fail(PyExc_ValueError, "there is no element %lld in a tensor of %lld",
                  (long long)first, (long long)dlw_size(source));
}

int64_t dlw_upload_chunk(dlw_tensor *tensor, DLDataType dtype, int64_t first,
                         char *scratch, size_t bytes, int64_t *address) {
  if (check_request(tensor, first) < 0) return 0;
  const DLTensor *source = dlw_dl(tensor);
  int64_t lanes, from = dlw_itemsize(source->dtype), to = dlw_itemsize(dtype);
  int64_t limit = (int64_t)bytes / width_of(source, dtype), unit = 4;
  while (unit > 1 && unit / 2 * to % 4 == 0) unit /= 2; /* of whole words */
  if (limit < dlw_size(source)) limit -= limit % unit;
  int same = dlw_dtype_pack(source->dtype) == dlw_dtype_pack(dtype);
  dlw_converter convert = same ? NULL : dlw_converter_for(source->dtype, dtype, &lanes);
  if (!same && convert == NULL) {
    dlw_raise_conversion(DLW_NO_CONVERSION, source->dtype, dtype, (dlw_misfit){0, 0});
    return 0;
  }
  if (limit == 0) {
    PyErr_Format(PyExc_ValueError, "%zu bytes are too few for whole words", bytes);
    return 0;
  }
  /* Narrower elements end where the wider ones will, so none is overwritten. */
  char *target = to > from ? scratch + limit * (to - from) : scratch;
  const void *packed;
  int64_t count = dlw_pack_some(target, source, first, limit, unit, &packed);
  if (convert != NULL) {
    int64_t done =
        dlw_convert(convert, scratch, packed, count * lanes, from / lanes, to / lanes);
    if (done < count * lanes) { /* only numbers of 64 bits can be too large */
      dlw_misfit misfit = {.position = first + done / lanes};
      memcpy(&misfit.bits, (const char *)packed + 8 * done, sizeof misfit.bits);
      dlw_raise_conversion(DLW_MISFIT, source->dtype, dtype, misfit);
      return 0;
    }
    packed = scratch;
  }
  *address = (int64_t)(uintptr_t)packed;
  return count;
}

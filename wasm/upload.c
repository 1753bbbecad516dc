#include "upload.h"

#include <stdlib.h>

#include "convert.h"
#include "pack.h"

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

int64_t dlw_upload_chunk(const DLTensor *source, DLDataType dtype, int64_t first,
                         int64_t *address) {
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
  *address = (int64_t)(uintptr_t)packed;
  return count;
}

#include <string.h>

#include "models.h"

/* --- making tensors --------------------------------------------------------------- */

/* A few axes with few elements: in any order, backwards, with gaps, broadcast, on top
 * of each other. */
void take_geometry(input *in, geometry *lies) {
  int32_t ndim = (int32_t)take_below(in, 6);
  if (take_below(in, 16) == 0) ndim = (int32_t)take_below(in, 65);
  lies->ndim = ndim;
  int64_t step = 1, size = 1;
  for (int i = ndim; i-- > 0;) {
    uint32_t how = take_byte(in);
    int64_t extent = how < 176   ? how % 5 + 1
                     : how < 184 ? 0
                     : how < 240 ? how - 170 /* tiles are 16 wide */
                                 : how;
    if (extent * size > MOST_ELEMENTS) extent = 1;
    lies->shape[i] = extent;
    if (extent != 0) size *= extent;
    switch (take_below(in, 8)) {
      case 0: /* row-major */
      case 1:
      case 2:
        lies->strides[i] = step;
        break;
      case 3:
        lies->strides[i] = -step;
        break;
      case 4:
        lies->strides[i] = 0;
        break;
      case 5: /* a gap */
        lies->strides[i] = step + (int64_t)take_below(in, 4);
        break;
      case 6:
        lies->strides[i] = (int64_t)take_below(in, 40) - 20;
        break;
      case 7: /* what no element uses */
        lies->strides[i] = extent > 1 ? 1 : take_wild(in);
    }
    if (extent > 1) step *= extent;
  }
  if (take_below(in, 4) > 0) return;
  for (int i = ndim - 1; i > 0; i--) { /* transposed */
    int j = (int)take_below(in, (uint32_t)i + 1);
    int64_t extent = lies->shape[i], stride = lies->strides[i];
    lies->shape[i] = lies->shape[j], lies->strides[i] = lies->strides[j];
    lies->shape[j] = extent, lies->strides[j] = stride;
  }
}

/* Somebody's memory, exactly as large as the tensor's span: ASan knows the ends. */
void describe(input *in, model *place) {
  model m = {.device = {ref_is_host((DLDevice){(int32_t)take_below(in, 14), 0}) ? 3 : 1,
                        (int32_t)take_below(in, 2)},
             .dtype = take_dtype(in)};
  uint64_t flags = take_below(in, 8);
  take_geometry(in, &m.lies);
  m.lies.bits = ref_element_bits(m.dtype, flags);
  m.flags = flags & (ref_padded(m.dtype, flags) ? 5 : 1);
  wide below = 0, above = 1, size = ref_size(&m.lies, INT64_MAX);
  if (size < 0) return;
  int row_major = take_below(in, 8) == 0;
  if (row_major) ref_row_major(&m.lies);
  if (size > 0 && !ref_span(&m.lies, &below, &above)) return;
  if (above - below > MOST_BYTES) return;
  uint32_t off = take_below(in, 16); /* misaligned now and then */
  off = off < 12 ? 0 : off - 11;
  m.on = new_memory((size_t)(above - below) + off, 1);
  fill(m.on, take_byte(in));
  m.first = (off - below) * 8;
  uintptr_t first = (uintptr_t)m.on->bytes + off - (uintptr_t)(int64_t)below;
  uint64_t byte_offset = take_below(in, 4) * take_below(in, 256);
  DLTensor source = {.data = (void *)(first - (uintptr_t)byte_offset),
                     .device = m.device,
                     .ndim = m.lies.ndim,
                     .dtype = m.dtype,
                     .shape = m.lies.shape,
                     .strides = row_major ? NULL : m.lies.strides,
                     .byte_offset = byte_offset};
  m.tensor = dlw_tensor_reserve(sizeof(memory *));
  dlw_status status = DLW_NO_MEMORY;
  if (m.tensor != NULL) status = dlw_tensor_describe(m.tensor, &source, flags);
  if (status != DLW_OK) { /* the memory stays ours */
    MUST(status == DLW_NO_MEMORY ? allocation_failed() : !ref_accepts(&source, flags));
    dlw_tensor_release(m.tensor);
    m.on->holders = m.on->drops = 1;
    forget(m.on);
    return;
  }
  MUST(ref_accepts(&source, flags));
  *(memory **)dlw_payload(m.tensor) = m.on;
  m.tensor->drop = drop;
  settle(&m);
  enter(place, &m);
}

void adopt_fresh(model *place, model *m) {
  const DLTensor *dl = dlw_dl(m->tensor);
  wide size = ref_size(&m->lies, INT64_MAX);
  size_t bytes = (size_t)((size * m->lies.bits + 7) / 8);
  m->on = new_memory(bytes, 0);
  m->on->ours = 1;
  m->device = (DLDevice){kDLCPU, 0};
  m->on->bytes = dl->data;
  m->on->shadow = calloc(1, bytes);
  m->first = 0;
  ref_row_major(&m->lies);
  MUST((uintptr_t)dl->data % 256 == 0 && dl->byte_offset == 0);
  enter(place, m);
}

void make_empty(input *in, model *place) {
  model m = {.dtype = take_dtype(in)};
  uint64_t flags = take_below(in, 8);
  take_geometry(in, &m.lies);
  if (take_below(in, 32) == 0) m.lies.shape[0] = take_wild(in);
  m.lies.bits = ref_element_bits(m.dtype, flags);
  m.flags = ref_padded(m.dtype, flags) ? 4 : 0;
  int allowed = ref_dtype_known(m.dtype) && !(m.flags != 0 && m.dtype.lanes != 1);
  for (int i = 0; i < m.lies.ndim; i++) allowed &= m.lies.shape[i] >= 0;
  wide size = allowed ? ref_size(&m.lies, INTPTR_MAX - 256) : -1;
  if (size * m.lies.bits > 8 * MOST_BYTES) return; /* not that much in a test */
  dlw_status status =
      dlw_tensor_empty(m.lies.ndim, m.lies.shape, m.dtype, flags, &m.tensor);
  MUST(status == DLW_NO_MEMORY ? allocation_failed()
                               : (status == DLW_OK) == (size >= 0));
  if (status != DLW_OK) return;
  adopt_fresh(place, &m);
  if (m.on->size > 0) fill(m.on, take_byte(in));
}

void wrap_gpu(input *in, model *place) {
  static uint32_t next = 1; /* handles are unique, so that drops can be told apart */
  model m = {.device = {kDLWebGPU, (int32_t)take_below(in, 3)},
             .dtype = take_dtype(in)};
  m.gpu = next++ | 1u << 31;
  uint64_t flags = take_below(in, 8);
  take_geometry(in, &m.lies);
  m.byte_offset = take_below(in, 2) ? 0 : (uint64_t)take_wild(in);
  m.lies.bits = ref_element_bits(m.dtype, flags);
  m.flags = flags & (ref_padded(m.dtype, flags) ? 5 : 1);
  DLTensor source = {.data = (void *)(uintptr_t)m.gpu,
                     .device = m.device,
                     .ndim = m.lies.ndim,
                     .dtype = m.dtype,
                     .shape = m.lies.shape,
                     .strides = take_below(in, 3) ? NULL : m.lies.strides,
                     .byte_offset = m.byte_offset};
  dlw_status status = dlw_tensor_wrap_gpu((uint32_t)m.gpu, m.device.device_id,
                                          m.lies.ndim, m.lies.shape, source.strides,
                                          m.dtype, flags, m.byte_offset, &m.tensor);
  int accepted = ref_accepts(&source, flags);
  MUST(status == DLW_NO_MEMORY ? allocation_failed() : (status == DLW_OK) == accepted);
  if (status != DLW_OK) return;
  if (source.strides == NULL) ref_row_major(&m.lies);
  settle(&m);
  m.on = new_memory(0, 0);
  enter(place, &m);
}

#include <string.h>

#include "convert.h"
#include "models.h"
#include "pack.h"

/* --- tensors of tensors ----------------------------------------------------------- */

static void share(input *in, const model *from, model *place) {
  model m = *from;
  m.tensor = dlw_tensor_share(from->tensor, take_below(in, 70));
  if (m.tensor == NULL) MUST(allocation_failed());
  if (m.tensor != NULL) enter(place, &m);
}

/* Whether a view whose element 0 is `offset` elements from that of `from` lies within
 * its span, and begins with a byte. */
static int fits_into(const geometry *view, const model *from, int64_t offset) {
  wide begin = (wide)offset * from->lies.bits, below, above, view_below, view_above;
  if (begin < INT64_MIN || begin > INT64_MAX || begin % 8 != 0) return 0;
  wide size = ref_size(view, ref_is_host(from->device) ? INTPTR_MAX : INT64_MAX);
  if (size <= 0) return size == 0;
  if (ref_size(&from->lies, INT64_MAX) == 0) return 0;
  if (!ref_span(&from->lies, &below, &above)) return 0;
  if (!ref_span(view, &view_below, &view_above)) return 0;
  return begin / 8 + view_below >= below && begin / 8 + view_above <= above;
}

static void view(input *in, const model *from, model *place) {
  model m = *from;
  int64_t offset = take_below(in, 3) ? (int64_t)take_below(in, 16) - 4 : 0;
  take_geometry(in, &m.lies);
  if (take_below(in, 16) == 0) offset = take_wild(in);
  if (take_below(in, 16) == 0) m.lies.shape[0] = take_wild(in);
  if (take_below(in, 16) == 0) m.lies.strides[0] = take_wild(in);
  int valid = 1;
  for (int i = 0; i < m.lies.ndim; i++) valid &= m.lies.shape[i] >= 0;
  valid = valid && fits_into(&m.lies, from, offset);
  dlw_status status = dlw_tensor_view(from->tensor, m.lies.ndim, m.lies.shape,
                                      m.lies.strides, offset, &m.tensor);
  if (ref_size(&m.lies, INT64_MAX) == 0 && (wide)offset * m.lies.bits % 8 != 0) {
    valid = status == DLW_OK; /* nothing begins there */
  }
  MUST(status == DLW_NO_MEMORY ? allocation_failed() : (status == DLW_OK) == valid);
  if (status != DLW_OK) return;
  m.first += (wide)offset * m.lies.bits;
  if (!ref_is_host(m.device)) {
    m.byte_offset += (uint64_t)(int64_t)((wide)offset * m.lies.bits / 8);
  }
  settle(&m);
  enter(place, &m);
}

static void raw(const model *from, model *place) {
  model m = *from;
  int64_t offset = -1;
  wide below = 0, above = 0;
  dlw_status status = dlw_tensor_raw(from->tensor, &m.tensor, &offset);
  if (!ref_is_host(from->device)) MUST(status == DLW_BAD_DEVICE);
  MUST(status != DLW_NO_MEMORY || allocation_failed());
  if (status != DLW_OK) return;
  if (ref_size(&from->lies, INT64_MAX) > 0) {
    MUST(ref_span(&from->lies, &below, &above));
  }
  MUST(offset == -below);
  m.dtype = (DLDataType){kDLUInt, 8, 1};
  m.flags &= 1;
  m.lies = (geometry){.ndim = 1, .shape = {(int64_t)(above - below)}, .strides = {1}};
  m.lies.bits = 8;
  m.first += below * 8;
  enter(place, &m);
}

/* The bytes of `from` as elements of another dtype, of any shape that has no more. */
static void retype(input *in, const model *from, model *place) {
  model m = *from;
  m.dtype = take_dtype(in);
  if (take_below(in, 2)) m.dtype = (DLDataType){kDLUInt, 8, 1};
  take_geometry(in, &m.lies);
  if (take_below(in, 2)) m.lies.ndim = 1, m.lies.shape[0] = take_below(in, 64);
  if (take_below(in, 16) == 0) m.lies.shape[0] = take_wild(in);
  m.lies.bits = ref_element_bits(m.dtype, 0);
  geometry packed = from->lies;
  ref_row_major(&packed);
  int valid = ref_dtype_known(m.dtype) && m.lies.bits % 8 == 0;
  valid = valid && from->lies.bits % 8 == 0;
  for (int i = 0; i < m.lies.ndim; i++) valid &= m.lies.shape[i] >= 0;
  wide size = valid ? ref_size(&m.lies, INT64_MAX) : -1;
  wide before = ref_size(&from->lies, INT64_MAX);
  valid = size >= 0 && size * m.lies.bits <= before * from->lies.bits;
  for (int i = 0; i < packed.ndim && before > 0; i++) {
    valid &= packed.shape[i] == 1 || packed.strides[i] == from->lies.strides[i];
  }
  uintptr_t unit = m.dtype.bits / (m.dtype.code == kDLComplex ? 16u : 8u);
  if (m.dtype.code == kDLBcomplex) unit = m.dtype.bits / 16u;
  if (valid && size > 0 && ref_is_host(from->device) && unit > 1) {
    valid = (uintptr_t)first_byte(from) % unit == 0;
  }
  dlw_status status =
      dlw_tensor_retype(from->tensor, m.lies.ndim, m.lies.shape, m.dtype, &m.tensor);
  MUST(status == DLW_NO_MEMORY ? allocation_failed() : (status == DLW_OK) == valid);
  if (status != DLW_OK) return;
  m.flags &= 1;
  ref_row_major(&m.lies);
  settle(&m);
  enter(place, &m);
}

/* What a row-major copy of the elements must be: bits behind them are 0. */
static uint8_t *pack(const model *from, size_t *bytes) {
  int64_t size = size_of(from);
  *bytes = (size_t)((size * (wide)from->lies.bits + 7) / 8);
  uint8_t *packed = calloc(1, *bytes + 1);
  for (int64_t n = 0; n < size; n++) {
    ref_copy_bits(packed, n * (wide)from->lies.bits, from->on->shadow,
                  from->first + ref_place(&from->lies, n), from->lies.bits);
  }
  return packed;
}

static int can_copy(const model *m) {
  return can_read(m) || (ref_is_host(m->device) && size_of(m) == 0);
}

static void copy(const model *from, model *place) {
  model m = *from;
  if (ref_is_host(from->device) && !can_copy(from)) return; /* too much for a test */
  dlw_status status = dlw_tensor_copy(from->tensor, &m.tensor);
  if (!ref_is_host(from->device)) MUST(status == DLW_BAD_DEVICE);
  MUST(status != DLW_NO_MEMORY || allocation_failed());
  if (status != DLW_OK) return;
  m.flags &= 4;
  adopt_fresh(place, &m);
  size_t bytes;
  uint8_t *expected = pack(from, &bytes);
  MUST(bytes == m.on->size &&
       (bytes == 0 || memcmp(m.on->bytes, expected, bytes) == 0));
  memcpy(m.on->shadow, expected, bytes);
  free(expected);
}

/* The elements as another dtype; the position of one that does not fit, or -1. */
static int64_t convert_packed(DLDataType from, DLDataType to, const uint8_t *packed,
                              int64_t size, uint8_t *target) {
  int64_t numbers = ref_numbers(from);
  for (int64_t i = 0; i < size * numbers; i++) {
    if (!ref_convert(from, to, target + i * ref_number_bytes(to),
                     packed + i * ref_number_bytes(from))) {
      return i / numbers;
    }
  }
  return -1;
}

/* Packed elements as padded ones, or the other way round. */
static void repad_packed(const model *from, uint32_t bits, const uint8_t *packed,
                         uint8_t *target) {
  for (int64_t i = 0; i < size_of(from); i++) {
    ref_copy_bits(target, (wide)i * bits, packed, (wide)i * from->lies.bits,
                  from->dtype.bits);
  }
}

static void check_converted(DLDataType dtype, const uint8_t *expected, memory *on) {
  for (size_t i = 0; i < on->size; i += (size_t)ref_number_bytes(dtype)) {
    MUST(ref_same_number(dtype, expected + i, on->bytes + i));
  }
  if (on->size > 0) memcpy(on->shadow, on->bytes, on->size);
}

static void convert(input *in, const model *from, model *place) {
  static const uint8_t WAYS[][2] = {{kDLFloat, 32}, {kDLFloat, 16}, {kDLBfloat, 16},
                                    {kDLInt, 32},   {kDLUInt, 32},  {kDLComplex, 64}};
  if (!can_copy(from)) return;
  model m = *from;
  m.dtype = take_dtype(in);
  uint32_t way = take_below(in, 12);
  if (way < 6) m.dtype = (DLDataType){WAYS[way][0], WAYS[way][1], from->dtype.lanes};
  if (way == 6) m.dtype = from->dtype;
  int same = memcmp(&m.dtype, &from->dtype, sizeof m.dtype) == 0;
  ref_way how = ref_conversion(from->dtype, m.dtype);
  if (!same && how == SAME) how = NO_WAY; /* lanes of 0 are no dtype */
  m.flags = take_below(in, 3) == 0 ? ~m.flags & 4 : m.flags & 4;
  uint32_t bits = ref_element_bits(m.dtype, m.flags);
  int repads = same && bits != from->lies.bits;
  dlw_misfit misfit = {-1, 0};
  dlw_status status =
      dlw_tensor_convert(from->tensor, m.dtype, m.flags, &m.tensor, &misfit);
  MUST(status != DLW_NO_MEMORY || allocation_failed());
  if (status == DLW_NO_MEMORY) return;
  if (how == NO_WAY || (m.flags != 0 && m.dtype.bits < 8 && m.dtype.lanes > 1)) {
    MUST(status == DLW_NO_CONVERSION || status == DLW_BAD_DTYPE ||
         status == DLW_TOO_LARGE);
    return;
  }
  size_t bytes;
  uint8_t *packed = pack(from, &bytes);
  int64_t size = size_of(from);
  uint8_t *expected = calloc(1, 8 * bytes + 1);
  int64_t stops = -1;
  if (same && !repads) memcpy(expected, packed, bytes);
  if (repads) repad_packed(from, bits, packed, expected);
  if (!same) stops = convert_packed(from->dtype, m.dtype, packed, size, expected);
  MUST(status == (stops >= 0 ? DLW_MISFIT : DLW_OK));
  if (stops >= 0) MUST(misfit.position == stops);
  if (status == DLW_OK) {
    if (m.dtype.bits >= 8) m.flags = 0;
    m.lies.bits = bits;
    adopt_fresh(place, &m);
    bytes = m.on->size;
    if (same && bytes > 0) MUST(memcmp(m.on->bytes, expected, bytes) == 0);
    if (same && bytes > 0) memcpy(m.on->shadow, expected, bytes);
    if (!same) check_converted(m.dtype, expected, m.on);
  }
  free(expected);
  free(packed);
}

/* All elements in pieces, as uploads take them. */
static void pack_some(input *in, const model *from) {
  if (!can_read(from) || from->lies.bits % 8 != 0) return;
  int64_t size = size_of(from), unit = 1 << take_below(in, 3),
          limit = unit * (1 + take_below(in, 50)), width = from->lies.bits / 8;
  size_t bytes;
  uint8_t *expected = pack(from, &bytes);
  uint8_t *target = calloc((size_t)limit, (size_t)width);
  for (int64_t first = 0; first < size;) {
    const void *packed = NULL;
    int64_t count =
        dlw_pack_some(target, dlw_dl(from->tensor), first, limit, unit, &packed);
    MUST(count >= 1 && count <= limit && first + count <= size);
    MUST(count % unit == 0 || first + count == size);
    MUST(memcmp(packed, expected + first * width, (size_t)(count * width)) == 0);
    first += count;
  }
  free(target);
  free(expected);
}

/* What is written through one tensor is what the others see. */
static void write(input *in, const model *m) {
  if (!can_read(m)) return;
  int64_t n = (int64_t)take_byte(in) % size_of(m);
  wide place = ref_place(&m->lies, n);
  uint8_t bits[16] = {0};
  for (int i = 0; i < 16; i++) bits[i] = (uint8_t)take_byte(in);
  uint32_t count = m->lies.bits < 128 ? m->lies.bits : 128;
  ref_copy_bits(m->on->shadow, m->first + place, bits, 0, count);
  ref_copy_bits((uint8_t *)(uintptr_t)first_byte(m), place, bits, 0, count);
}

/* --- a life ----------------------------------------------------------------------- */

static void make(input *in) {
  model *place = free_place(), *from = some(in);
  uint32_t how = take_below(in, 14);
  if (place == NULL) return;
  if (how < 3 || from == NULL) return describe(in, place);
  switch (how) {
    case 3:
      return make_empty(in, place);
    case 4:
      return wrap_gpu(in, place);
    case 5:
      return share(in, from, place);
    case 6:
      return raw(from, place);
    case 7:
      return copy(from, place);
    case 8:
      return convert(in, from, place);
    case 9:
    case 10:
      return retype(in, from, place);
  }
  view(in, from, place);
}

void fuzz_tensors(input *in) {
  dlw_on_gpu_drop(drop_gpu);
  int64_t before = dlw_live_tensors();
  for (int step = 0; step < 40 && in->at < in->end; step++) {
    model *m;
    switch (take_below(in, 8)) {
      case 0:
        if ((m = some(in)) != NULL) let_go(m);
        break;
      case 1:
        if ((m = some(in)) != NULL) pack_some(in, m);
        break;
      case 2:
        if ((m = some(in)) != NULL) write(in, m);
        break;
      case 3:
        fail_allocation(1 + take_below(in, 4));
        make(in);
        fail_allocation(0);
        break;
      default:
        make(in);
    }
    MUST(dlw_live_tensors() - before == living());
    check_all(0);
  }
  check_all(1);
  for (int i = 0; i < MOST; i++) {
    if (models[i].tensor != NULL) let_go(&models[i]);
  }
  MUST(dlw_live_tensors() == before);
}

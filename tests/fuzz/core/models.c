#include "models.h"

#include <string.h>

model models[MOST];
static memory *dropped; /* by the latest call of a drop */

/* --- what must be true ------------------------------------------------------------ */

int size_of(const model *m) { return (int)ref_size(&m->lies, INT64_MAX); }

int can_read(const model *m) {
  wide size = ref_size(&m->lies, INT64_MAX);
  return size > 0 && size <= MOST_ELEMENTS && m->on->bytes != NULL;
}

static int padded_or_packed(const model *m) {
  return ref_padded(m->dtype, m->flags) ? 8 : m->dtype.bits * m->dtype.lanes;
}

const uint8_t *first_byte(const model *m) {
  const DLTensor *dl = dlw_dl(m->tensor);
  return (const uint8_t *)((uintptr_t)dl->data + (uintptr_t)dl->byte_offset);
}

static void check_elements(const model *m) {
  const uint8_t *first = first_byte(m);
  for (int64_t n = 0; n < size_of(m); n++) {
    wide place = ref_place(&m->lies, n);
    MUST(ref_same_bits(first, place, m->on->shadow, m->first + place, m->lies.bits));
  }
}

static void check_model(const model *m) {
  const DLTensor *dl = dlw_dl(m->tensor);
  const DLManagedTensorVersioned *managed = &m->tensor->managed;
  size_t bytes = (size_t)m->lies.ndim * sizeof(int64_t);
  MUST(managed->version.major == 1 && managed->version.minor == 3);
  MUST(managed->flags == m->flags);
  MUST(dl->ndim == m->lies.ndim);
  MUST(bytes == 0 || memcmp(dl->shape, m->lies.shape, bytes) == 0);
  MUST(bytes == 0 || memcmp(dl->strides, m->lies.strides, bytes) == 0);
  MUST(memcmp(&dl->dtype, &m->dtype, sizeof m->dtype) == 0);
  MUST(memcmp(&dl->device, &m->device, sizeof m->device) == 0);
  MUST((int)dlw_element_bits(dl->dtype, managed->flags) == padded_or_packed(m));
  if (!ref_is_host(m->device)) {
    MUST((uint64_t)(uintptr_t)dl->data == m->gpu);
    MUST(dl->byte_offset == m->byte_offset);
  } else if (dlw_size(dl) == 0) {
    MUST(dl->data == NULL && dl->byte_offset == 0);
  }
  MUST(m->on->drops == 0);
}

void check_all(int elements) {
  for (int i = 0; i < MOST; i++) {
    if (models[i].tensor == NULL) continue;
    check_model(&models[i]);
    if (elements && can_read(&models[i])) check_elements(&models[i]);
  }
}

/* --- memory ----------------------------------------------------------------------- */

memory *new_memory(size_t size, int readable) {
  memory *made = calloc(1, sizeof *made);
  made->size = size;
  if (readable) made->bytes = calloc(1, size);
  if (readable) made->shadow = calloc(1, size);
  return made;
}

void fill(memory *on, uint32_t seed) {
  for (size_t i = 0; i < on->size; i++) {
    seed = seed * 1664525 + 1013904223;
    on->bytes[i] = (uint8_t)(seed >> 24);
  }
  /* Numbers that fit narrower integers, now and then. */
  for (size_t i = 0; seed % 3 == 0 && i + 8 <= on->size; i += 8) {
    memset(on->bytes + i + 4, on->bytes[i + 3] & 0x80 ? 0xff : 0, 4);
  }
  memcpy(on->shadow, on->bytes, on->size);
}

void forget(memory *on) {
  if (--on->holders > 0) return;
  MUST(on->ours || on->drops == 1);
  if (!on->ours) free(on->bytes);
  free(on->shadow);
  free(on);
}

void drop(dlw_tensor *root) {
  dropped = *(memory **)dlw_payload(root);
  dropped->drops++;
}

void drop_gpu(uint32_t gpu) {
  for (int i = 0; i < MOST; i++) { /* the one that is being released is still there */
    if (models[i].on == NULL || ref_is_host(models[i].device) || models[i].gpu != gpu)
      continue;
    models[i].on->drops++;
    return;
  }
  MUST(0 && "nobody had that handle");
}

/* --- all of them ------------------------------------------------------------------ */

model *free_place(void) {
  for (int i = 0; i < MOST; i++) {
    if (models[i].tensor == NULL) return &models[i];
  }
  return NULL;
}

model *some(input *in) {
  for (uint32_t i = 0, from = take_below(in, MOST); i < MOST; i++) {
    model *m = &models[(from + i) % MOST];
    if (m->tensor != NULL) return m;
  }
  return NULL;
}

void enter(model *place, const model *made) {
  *place = *made;
  place->on->holders++;
  if (!place->on->ours && can_read(place)) check_elements(place);
}

void settle(model *m) {
  if (ref_size(&m->lies, INT64_MAX) != 0) return;
  ref_row_major(&m->lies);
  m->byte_offset = 0;
}

int living(void) {
  int count = 0;
  for (int i = 0; i < MOST; i++) {
    if (models[i].tensor == NULL) continue;
    count++;
  }
  return count;
}

void let_go(model *m) {
  memory *on = m->on;
  dropped = NULL;
  dlw_tensor_release(m->tensor);
  int last = on->holders == 1;
  MUST(on->ours || on->drops == last);
  MUST(on->ours || !ref_is_host(m->device) || dropped == (last ? on : NULL));
  forget(on);
  memset(m, 0, sizeof *m);
}

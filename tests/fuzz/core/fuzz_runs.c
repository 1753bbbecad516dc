#include <string.h>

#include "layout.h"
#include "pack.h"
#include "parts.h"
#include "tiles.h"

#define MOST_BYTES (1 << 16) /* of one memory */
#define MOST_ELEMENTS (1 << 13)
#define SPARE 16 /* addresses are off by less than that */

/* --- memory, exactly as large as what may be touched: ASan knows its end ---------- */

typedef struct {
  uint8_t *block, *bytes; /* where it was allocated, and where it is used */
  size_t size;
} memory;

static memory new_memory(size_t size, uint32_t off, uint32_t seed) {
  memory made = {malloc(size + off), NULL, size};
  made.bytes = made.block + off;
  for (size_t i = 0; i < size; i += 4) {
    seed = seed * 1664525 + 1013904223;
    uint32_t mixed = seed ^ seed >> 16;
    memcpy(made.bytes + i, &mixed, size - i < 4 ? size - i : 4);
  }
  return made;
}

/* --- what is moved ---------------------------------------------------------------- */

/* Those that have code of their own more often than others. */
static int64_t take_width(input *in) {
  static const uint8_t OWN[] = {1, 2, 4, 8, 16};
  uint32_t how = take_byte(in);
  if (how < 160) return OWN[how % 5];
  return how < 232 ? how - 159 : (int64_t)take_below(in, 256) * 4 + how % 4 + 1;
}

/* Bytes from an element to the next: whole elements as kernels like them, or any. */
static int64_t take_step(input *in, int64_t width) {
  static const int8_t ELEMENTS[] = {1, 2, -1, 0, 4, -2, 3, 5};
  uint32_t how = take_byte(in);
  if (how < 160) return ELEMENTS[how % 8] * width;
  if (how < 192) return ((int64_t)how - 192) * width; /* far */
  return how < 224 ? (int64_t)take_below(in, 256) - 128 : (int64_t)how * how % 4096;
}

static int64_t take_extent(input *in) {
  uint32_t how = take_byte(in);
  return how < 200 ? how % 70 + 1 : (how - 199) * 8;
}

/* Adds what an axis reaches from element 0 on. */
static void reach(int64_t extent, int64_t step, int64_t *low, int64_t *high) {
  int64_t far = (extent - 1) * step;
  *(far < 0 ? low : high) += far;
}

static int64_t distance(int64_t step) { return step < 0 ? -step : step; }

/* --- runs, tiles and pixels ------------------------------------------------------- */

typedef enum { RUN, TILES, PIXELS } kernel;

/* Elements of two axes one by one; one axis is two of which the row has extent 1. */
static void check_moved(const memory *target, int64_t to, const memory *before,
                        const uint8_t *from, const dlw_axis *row,
                        const dlw_axis *column, int64_t width) {
  for (int64_t r = 0; r < row->extent; r++) {
    for (int64_t c = 0; c < column->extent; c++) {
      memcpy(before->bytes + to + r * row->to + c * column->to,
             from + r * row->from + c * column->from, (size_t)width);
    }
  }
  MUST(memcmp(before->bytes, target->bytes, target->size) == 0);
}

/* Steps in the target: elements never overlap there. */
static void move(input *in, dlw_axis row, dlw_axis column, int64_t width, kernel how) {
  int64_t low = 0, high = width, to_low = 0, to_high = width;
  reach(row.extent, row.from, &low, &high);
  reach(column.extent, column.from, &low, &high);
  reach(row.extent, row.to, &to_low, &to_high);
  reach(column.extent, column.to, &to_low, &to_high);
  if (high - low > MOST_BYTES || to_high - to_low > MOST_BYTES) return;
  uint32_t seed = take_byte(in);
  size_t to_size = (size_t)(to_high - to_low);
  memory source = new_memory((size_t)(high - low), take_below(in, SPARE), seed);
  memory target = new_memory(to_size, take_below(in, SPARE), seed + 1);
  memory before = new_memory(to_size, 0, seed + 1);
  char *to = (char *)target.bytes - to_low;
  const char *from = (const char *)source.bytes - low;
  if (how == TILES) {
    dlw_copy_tiles(to, from, row, column, (size_t)width);
  } else if (how == PIXELS) {
    dlw_copy_pixels(to, from, row, column);
  } else {
    dlw_copy_run(to, (ptrdiff_t)column.to, from, (ptrdiff_t)column.from,
                 (size_t)column.extent, (size_t)width);
  }
  check_moved(&target, -to_low, &before, (const uint8_t *)from, &row, &column, width);
  free(source.block);
  free(target.block);
  free(before.block);
}

static void copy_run(input *in) {
  int64_t width = take_width(in);
  dlw_axis run = {take_extent(in), take_step(in, width), width}, one = {1, 0, 0};
  if (take_below(in, 4) == 0) run.extent *= 1 + take_below(in, 40);
  if (take_below(in, 4) == 0) {
    run.to = width + (int64_t)take_below(in, 64);
    if (take_below(in, 2)) run.to = -run.to;
  }
  move(in, one, run, width, RUN);
}

static void copy_tiles(input *in) {
  int64_t width = take_width(in);
  if (width > DLW_TILES_WIDTH) width = 1 + width % DLW_TILES_WIDTH;
  dlw_axis row = {take_extent(in), take_step(in, width), 0};
  dlw_axis column = {take_extent(in), take_step(in, width), width};
  if (take_below(in, 4) > 0) { /* a matrix that is turned */
    row.from = width;
    column.from = width * (row.extent + (int64_t)take_below(in, 4));
  }
  row.to = width * (column.extent + (int64_t)take_below(in, 4));
  if (take_below(in, 4) == 0) row.to = -row.to;
  move(in, row, column, width, TILES);
}

/* Channels next to each other in the source or in the target, some left out. */
static void copy_pixels(input *in) {
  int64_t channels = 1 + take_below(in, 5), step = channels + take_below(in, 3);
  int64_t extent = take_extent(in), plane = extent + take_below(in, 4);
  int to_planes = (int)take_below(in, 2);
  dlw_axis channel = {channels, to_planes ? 1 : plane, to_planes ? plane : 1};
  dlw_axis pixel = {extent, to_planes ? step : 1, to_planes ? 1 : step};
  if (take_below(in, 4) == 0) channel.from = -channel.from;
  move(in, channel, pixel, 1, PIXELS);
}

static void copy_bytes(input *in) {
  size_t size = (size_t)take_bytes(in, 2) % 1200;
  memory source = new_memory(size, take_below(in, SPARE), 1);
  memory target = new_memory(size, take_below(in, SPARE), 2);
  dlw_copy_bytes((char *)target.bytes, (const char *)source.bytes, size);
  MUST(memcmp(target.bytes, source.bytes, size) == 0);
  free(source.block);
  free(target.block);
}

/* --- whole tensors: which kernel, in which order ---------------------------------- */

/* Extents and strides, each a multiple of some other axis' span or anything. */
static int64_t take_axes(input *in, geometry *lies, int64_t *low, int64_t *high) {
  lies->ndim = (int32_t)take_below(in, 5);
  int64_t size = 1, spans[5] = {1};
  for (int i = 0; i < lies->ndim; i++) {
    int64_t extent = take_extent(in);
    if (extent * size > MOST_ELEMENTS) extent = 1;
    int64_t stride = spans[take_below(in, (uint32_t)i + 1)] * take_step(in, 1);
    if (distance(stride) * extent > MOST_BYTES) stride = 1;
    lies->shape[i] = extent;
    lies->strides[i] = stride;
    spans[i + 1] = extent * (stride != 0 ? distance(stride) : 1);
    size *= extent;
    reach(extent, stride, low, high);
  }
  return size;
}

static void check_packed(const uint8_t *packed, const geometry *lies, int64_t first,
                         int64_t count, const uint8_t *from, int64_t width) {
  for (int64_t n = first; n < first + count; n++, packed += width) {
    const uint8_t *at = from + (int64_t)(ref_place(lies, n) / 8);
    MUST(memcmp(packed, at, (size_t)width) == 0);
  }
}

/* In pieces, as uploads take them. */
static void pack_pieces(const DLTensor *tensor, const geometry *lies, int64_t size,
                        int64_t limit, int64_t width) {
  int64_t unit = 1 << limit % 3;
  limit = (limit + size / 64) * unit;
  uint8_t *target = malloc((size_t)(limit * width));
  for (int64_t first = 0, count; first < size; first += count) {
    const void *packed = NULL;
    count = dlw_pack_some(target, tensor, first, limit, unit, &packed);
    MUST(count >= 1 && count <= limit && first + count <= size);
    MUST(count % unit == 0 || first + count == size);
    check_packed(packed, lies, first, count, tensor->data, width);
  }
  free(target);
}

static void pack(input *in) {
  geometry lies;
  int64_t low = 0, high = 1, width = take_width(in);
  int64_t size = take_axes(in, &lies, &low, &high);
  if ((high - low) * width > 4 * MOST_BYTES || size * width > 4 * MOST_BYTES) return;
  lies.bits = 8 * (uint32_t)width;
  memory source =
      new_memory((size_t)((high - low) * width), take_below(in, SPARE), (uint32_t)size);
  memory target = new_memory((size_t)(size * width), take_below(in, SPARE), 0);
  DLTensor tensor = {.data = source.bytes - low * width,
                     .device = {kDLCPU, 0},
                     .ndim = lies.ndim,
                     .dtype = {kDLUInt, 8, (uint16_t)width},
                     .shape = lies.shape,
                     .strides = lies.strides};
  MUST(dlw_check(&tensor, 0) == DLW_OK);
  dlw_pack(target.bytes, &tensor, lies.bits);
  check_packed(target.bytes, &lies, 0, size, tensor.data, width);
  pack_pieces(&tensor, &lies, size, 1 + take_byte(in), width);
  free(source.block);
  free(target.block);
}

void fuzz_runs(input *in) {
  static void (*const KINDS[])(input *) = {pack, copy_run, copy_tiles, copy_bytes,
                                           pack, copy_run, copy_tiles, copy_pixels};
  while (in->at < in->end) KINDS[take_below(in, 8)](in);
}

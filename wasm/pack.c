#include "pack.h"

#include <string.h>

#include "layout.h"

/* One axis of the walk; the strides are bytes, or bits where elements are no whole
 * bytes. */
typedef struct {
  int64_t extent;
  int64_t from, to;
} axis;

/* What is copied. The order of the axes is free, but for the innermost: the last one,
 * or the last two when they change places. */
typedef struct {
  int64_t width; /* of an element, in the unit of the strides */
  int count;
  enum { RUNS, TILES, BITS } way;
  axis axes[DLW_MAX_NDIM];
} box;

/* Drops axes of extent 1 and merges an axis with the one inside of it when together
 * they step evenly. At least one axis is left. */
static void merge_axes(const DLTensor *source, int64_t width, box *all) {
  axis *axes = all->axes;
  int count = 0;
  for (int32_t i = 0; i < source->ndim; i++) {
    if (source->shape[i] == 1) continue;
    axis next = {source->shape[i], source->strides[i] * width, 0};
    if (count > 0 && axes[count - 1].from == next.extent * next.from) {
      next.extent *= axes[--count].extent;
    }
    axes[count++] = next;
  }
  if (count == 0) axes[count++] = (axis){1, width, 0};
  int64_t step = width;
  for (int i = count; i-- > 0; step *= axes[i].extent) axes[i].to = step;
  all->width = width;
  all->count = count;
  all->way = RUNS;
}

/* --- innermost: a run of elements ------------------------------------------------- */

#define COPY_RUN(type)                       \
  for (; count > 0; count--, from += step) { \
    memcpy(to, from, sizeof(type));          \
    to += sizeof(type);                      \
  }                                          \
  break

static void copy_run(char *to, const char *from, axis run, int64_t width) {
  size_t count = (size_t)run.extent;
  ptrdiff_t step = (ptrdiff_t)run.from; /* 32 bits on wasm32, and so faster */
  if (run.from == width) {
    memcpy(to, from, count * (size_t)width);
    return;
  }
  switch (width) {
    case 1:
      COPY_RUN(uint8_t);
    case 2:
      COPY_RUN(uint16_t);
    case 4:
      for (; count >= 4; count -= 4, from += 4 * step, to += 16) {
        for (int i = 0; i < 4; i++) memcpy(to + 4 * i, from + i * step, 4);
      }
      COPY_RUN(uint32_t);
    case 8:
      COPY_RUN(uint64_t);
    default: /* complex128, vectors */
      for (; count > 0; count--, from += step, to += width) {
        memcpy(to, from, (size_t)width);
      }
  }
}

/* The same with positions in bits, counted from the lowest bit of a byte on; `target`
 * is 0 where nothing was written yet. */
static void copy_bits(uint8_t *target, int64_t to, const uint8_t *source, int64_t from,
                      axis run, int64_t width) {
  for (int64_t i = 0; i < run.extent; i++, from += run.from) {
    for (int64_t k = from; k < from + width; k++, to++) {
      int bit = source[k >> 3] >> (k & 7) & 1;
      target[to >> 3] = (uint8_t)(target[to >> 3] | bit << (to & 7));
    }
  }
}

/* --- innermost: two axes that change places --------------------------------------- */

/* Elements of a tile's side. A tile is read and written line by line, so that each line
 * of the cache is used up while it is there. */
#define TILE 16

typedef uint32_t u32x4 __attribute__((vector_size(16)));
#define SHUFFLE __builtin_shufflevector

#define LOAD(vector, from) memcpy(&(vector), from, sizeof(vector))
#define STORE(to, vector)          \
  do {                             \
    __typeof__(vector) v = vector; \
    memcpy(to, &v, sizeof v);      \
  } while (0)

static void move_tile_4(char *to, int64_t to_step, const char *from,
                        int64_t from_step) {
  uint32_t tile[TILE][TILE];
  for (int c = 0; c < TILE; c += 4, from += 4 * from_step) {
    for (int r = 0; r < TILE; r += 4) {
      const char *at = from + 4 * r;
      u32x4 w, x, y, z;
      LOAD(w, at);
      LOAD(x, at + from_step);
      LOAD(y, at + 2 * from_step);
      LOAD(z, at + 3 * from_step);
      u32x4 wx = SHUFFLE(w, x, 0, 4, 1, 5), yz = SHUFFLE(y, z, 0, 4, 1, 5);
      STORE(&tile[r][c], SHUFFLE(wx, yz, 0, 1, 4, 5));
      STORE(&tile[r + 1][c], SHUFFLE(wx, yz, 2, 3, 6, 7));
      wx = SHUFFLE(w, x, 2, 6, 3, 7), yz = SHUFFLE(y, z, 2, 6, 3, 7);
      STORE(&tile[r + 2][c], SHUFFLE(wx, yz, 0, 1, 4, 5));
      STORE(&tile[r + 3][c], SHUFFLE(wx, yz, 2, 3, 6, 7));
    }
  }
  for (int r = 0; r < TILE; r++, to += to_step) memcpy(to, tile[r], sizeof tile[r]);
}

static void move_tile_8(char *to, int64_t to_step, const char *from,
                        int64_t from_step) {
  uint64_t tile[TILE][TILE];
  for (int c = 0; c < TILE; c++, from += from_step) {
    for (int r = 0; r < TILE; r++) memcpy(&tile[r][c], from + 8 * r, 8);
  }
  for (int r = 0; r < TILE; r++, to += to_step) memcpy(to, tile[r], sizeof tile[r]);
}

/* `row` is contiguous in the source, `column` in the target. What no tile covers is
 * copied as runs along `column`. */
static void copy_tiles(char *to, const char *from, axis row, axis column,
                       int64_t width) {
  int64_t rows = row.extent & -TILE, columns = column.extent & -TILE;
  for (int64_t r = 0; r < rows; r += TILE) {
    for (int64_t c = 0; c < columns; c += TILE) {
      char *into = to + r * row.to + c * width;
      const char *at = from + r * width + c * column.from;
      if (width == 4) {
        move_tile_4(into, row.to, at, column.from);
      } else {
        move_tile_8(into, row.to, at, column.from);
      }
    }
  }
  for (int64_t r = 0; r < row.extent; r++) {
    int64_t c = r < rows ? columns : 0;
    axis rest = {column.extent - c, column.from, 0};
    copy_run(to + r * row.to + c * width, from + r * width + c * column.from, rest,
             width);
  }
}

/* Puts an axis that is contiguous in the source beside the last one, which is so in the
 * target, if there is one and tiles are worth it. */
static void choose_tiles(box *all) {
  int last = all->count - 1;
  int64_t width = all->width;
  if (all->axes[last].from == width || all->axes[last].extent < 4) return;
  if (width != 4 && width != 8) return;
  for (int i = 0; i < last; i++) {
    axis found = all->axes[i];
    if (found.from != width || found.extent < 4) continue;
    all->axes[i] = all->axes[last - 1];
    all->axes[last - 1] = found;
    all->way = TILES;
    return;
  }
}

/* --- all of it -------------------------------------------------------------------- */

static void copy_box(char *to, const char *from, const box *all) {
  int outer = all->count - (all->way == TILES ? 2 : 1);
  const axis *inner = &all->axes[outer];
  int64_t index[DLW_MAX_NDIM] = {0}, at = 0, into = 0;
  for (;;) {
    if (all->way == BITS) {
      copy_bits((uint8_t *)to, into, (const uint8_t *)from, at, inner[0], all->width);
    } else if (all->way == TILES) {
      copy_tiles(to + into, from + at, inner[0], inner[1], all->width);
    } else {
      copy_run(to + into, from + at, inner[0], all->width);
    }
    int i = outer - 1;
    for (; i >= 0; i--) {
      at += all->axes[i].from;
      into += all->axes[i].to;
      if (++index[i] < all->axes[i].extent) break;
      at -= all->axes[i].from * all->axes[i].extent;
      into -= all->axes[i].to * all->axes[i].extent;
      index[i] = 0;
    }
    if (i < 0) return;
  }
}

/* Leaves of `all` what follows the `first` element and has at most `limit` elements: a
 * range of one axis with all that is inside of it. Returns where it begins. */
static int64_t narrow(box *all, int64_t first, int64_t limit) {
  int64_t inside = 1, start = 0;
  int level = all->count - 1;
  while (level > 0 && inside * all->axes[level].extent <= limit) {
    inside *= all->axes[level--].extent;
  }
  int64_t rest = first / inside;
  for (int i = level; i >= 0; i--) {
    int64_t index = rest % all->axes[i].extent;
    rest /= all->axes[i].extent;
    start += index * all->axes[i].from;
    if (i < level) continue;
    int64_t left = all->axes[i].extent - index, most = limit / inside;
    if (most >= 4) most &= -4;
    all->axes[i].extent = left < most ? left : most;
  }
  all->count -= level;
  memmove(all->axes, all->axes + level, (size_t)all->count * sizeof(axis));
  return start;
}

static int64_t elements(const box *all) {
  int64_t size = 1;
  for (int i = 0; i < all->count; i++) size *= all->axes[i].extent;
  return size;
}

void dlw_pack(void *target, const DLTensor *source, uint32_t element_bits) {
  int64_t size = dlw_size(source);
  if (size == 0) return;
  int whole = element_bits % 8 == 0;
  box all;
  merge_axes(source, whole ? element_bits / 8 : element_bits, &all);
  if (whole) {
    choose_tiles(&all);
  } else {
    all.way = BITS;
    memset(target, 0, (size_t)((size * element_bits + 7) / 8));
  }
  copy_box(target, dlw_first(source), &all);
}

int64_t dlw_pack_some(void *target, const DLTensor *source, int64_t first,
                      int64_t limit, const void **packed) {
  box all;
  merge_axes(source, dlw_itemsize(source->dtype), &all);
  const char *from = dlw_first(source) + narrow(&all, first, limit);
  *packed = target;
  if (all.count == 1 && all.axes[0].from == all.width) {
    *packed = from;
  } else {
    choose_tiles(&all);
    copy_box(target, from, &all);
  }
  return elements(&all);
}

#include "pack.h"

#include <string.h>

#include "layout.h"
#include "tiles.h"

/* The elements to copy: all combinations of positions along the axes. */
typedef struct {
  int64_t width;   /* of an element, in the unit of the strides: bytes, or bits */
  int64_t abreast; /* of the last axis, so much at a time goes through all the others */
  int count;
  /* The innermost loop: the last axis, or the last two as the row and the column of
   * tiles, or as channels and pixels. The order of the others is free. */
  enum { RUNS, BITS, TILES, PIXELS } way;
  dlw_axis axes[DLW_MAX_NDIM];
} box;

/* Drops axes of extent 1 and merges an axis with the one inside of it when together
 * they step evenly. At least one axis is left. */
static void merge_axes(const DLTensor *source, int64_t width, box *all) {
  dlw_axis *axes = all->axes;
  int count = 0;
  for (int32_t i = 0; i < source->ndim; i++) {
    if (source->shape[i] == 1) continue;
    dlw_axis next = {source->shape[i], source->strides[i] * width, 0};
    if (count > 0 && axes[count - 1].from == next.extent * next.from) {
      next.extent *= axes[--count].extent;
    }
    axes[count++] = next;
  }
  if (count == 0) axes[count++] = (dlw_axis){1, width, 0};
  int64_t step = width;
  for (int i = count; i-- > 0; step *= axes[i].extent) axes[i].to = step;
  all->width = width;
  all->count = count;
}

/* --- which way -------------------------------------------------------------------- */

/* The overhead of a run or a tile, in elements. */
static int64_t overhead(const box *all) { return all->width == 1 ? 16 : 8; }

static int64_t distance(int64_t stride) { return stride < 0 ? -stride : stride; }
static int64_t greater_of(int64_t a, int64_t b) { return a > b ? a : b; }

/* The axis of at least `extent` along which elements are nearest to each other in the
 * source, nearer than along the last one; -1: there is none. Repeated elements, at
 * distance 0, do not count. */
static int nearest_axis(const box *all, int64_t extent) {
  int found = -1;
  int64_t nearest = distance(all->axes[all->count - 1].from);
  for (int i = 0; i < all->count - 1; i++) {
    int64_t from = distance(all->axes[i].from);
    if (from == 0 || from >= nearest || all->axes[i].extent < extent) continue;
    nearest = from;
    found = i;
  }
  return found;
}

/* Puts axis `i` at the position `place`, further inside. */
static void move_axis(box *all, int i, int place) {
  dlw_axis moved = all->axes[i];
  for (; i < place; i++) all->axes[i] = all->axes[i + 1];
  all->axes[place] = moved;
}

/* The part of the last axis whose span stays in a cache until all the other axes have
 * gone through it: the smallest cache if they are many, a larger one if they are few,
 * since processors read ahead in long lines. */
static void limit_last(box *all, int64_t least) {
  dlw_axis *last = &all->axes[all->count - 1];
  int64_t inside = last->to / all->width, bytes = inside < 8 ? 1 << 20 : 1 << 14;
  int64_t step = greater_of(last->to, distance(last->from));
  all->abreast = greater_of(least, bytes / step);
}

/* The last axis is short: a longer one becomes the run. */
static void choose_long_run(box *all) {
  int i = nearest_axis(all, overhead(all));
  if (i < 0) i = all->count - 2;
  while (i >= 0 && all->axes[i].extent < overhead(all)) i--;
  if (i < 0) return;
  move_axis(all, i, all->count - 1);
  limit_last(all, 16);
}

/* Rows that are reversed in the source are copied from the last one on. */
static void choose_tiles(box *all, int row, char **to, const char **from) {
  dlw_axis *axis = &all->axes[all->count - 2];
  move_axis(all, row, all->count - 2);
  all->way = TILES;
  if (axis->from > 0) return;
  *from += (axis->extent - 1) * axis->from;
  *to += (axis->extent - 1) * axis->to;
  axis->from = -axis->from;
  axis->to = -axis->to;
}

/* For elements of whole bytes; `*to` and `*from` are moved to where that way begins. */
static void choose_way(box *all, char **to, const char **from) {
  all->way = RUNS;
  if (all->axes[all->count - 1].from == all->width && all->count > 1) {
    /* Elements that are adjacent in source and target count as a wider one. */
    all->width *= all->axes[--all->count].extent;
  }
  int64_t extent = all->axes[all->count - 1].extent;
  all->abreast = extent;
  int wide = all->width > DLW_TILES_WIDTH;
  if (extent < overhead(all)) {
    if (!wide) choose_long_run(all);
    return;
  }
  int nearest = nearest_axis(all, 2),
      row = wide ? -1 : nearest_axis(all, overhead(all));
  if (nearest != row) limit_last(all, 64);
  if (row >= 0) {
    choose_tiles(all, row, to, from);
  } else if (nearest >= 0) {
    move_axis(all, nearest, all->count - 2);
  }
}

/* --- all of it -------------------------------------------------------------------- */

/* With positions in bits, counted from the lowest bit of a byte on; `target` is 0 where
 * nothing was written yet. */
static void copy_bits(uint8_t *target, int64_t to, const uint8_t *source, int64_t from,
                      dlw_axis run, int64_t width) {
  for (int64_t i = 0; i < run.extent; i++, from += run.from) {
    for (int64_t k = from; k < from + width; k++, to++) {
      int bit = source[k >> 3] >> (k & 7) & 1;
      target[to >> 3] = (uint8_t)(target[to >> 3] | bit << (to & 7));
    }
  }
}

static void copy_inner(char *to, int64_t into, const char *from, int64_t at,
                       const box *all) {
  const dlw_axis *last = &all->axes[all->count - 1];
  size_t width = (size_t)all->width;
  if (all->way == BITS) {
    copy_bits((uint8_t *)to, into, (const uint8_t *)from, at, *last, all->width);
  } else if (all->way == TILES) {
    dlw_copy_tiles(to + into, from + at, last[-1], last[0], width);
  } else if (all->way == PIXELS) {
    dlw_copy_pixels(to + into, from + at, last[-1], last[0]);
  } else {
    dlw_copy_run(to + into, (ptrdiff_t)last->to, from + at, (ptrdiff_t)last->from,
                 (size_t)last->extent, width);
  }
}

static void walk(char *to, const char *from, const box *all) {
  int outer = all->count - (all->way >= TILES ? 2 : 1);
  int64_t index[DLW_MAX_NDIM] = {0}, at = 0, into = 0;
  for (;;) {
    copy_inner(to, into, from, at, all);
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

static void copy_box(char *to, const char *from, box *all) {
  dlw_axis *last = &all->axes[all->count - 1];
  int64_t left = last->extent;
  while (left > all->abreast) {
    last->extent = all->abreast;
    walk(to, from, all);
    left -= all->abreast;
    to += all->abreast * last->to;
    from += all->abreast * last->from;
  }
  last->extent = left;
  walk(to, from, all);
}

static void copy_bytes(char *to, const char *from, box *all) {
  choose_way(all, &to, &from);
  if (all->way == RUNS && all->width == 1) {
    if (all->count == 1) { /* of one channel */
      all->axes[all->count++] = all->axes[0];
      all->axes[0] = (dlw_axis){1, 1, 0};
    }
    all->way = PIXELS;
  }
  copy_box(to, from, all);
}

/* Reduces `all` to at most `limit` elements from the `first` on: a range of one axis
 * with everything inside of it. Returns where it begins. */
static int64_t narrow(box *all, int64_t first, int64_t limit) {
  int64_t inside = 1, start = 0;
  int level = all->count - 1;
  for (; level > 0; inside *= all->axes[level--].extent) {
    int64_t next = inside * all->axes[level].extent;
    if (next > limit || first % next != 0) break;
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
  memmove(all->axes, all->axes + level, (size_t)all->count * sizeof(dlw_axis));
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
  box all;
  if (element_bits % 8 == 0) {
    merge_axes(source, element_bits / 8, &all);
    copy_bytes(target, dlw_first(source), &all);
    return;
  }
  merge_axes(source, element_bits, &all);
  all.way = BITS;
  all.abreast = all.axes[all.count - 1].extent;
  memset(target, 0, (size_t)((size * element_bits + 7) / 8));
  copy_box(target, dlw_first(source), &all);
}

int64_t dlw_pack_some(void *target, const DLTensor *source, int64_t first,
                      int64_t limit, int64_t unit, const void **packed) {
  int64_t size = dlw_size(source), width = dlw_itemsize(source->dtype), count = 0;
  *packed = target;
  do {
    box all;
    merge_axes(source, width, &all);
    const char *from = dlw_first(source) + narrow(&all, first + count, limit - count);
    int64_t next = elements(&all);
    int whole = next % unit == 0 || first + next == size;
    if (count == 0 && whole && all.count == 1 && all.axes[0].from == width) {
      *packed = from;
      return next;
    }
    copy_bytes((char *)target + count * width, from, &all);
    count += next;
  } while (count % unit != 0 && first + count < size);
  return count;
}

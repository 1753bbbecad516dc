#include "tiles.h"

/* Bytes of a line of the cache: a tile has so many rows, each as long as a line. Narrow
 * elements are assembled in memory of its own, so every line of the source and of the
 * target is accessed once, as a whole: if strides are powers of two, all lines compete
 * for the same few places in the cache. */
#define LINE 64

/* --- blocks of 16 by 16 bytes, turned by shuffling vectors ------------------------ */

/* Elements of `a` and `b` by turns: those of their lower halves. */
DLW_INLINE dlw_u8x16 mix_low(dlw_u8x16 a, dlw_u8x16 b, int width) {
  dlw_u16x8 a2 = (dlw_u16x8)a, b2 = (dlw_u16x8)b;
  dlw_u32x4 a4 = (dlw_u32x4)a, b4 = (dlw_u32x4)b;
  dlw_u64x2 a8 = (dlw_u64x2)a, b8 = (dlw_u64x2)b;
  switch (width) {
    case 1:
      return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6,
                                     22, 7, 23);
    case 2:
      return (dlw_u8x16)__builtin_shufflevector(a2, b2, 0, 8, 1, 9, 2, 10, 3, 11);
    case 4:
      return (dlw_u8x16)__builtin_shufflevector(a4, b4, 0, 4, 1, 5);
    default:
      return (dlw_u8x16)__builtin_shufflevector(a8, b8, 0, 2);
  }
}

/* Those of their upper halves. */
DLW_INLINE dlw_u8x16 mix_high(dlw_u8x16 a, dlw_u8x16 b, int width) {
  dlw_u16x8 a2 = (dlw_u16x8)a, b2 = (dlw_u16x8)b;
  dlw_u32x4 a4 = (dlw_u32x4)a, b4 = (dlw_u32x4)b;
  dlw_u64x2 a8 = (dlw_u64x2)a, b8 = (dlw_u64x2)b;
  switch (width) {
    case 1:
      return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                     14, 30, 15, 31);
    case 2:
      return (dlw_u8x16)__builtin_shufflevector(a2, b2, 4, 12, 5, 13, 6, 14, 7, 15);
    case 4:
      return (dlw_u8x16)__builtin_shufflevector(a4, b4, 2, 6, 3, 7);
    default:
      return (dlw_u8x16)__builtin_shufflevector(a8, b8, 1, 3);
  }
}

typedef struct {
  dlw_u8x16 a, b, c, d;
} four;

DLW_INLINE four load_four(const char *from, ptrdiff_t step) {
  return (four){dlw_load(from), dlw_load(from + step), dlw_load(from + 2 * step),
                dlw_load(from + 3 * step)};
}

DLW_INLINE void store_four(char *to, ptrdiff_t pitch, four rows) {
  dlw_store(to, rows.a);
  dlw_store(to + pitch, rows.b);
  dlw_store(to + 2 * pitch, rows.c);
  dlw_store(to + 3 * pitch, rows.d);
}

/* The first elements of all four vectors, then the second ones, and so on. */
DLW_INLINE four mix_four(four rows, int width) {
  dlw_u8x16 ac = mix_low(rows.a, rows.c, width), bd = mix_low(rows.b, rows.d, width);
  dlw_u8x16 ac_high = mix_high(rows.a, rows.c, width);
  dlw_u8x16 bd_high = mix_high(rows.b, rows.d, width);
  return (four){mix_low(ac, bd, width), mix_high(ac, bd, width),
                mix_low(ac_high, bd_high, width), mix_high(ac_high, bd_high, width)};
}

/* 16 rows: by fours, and then the fours of each column. */
DLW_INLINE void turn_1(char *to, ptrdiff_t pitch, const char *from, ptrdiff_t step) {
  four p = mix_four(load_four(from, step), 1);
  four q = mix_four(load_four(from + 4 * step, step), 1);
  four r = mix_four(load_four(from + 8 * step, step), 1);
  four s = mix_four(load_four(from + 12 * step, step), 1);
  store_four(to, pitch, mix_four((four){p.a, q.a, r.a, s.a}, 4));
  store_four(to + 4 * pitch, pitch, mix_four((four){p.b, q.b, r.b, s.b}, 4));
  store_four(to + 8 * pitch, pitch, mix_four((four){p.c, q.c, r.c, s.c}, 4));
  store_four(to + 12 * pitch, pitch, mix_four((four){p.d, q.d, r.d, s.d}, 4));
}

/* 8 rows, likewise. */
DLW_INLINE void turn_2(char *to, ptrdiff_t pitch, const char *from, ptrdiff_t step) {
  four p = mix_four(load_four(from, step), 2);
  four q = mix_four(load_four(from + 4 * step, step), 2);
  store_four(to, pitch,
             (four){mix_low(p.a, q.a, 8), mix_high(p.a, q.a, 8), mix_low(p.b, q.b, 8),
                    mix_high(p.b, q.b, 8)});
  store_four(to + 4 * pitch, pitch,
             (four){mix_low(p.c, q.c, 8), mix_high(p.c, q.c, 8), mix_low(p.d, q.d, 8),
                    mix_high(p.d, q.d, 8)});
}

DLW_INLINE void turn_4(char *to, ptrdiff_t pitch, const char *from, ptrdiff_t step) {
  store_four(to, pitch, mix_four(load_four(from, step), 4));
}

DLW_INLINE void turn_8(char *to, ptrdiff_t pitch, const char *from, ptrdiff_t step) {
  dlw_u8x16 a = dlw_load(from), b = dlw_load(from + step);
  dlw_store(to, mix_low(a, b, 8));
  dlw_store(to + pitch, mix_high(a, b, 8));
}

/* --- a tile ----------------------------------------------------------------------- */

/* The part of the source that becomes a tile; the steps are bytes. */
typedef struct {
  int rows, columns, width;
  ptrdiff_t row_step, column_step;
} part;

/* The block at a row and a column, or the last one, which ends with the part: it may
 * overlap the one before. */
DLW_INLINE void turn(char *to, ptrdiff_t pitch, const char *from, part of, int width,
                     int row, int column) {
  if (row > of.rows - 16 / width) row = of.rows - 16 / width;
  if (column > of.columns - 16 / width) column = of.columns - 16 / width;
  ptrdiff_t step = of.column_step;
  to += row * pitch + column * width;
  from += column * step + row * width;
  if (width == 1) turn_1(to, pitch, from, step);
  if (width == 2) turn_2(to, pitch, from, step);
  if (width == 4) turn_4(to, pitch, from, step);
  if (width == 8) turn_8(to, pitch, from, step);
  if (width == 16) dlw_store(to, dlw_load(from));
}

/* A part of at least one block each way, its rows contiguous. Blocks of four rows or
 * less complete lines of the target, the others lines of the source. */
DLW_INLINE void turn_part(char *to, ptrdiff_t pitch, const char *from, part of,
                          int width) {
  int side = 16 / width, few = side <= 4;
  for (int i = 0; i < (few ? of.rows : of.columns); i += side) {
    for (int k = 0; k < (few ? of.columns : of.rows); k += side) {
      turn(to, pitch, from, of, width, few ? i : k, few ? k : i);
    }
  }
}

static void gather_part(char *tile, const char *from, const part *of) {
  for (int c = 0; c < of->columns; c++, from += of->column_step) {
    dlw_copy_run(tile + c * of->width, LINE, from, of->row_step, (size_t)of->rows,
                 (size_t)of->width);
  }
}

static void copy_tile(char *to, ptrdiff_t to_step, const char *from, const part *of) {
  char tile[LINE * LINE];
  int least = of->rows < of->columns ? of->rows : of->columns, width = of->width;
  if (of->row_step != width || least * width < 16 || 16 % width != 0) width = 0;
  if (width == 0) gather_part(tile, from, of);
  if (width == 1) turn_part(tile, LINE, from, *of, 1);
  if (width == 2) turn_part(tile, LINE, from, *of, 2);
  if (width == 4) turn_part(to, to_step, from, *of, 4);
  if (width == 8) turn_part(to, to_step, from, *of, 8);
  if (width == 16) turn_part(to, to_step, from, *of, 16);
  if (width >= 4) return;
  size_t bytes = (size_t)(of->columns * of->width);
  for (int r = 0; r < of->rows; r++, to += to_step) {
    if (bytes == LINE) {
      memcpy(to, tile + r * LINE, LINE); /* no call: the size is constant */
    } else {
      dlw_copy_bytes(to, tile + r * LINE, bytes);
    }
  }
}

/* --- all of them ------------------------------------------------------------------ */

/* As many columns at a time as the TLB can handle: each is on a page of its own. */
#define TILES_ABREAST 16

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

/* Where the tile at `place` begins: the last one may overlap the one before, so it is
 * wide enough for blocks. */
static int64_t begin(int64_t place, int64_t extent, int64_t most) {
  return least_of(place, extent - least_of(extent, least_of(most, 16)));
}

void dlw_copy_tiles(char *to, const char *from, dlw_axis row, dlw_axis column,
                    size_t width) {
  part of = {0, 0, (int)width, (ptrdiff_t)row.from, (ptrdiff_t)column.from};
  int64_t columns = LINE / (int64_t)width, abreast = TILES_ABREAST * columns;
  for (int64_t start = 0; start < column.extent; start += abreast) {
    int64_t end = least_of(start + abreast, column.extent);
    for (int64_t i = 0; i < row.extent; i += LINE) {
      int64_t r = begin(i, row.extent, LINE);
      of.rows = (int)least_of(LINE, row.extent - r);
      for (int64_t k = start; k < end; k += columns) {
        int64_t c = begin(k, column.extent, columns);
        of.columns = (int)least_of(columns, column.extent - c);
        copy_tile(to + r * row.to + c * column.to, (ptrdiff_t)row.to,
                  from + r * row.from + c * column.from, &of);
      }
    }
  }
}

/* --- pixels of three or four bytes, and planes ------------------------------------ */

/* Bytes of the first half of all vectors and of their second half by turns: byte p goes
 * to 2p, modulo their number - 1. Four rounds, to 16p, separate the channels: byte
 * channels * i + k of pixels goes to 16k + i, the byte i of vector k. Vectors
 * used only once clang would merge into shuffles that are slow in V8. */
DLW_INLINE four interleave(four v, int channels) {
  if (channels == 4) {
    return (four){mix_low(v.a, v.c, 1), mix_high(v.a, v.c, 1), mix_low(v.b, v.d, 1),
                  mix_high(v.b, v.d, 1)};
  }
  dlw_u64x2 b = (dlw_u64x2)v.b;
  dlw_u8x16 swapped = (dlw_u8x16)__builtin_shufflevector(b, b, 1, 0);
  dlw_u8x16 middle = mix_high(v.a, swapped, 8);
  return (four){mix_low(v.a, swapped, 1), mix_low(middle, v.c, 1),
                mix_high(middle, v.c, 1), v.c};
}

/* The inverse, of three vectors. */
DLW_INLINE four separate(four v) {
  dlw_u16x8 a = (dlw_u16x8)v.a, b = (dlw_u16x8)v.b, c = (dlw_u16x8)v.c;
  return (four){dlw_low_bytes(a, b), dlw_low_bytes(c, a >> 8),
                dlw_low_bytes(b >> 8, c >> 8), v.c};
}

/* Whole vectors of the channels; returns how many pixels that were. Stops before the
 * end: if a channel is left out, bytes after the last pixel's are not ours. */
DLW_INLINE int64_t move_pixels(char *to, const char *from, dlw_axis channel,
                               dlw_axis pixel, int channels, int to_planes) {
  ptrdiff_t from_step = to_planes ? 16 : (ptrdiff_t)channel.from;
  ptrdiff_t to_step = to_planes ? (ptrdiff_t)channel.to : 16;
  int64_t done = 0;
  for (; done + 16 < pixel.extent; done += 16) {
    four v = {dlw_load(from), dlw_load(from + from_step),
              dlw_load(from + 2 * from_step),
              dlw_load(from + (channels - 1) * from_step)};
    int rounds = to_planes || channels == 3 ? 4 : 2; /* of four: to 4p, the inverse */
    for (int i = 0; i < rounds; i++) {
      v = to_planes || channels == 4 ? interleave(v, channels) : separate(v);
    }
    dlw_store(to, v.a);
    if (channel.extent > 1) dlw_store(to + to_step, v.b);
    if (channel.extent > 2) dlw_store(to + 2 * to_step, v.c);
    if (channel.extent > 3) dlw_store(to + 3 * to_step, v.d);
    from += 16 * pixel.from;
    to += 16 * pixel.to;
  }
  return done;
}

static int64_t take_pixels(char *to, const char *from, dlw_axis channel,
                           dlw_axis pixel) {
  if (channel.from == 1 && pixel.to == 1 && channel.extent <= pixel.from) {
    if (pixel.from == 3) return move_pixels(to, from, channel, pixel, 3, 1);
    if (pixel.from == 4 && channel.extent > 1) { /* of one, runs are as fast */
      return move_pixels(to, from, channel, pixel, 4, 1);
    }
  }
  if (channel.to == 1 && pixel.from == 1 && channel.extent == pixel.to) {
    if (pixel.to == 3) return move_pixels(to, from, channel, pixel, 3, 0);
    if (pixel.to == 4) return move_pixels(to, from, channel, pixel, 4, 0);
  }
  return 0;
}

void dlw_copy_pixels(char *to, const char *from, dlw_axis channel, dlw_axis pixel) {
  if (channel.from == -1) { /* blue first */
    from += (channel.extent - 1) * channel.from;
    to += (channel.extent - 1) * channel.to;
    channel.from = -channel.from;
    channel.to = -channel.to;
  }
  int64_t done = take_pixels(to, from, channel, pixel);
  to += done * pixel.to;
  from += done * pixel.from;
  for (int64_t i = 0; i < channel.extent; i++) {
    dlw_copy_run(to, (ptrdiff_t)pixel.to, from, (ptrdiff_t)pixel.from,
                 (size_t)(pixel.extent - done), 1);
    to += channel.to;
    from += channel.from;
  }
}

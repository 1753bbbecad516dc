#include "runs.h"

/* From this size on, calling memcpy is faster. */
#define MEMCPY_BYTES 512
/* This much stays in the cache. */
#define CACHED_BYTES 16384

void dlw_copy_bytes(char *to, const char *from, size_t bytes) {
  if (bytes < 16 || bytes > MEMCPY_BYTES) {
    memcpy(to, from, bytes);
    return;
  }
  size_t last = bytes - 16; /* its vector may overlap the one before */
  for (size_t at = 0; at < last; at += 16) dlw_store(to + at, dlw_load(from + at));
  dlw_store(to + last, dlw_load(from + last));
}

/* --- any stride to any stride ----------------------------------------------------- */

/* Elements of one part, or of two that overlap where the width asks for it: a part of
 * constant size is one load and one store. */
DLW_INLINE void move_parts(char *to, ptrdiff_t to_step, const char *from,
                           ptrdiff_t from_step, size_t count, size_t width,
                           size_t part) {
  for (; count > 0; count--, to += to_step, from += from_step) {
    memcpy(to, from, part);
    if (width > part) memcpy(to + width - part, from + width - part, part);
  }
}

/* Elements of one part, four at a time. */
DLW_INLINE void move_fours(char *to, ptrdiff_t to_step, const char *from,
                           ptrdiff_t from_step, size_t count, size_t width) {
  for (; count >= 4; count -= 4, to += 4 * to_step, from += 4 * from_step) {
    for (int i = 0; i < 4; i++) memcpy(to + i * to_step, from + i * from_step, width);
  }
  move_parts(to, to_step, from, from_step, count, width, width);
}

static void move_run(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step,
                     size_t count, size_t width) {
  if (width == 1) {
    move_fours(to, to_step, from, from_step, count, 1);
  } else if (width == 2) {
    move_fours(to, to_step, from, from_step, count, 2);
  } else if (width == 4) {
    move_fours(to, to_step, from, from_step, count, 4);
  } else if (width == 8) {
    move_fours(to, to_step, from, from_step, count, 8);
  } else if (width == 16) {
    move_parts(to, to_step, from, from_step, count, 16, 16);
  } else if (width < 4) {
    move_parts(to, to_step, from, from_step, count, width, 2);
  } else if (width < 8) {
    move_parts(to, to_step, from, from_step, count, width, 4);
  } else if (width < 16) {
    move_parts(to, to_step, from, from_step, count, width, 8);
  } else if (width <= 32) {
    move_parts(to, to_step, from, from_step, count, width, 16);
  } else {
    for (; count > 0; count--, to += to_step, from += from_step) {
      dlw_copy_bytes(to, from, width);
    }
  }
}

/* --- any stride to contiguous elements -------------------------------------------- */

/* Every second element of two vectors. */
DLW_INLINE dlw_u8x16 every_second(dlw_u8x16 a, dlw_u8x16 b, size_t width) {
  if (width == 1) return dlw_low_bytes((dlw_u16x8)a, (dlw_u16x8)b);
  if (width == 2) {
    return (dlw_u8x16)__builtin_shufflevector((dlw_u16x8)a, (dlw_u16x8)b, 0, 2, 4, 6, 8,
                                              10, 12, 14);
  }
  return (dlw_u8x16)__builtin_shufflevector((dlw_u32x4)a, (dlw_u32x4)b, 0, 2, 4, 6);
}

/* The elements of a vector from the last one to the first. */
DLW_INLINE dlw_u8x16 backwards(dlw_u8x16 a, size_t width) {
  if (width == 4) {
    return (dlw_u8x16)__builtin_shufflevector((dlw_u32x4)a, (dlw_u32x4)a, 3, 2, 1, 0);
  }
  dlw_u16x8 pairs = (dlw_u16x8)a;
  pairs = __builtin_shufflevector(pairs, pairs, 7, 6, 5, 4, 3, 2, 1, 0);
  /* Not all processors can shuffle bytes. */
  return (dlw_u8x16)(width == 2 ? pairs : pairs << 8 | pairs >> 8);
}

/* Whole vectors of every second or fourth element; returns how many elements that were.
 * Stops before the end, as the bytes after the last element are not ours: they may be
 * outside of all memory. */
DLW_INLINE size_t take_every(int second_or_fourth, char *to, const char *from,
                             size_t count, size_t width) {
  size_t done = 0, lanes = 16 / width;
  for (; done + lanes < count; done += lanes, to += 16, from += 16 * second_or_fourth) {
    dlw_u8x16 vector = every_second(dlw_load(from), dlw_load(from + 16), width);
    if (second_or_fourth == 4) {
      dlw_u8x16 more = every_second(dlw_load(from + 32), dlw_load(from + 48), width);
      vector = every_second(vector, more, width);
    }
    dlw_store(to, vector);
  }
  return done;
}

DLW_INLINE size_t take_backwards(char *to, const char *from, size_t count,
                                 size_t width) {
  size_t done = 0, lanes = 16 / width;
  for (; done + lanes <= count; done += lanes, to += 16, from -= 16) {
    /* The vector that ends with the element at `from`. */
    dlw_store(to, backwards(dlw_load(from + width - 16), width));
  }
  return done;
}

DLW_INLINE uint64_t load_2(const char *from) {
  uint16_t value;
  memcpy(&value, from, 2);
  return value;
}
DLW_INLINE uint32_t load_4(const char *from) {
  uint32_t value;
  memcpy(&value, from, 4);
  return value;
}
DLW_INLINE uint64_t load_8(const char *from) {
  uint64_t value;
  memcpy(&value, from, 8);
  return value;
}

/* Elements at any step, with one store for each 16 bytes in place of one for each
 * element; narrow ones come four to a number. Returns how many that were. */
DLW_INLINE size_t take_each(char *to, const char *from, ptrdiff_t step, size_t count,
                            size_t width) {
  size_t done = 0;
  const char *p = from;
  if (width == 8) {
    for (; done + 2 <= count; done += 2, to += 16, p += 2 * step) {
      dlw_store(to, (dlw_u8x16)(dlw_u64x2){load_8(p), load_8(p + step)});
    }
  } else if (width == 4) {
    for (; done + 4 <= count; done += 4, to += 16, p += 4 * step) {
      dlw_store(to, (dlw_u8x16)(dlw_u32x4){load_4(p), load_4(p + step),
                                           load_4(p + 2 * step), load_4(p + 3 * step)});
    }
  } else if (width == 2) {
    for (; done + 4 <= count; done += 4, to += 8, p += 4 * step) {
      uint64_t four = load_2(p) | load_2(p + step) << 16 | load_2(p + 2 * step) << 32 |
                      load_2(p + 3 * step) << 48;
      memcpy(to, &four, 8);
    }
  } else if (width == 1) {
    for (; done + 4 <= count; done += 4, to += 4, p += 4 * step) {
      uint32_t four = (uint8_t)p[0] | (uint32_t)(uint8_t)p[step] << 8 |
                      (uint32_t)(uint8_t)p[2 * step] << 16 |
                      (uint32_t)(uint8_t)p[3 * step] << 24;
      memcpy(to, &four, 4);
    }
  }
  return done;
}

/* Elements that vectors can be shuffled for, by steps of whole elements. */
DLW_INLINE size_t take(char *to, const char *from, ptrdiff_t step, size_t count,
                       size_t width) {
  if (step == 2) return take_every(2, to, from, count, width);
  if (step == 4 && width == 1) return take_every(4, to, from, count, width);
  if (step == -1) return take_backwards(to, from, count, width);
  return 0;
}

/* The same by steps of bytes. */
static size_t take_run(char *to, const char *from, ptrdiff_t from_step, size_t count,
                       size_t width) {
  ptrdiff_t step = from_step / (ptrdiff_t)width;
  size_t done = 0;
  if (step * (ptrdiff_t)width == from_step) {
    if (width == 1) done = take(to, from, step, count, 1);
    if (width == 2) done = take(to, from, step, count, 2);
    if (width == 4) done = take(to, from, step, count, 4);
  }
  if (done > 0) return done;
  if (width == 1) return take_each(to, from, from_step, count, 1);
  if (width == 2) return take_each(to, from, from_step, count, 2);
  if (width == 4) return take_each(to, from, from_step, count, 4);
  if (width == 8) return take_each(to, from, from_step, count, 8);
  return 0;
}

/* A vector full of one element, of a width that divides 16. */
static dlw_u8x16 repeat(const char *from, size_t width) {
  if (width == 1) return (dlw_u8x16){0} + (uint8_t)*from;
  char pattern[16];
  move_run(pattern, (ptrdiff_t)width, from, 0, 16 / width, width);
  return dlw_load(pattern);
}

static void fill_run(char *to, const char *from, size_t count, size_t width) {
  size_t bytes = count * width;
  if (16 % width == 0 && bytes >= 16) {
    dlw_u8x16 vector = repeat(from, width);
    for (size_t at = 0; at < bytes - 16; at += 16) dlw_store(to + at, vector);
    dlw_store(to + bytes - 16, vector);
    return;
  }
  size_t some = count < 16 ? count : 16;
  if (width > MEMCPY_BYTES) some = 1;
  move_run(to, (ptrdiff_t)width, from, 0, some, width);
  some *= width;
  /* Copies the part already written, doubling it each time, up to the size of the
   * cache. */
  for (size_t done = some; done < bytes; done += some) {
    if (done <= CACHED_BYTES) some = done;
    if (some > bytes - done) some = bytes - done;
    dlw_copy_bytes(to + done, to, some);
  }
}

void dlw_copy_run(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step,
                  size_t count, size_t width) {
  ptrdiff_t done = 0;
  if (to_step == (ptrdiff_t)width) {
    if (from_step == to_step) {
      dlw_copy_bytes(to, from, count * width);
      return;
    }
    if (from_step == 0) {
      fill_run(to, from, count, width);
      return;
    }
    done = (ptrdiff_t)take_run(to, from, from_step, count, width);
  }
  move_run(to + done * to_step, to_step, from + done * from_step, from_step,
           count - (size_t)done, width);
}

/* The Arrow C data, stream and device interfaces, described in our own words: names,
 * order and types of the fields are those of the specification; a test compares this
 * file with the structs of pyarrow and nanoarrow.
 *
 * A struct belongs to its holder until its `release` was called, or it was moved: its
 * bytes copied, and `release` of the old place set to NULL, which marks an empty
 * struct. Releasing one releases its children, except those that were moved out. */
#ifndef DLW_ARROW_H_
#define DLW_ARROW_H_

#include <stdint.h>

struct ArrowSchema {
  const char *format; /* the type, in the specification's letters */
  const char *name;   /* may be NULL */
  const char *metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema **children;
  struct ArrowSchema *dictionary; /* NULL: not dictionary-encoded */
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count; /* -1: not counted */
  int64_t offset;     /* in elements, of all buffers and of the lists' children */
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers; /* first a bitmap of the valid ones, or NULL: all are */
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};

struct ArrowArrayStream {
  /* 0, or an errno; after the last array `release` of what get_next gives is NULL. */
  int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
  int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
  const char *(*get_last_error)(struct ArrowArrayStream *); /* may give NULL */
  void (*release)(struct ArrowArrayStream *);
  void *private_data;
};

struct ArrowDeviceArray {
  struct ArrowArray array;
  int64_t device_id;
  int32_t device_type; /* DLPack's */
  void *sync_event;    /* the event to wait for before reading the memory; NULL: none */
  int64_t reserved[3];
};

/* Names of their capsules. */
#define DLW_ARROW_SCHEMA "arrow_schema"
#define DLW_ARROW_ARRAY "arrow_array"
#define DLW_ARROW_DEVICE_ARRAY "arrow_device_array"
#define DLW_ARROW_STREAM "arrow_array_stream"

#endif

#include "arrow_type.h"

#include <string.h>

#include "object.h"

/* --- types ------------------------------------------------------------------------ */

static const struct {
  char letter;
  uint8_t code, bits;
} SCALARS[] = {{'c', kDLInt, 8},    {'C', kDLUInt, 8},  {'s', kDLInt, 16},
               {'S', kDLUInt, 16},  {'i', kDLInt, 32},  {'I', kDLUInt, 32},
               {'l', kDLInt, 64},   {'L', kDLUInt, 64}, {'e', kDLFloat, 16},
               {'f', kDLFloat, 32}, {'g', kDLFloat, 64}};

/* Dates, times of day, timestamps and durations, which are int32 in the first NARROW
 * types, else int64. A time zone may follow the colon of a timestamp. */
enum { NARROW = 3 };
static const char TIMES[][5] = {"tdD",  "tts",  "ttm",  "tdm", "ttu", "ttn", "tss:",
                                "tsm:", "tsu:", "tsn:", "tDs", "tDm", "tDu", "tDn"};

/* Types without a DLPack dtype, by the beginnings of their letters, and how to convert
 * them. */
static const struct {
  const char *format, *name, *way;
} OTHERS[] = {
    {"n", "null", "there is nothing in it to share"},
    {"d:", "decimal", "cast it to float64, or to int64 where its scale is 0"},
    {"ti", "interval", "take its parts as integers"},
    {"u", "string", "encode it to numbers, for example by dictionary_encode()"},
    {"U", "large string", "encode it to numbers, for example by dictionary_encode()"},
    {"vu", "string view", "encode it to numbers, for example by dictionary_encode()"},
    {"z", "binary", "cast it to fixed-size binary where all have one length"},
    {"Z", "large binary", "cast it to fixed-size binary where all have one length"},
    {"vz", "binary view", "cast it to fixed-size binary where all have one length"},
    {"+w", "fixed-size list", "its length is not a number"},
    {"w:", "fixed-size binary", "its length is not a number"},
    {"+s", "struct", "take one of its fields"},
    {"+m", "map", "take its keys or values, flattened"},
    {"+u", "union", "take one of its fields"},
    {"+r", "run-end encoded", "decode it first"},
    {"+", "list", "share its values and its offsets, or cast it to a fixed-size list"},
};

static int refuse_type(const char *format) {
  for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++) {
    if (strncmp(format, OTHERS[i].format, strlen(OTHERS[i].format)) != 0) continue;
    return dlw_fail(
        PyExc_BufferError,
        "cannot share an Arrow array of type %s ('%.40s'), which has no DLPack "
        "dtype: %s",
        OTHERS[i].name, format, OTHERS[i].way);
  }
  return dlw_fail(PyExc_BufferError,
                  "cannot share an Arrow array of the unknown type '%.40s': integers, "
                  "floats, bool, and fixed-size lists of them are supported",
                  format);
}

/* Each level of lists is an axis, and needs one of Tensor's, as do the rows. */
static int refuse_depth(void) {
  return dlw_fail(
      PyExc_BufferError,
      "the lists of this Arrow array are nested more than %d levels deep, or "
      "have more than %d axes together; a Tensor has at most %d dimensions, of "
      "which the rows are one: flatten the inner lists",
      DLW_MAX_NDIM - 1, DLW_MAX_NDIM - 1, DLW_MAX_NDIM);
}

int dlw_arrow_wrong(const char *what) {
  return dlw_fail(PyExc_BufferError,
                  "the Arrow producer gave %s: this is an error of its own", what);
}

/* The number after the colon of "+w:3" or "w:16"; -1 if there is none. */
static int64_t parse_width(const char *format) {
  const char *digits = strchr(format, ':');
  int64_t width = 0;
  if (digits == NULL || *++digits == 0) return -1;
  for (; *digits != 0; digits++) {
    if (*digits < '0' || *digits > '9') return -1;
    width = 10 * width + (*digits - '0');
    if (width > INT32_MAX) return -1;
  }
  return width;
}

int dlw_check_arrow(const struct ArrowSchema *schema) {
  if (schema == NULL) return dlw_arrow_wrong("a type that is not there");
  if (schema->release == NULL) return dlw_arrow_wrong("a type that was released");
  if (schema->format == NULL) return dlw_arrow_wrong("a type without a format");
  if (schema->n_children < 0)
    return dlw_arrow_wrong("a type with fewer than no children");
  if (schema->n_children > 0 && schema->children == NULL) {
    return dlw_arrow_wrong("a type whose children are not there");
  }
  return 0;
}

/* Which child of a struct is meant; -1 with an exception. */
static int64_t find_column(const struct ArrowSchema *schema, const char *column) {
  int64_t found = -1;
  for (int64_t i = 0; i < schema->n_children; i++) {
    if (dlw_check_arrow(schema->children[i]) < 0) return -1;
    const char *name = schema->children[i]->name;
    if (column != NULL && strcmp(name != NULL ? name : "", column) != 0) continue;
    if (found >= 0) {
      return dlw_fail(PyExc_BufferError,
                      column != NULL
                          ? "there are several columns named '%.80s'"
                          : "there are several columns: name one, with column='name'",
                      column);
    }
    found = i;
  }
  if (found < 0) {
    PyErr_Format(PyExc_BufferError,
                 column != NULL ? "there is no column named '%.80s'"
                                : "there is no column to share",
                 column);
  }
  return found;
}

static int parse_scalar(const char *format, arrow_type *type) {
  if (strcmp(format, "b") == 0) {
    type->bitmap = 1;
    type->dtype = (DLDataType){kDLBool, 8, 1};
    return 0;
  }
  for (size_t i = 0; i < sizeof SCALARS / sizeof SCALARS[0]; i++) {
    if (format[0] == SCALARS[i].letter && format[1] == 0) {
      type->dtype = (DLDataType){SCALARS[i].code, SCALARS[i].bits, 1};
      return 0;
    }
  }
  for (size_t i = 0; i < sizeof TIMES / sizeof TIMES[0]; i++) {
    size_t length = strlen(TIMES[i]);
    if (strncmp(format, TIMES[i], length) != 0) continue;
    if (length == 3 && format[3] != 0) break;
    type->dtype = (DLDataType){kDLInt, i < NARROW ? 32 : 64, 1};
    return 0;
  }
  return refuse_type(format);
}

/* --- extension types -------------------------------------------------------------- */

/* Bytes of metadata, not NUL-terminated; NULL: there are none. */
typedef struct {
  const char *bytes;
  int32_t length;
} text;

static int32_t take_int(const char **at) {
  int32_t value;
  memcpy(&value, *at, sizeof value);
  *at += sizeof value;
  return value;
}

/* Arrow's metadata is a number of pairs, each a key and a value after their lengths,
 * all int32 in native order. Its length is not stored. */
static int find_metadata(const struct ArrowSchema *schema, const char *key,
                         text *found) {
  const char *at = schema->metadata;
  *found = (text){0};
  int32_t pairs = at != NULL ? take_int(&at) : 0;
  if (pairs < 0) return dlw_arrow_wrong("metadata of fewer than no pairs");
  for (int32_t i = 0; i < pairs; i++) {
    text pair[2];
    for (int j = 0; j < 2; j++) {
      pair[j].length = take_int(&at), pair[j].bytes = at;
      if (pair[j].length < 0) return dlw_arrow_wrong("metadata of a negative length");
      at += pair[j].length;
    }
    if ((size_t)pair[0].length != strlen(key)) continue;
    if (memcmp(pair[0].bytes, key, strlen(key)) == 0) *found = pair[1];
  }
  return 0;
}

static int is_named(text name, const char *wanted) {
  return (size_t)name.length == strlen(wanted) &&
         memcmp(name.bytes, wanted, strlen(wanted)) == 0;
}

int dlw_is_extension(const struct ArrowSchema *schema) {
  text name;
  if (find_metadata(schema, "ARROW:extension:name", &name) < 0) return -1;
  return name.length > 0;
}

/* Axes of arrow.fixed_shape_tensor, of which a list is one in row-major order: axis i
 * is axis order[i] of the shape. Python reads what its metadata says of both, and says
 * what is wrong with it; whatever it returns, no element outside of the list is
 * addressed. */
static int parse_tensor(const struct ArrowSchema *schema, int64_t width,
                        PyObject *axes_of, arrow_type *type) {
  text json;
  PyObject *shape, *order;
  int64_t numbers[DLW_MAX_NDIM];
  int32_t first = type->ndim, room = DLW_MAX_NDIM - 1 - first;
  if (find_metadata(schema, "ARROW:extension:metadata", &json) < 0) return -1;
  /* No "y#": compiled with the headers of 3.13, it fails in earlier versions. */
  PyObject *bytes = PyBytes_FromStringAndSize(json.bytes, json.length);
  if (bytes == NULL) return -1;
  PyObject *axes =
      PyObject_CallFunction(axes_of, "OLi", bytes, (long long)width, (int)room);
  Py_DECREF(bytes);
  if (axes == NULL) return -1;
  int32_t count = -1;
  if (PyArg_ParseTuple(axes, "O!O!", &PyTuple_Type, &shape, &PyTuple_Type, &order) &&
      PyTuple_Size(shape) <= room && PyTuple_Size(order) == PyTuple_Size(shape) &&
      dlw_parse_dims(order, numbers) >= 0) {
    count = dlw_parse_dims(shape, type->shape + first);
  }
  int64_t size = 1;
  uint64_t seen = 0;
  for (int32_t i = 0; i < count; i++) {
    if (numbers[i] >= 0 && numbers[i] < count) seen |= (uint64_t)1 << numbers[i];
    int64_t extent = type->shape[first + i];
    if (extent < 0 || __builtin_mul_overflow(size, extent, &size)) size = -1;
  }
  Py_DECREF(axes);
  if (count < 0 || size != width || seen != ((uint64_t)1 << count) - 1) {
    if (!PyErr_Occurred()) PyErr_BadInternalCall();
    return -1;
  }
  for (int32_t i = 0; i < count; i++) {
    type->order[first + i] = first + (int32_t)numbers[i];
    type->permuted |= numbers[i] != i;
  }
  type->ndim += count;
  return 0;
}

/* --- all of a type ---------------------------------------------------------------- */

/* One level; 1: there is another one below. */
static int parse_level(const struct ArrowSchema *schema, PyObject *axes_of,
                       arrow_type *type) {
  const char *format = schema->format;
  text name;
  if (schema->dictionary != NULL) {
    return dlw_fail(PyExc_BufferError,
                    "cannot share a dictionary-encoded Arrow array, whose numbers are "
                    "indices: share its indices or its values");
  }
  if (find_metadata(schema, "ARROW:extension:name", &name) < 0) return -1;
  int list = strncmp(format, "+w:", 3) == 0;
  int tensor = is_named(name, "arrow.fixed_shape_tensor");
  if (tensor && !list) return dlw_arrow_wrong("an arrow.fixed_shape_tensor of no list");
  if (!list && strncmp(format, "w:", 2) != 0) {
    if (parse_scalar(format, type) < 0) return -1;
    type->bool8 = is_named(name, "arrow.bool8");
    if (!type->bool8) return 0;
    if (format[0] != 'c') return dlw_arrow_wrong("an arrow.bool8 that is not of int8");
    type->dtype = (DLDataType){kDLBool, 8, 1};
    return 0;
  }
  int64_t width = parse_width(format);
  if (width < 0) return refuse_type(format);
  if (list && type->lists == DLW_MAX_NDIM - 1) return refuse_depth();
  if (list) type->widths[type->lists++] = width;
  if (tensor) {
    if (parse_tensor(schema, width, axes_of, type) < 0) return -1;
  } else {
    if (type->ndim == DLW_MAX_NDIM - 1) return refuse_depth();
    type->order[type->ndim] = type->ndim;
    type->shape[type->ndim++] = width;
  }
  if (list) return 1;
  type->binary = 1;
  type->dtype = (DLDataType){kDLUInt, 8, 1};
  return 0;
}

int dlw_parse_arrow(const struct ArrowSchema *schema, const char *column,
                    PyObject *axes_of, arrow_type *type) {
  *type = (arrow_type){.column = -1};
  if (dlw_check_arrow(schema) < 0) return -1;
  if (strcmp(schema->format, "+s") == 0) {
    type->column = find_column(schema, column);
    if (type->column < 0) return -1;
    schema = schema->children[type->column];
  } else if (column != NULL) {
    return dlw_fail(PyExc_BufferError,
                    "cannot take column '%.80s': this is an array, without columns",
                    column);
  }
  for (;;) {
    int more = parse_level(schema, axes_of, type);
    if (more <= 0) return more;
    if (schema->n_children != 1) {
      return dlw_arrow_wrong("a fixed-size list without its child, or with several");
    }
    schema = schema->children[0];
    if (dlw_check_arrow(schema) < 0) return -1;
  }
}

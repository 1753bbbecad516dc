/* Memory that runs out: the n-th allocation of a call fails, or all from there on.
 * Linked into the extension (build_asan.py --faults), with the linker's --wrap for the
 * core's own allocations; those of Python go through allocators that can be exchanged.
 */
#undef Py_LIMITED_API /* which has no PyMem_SetAllocator */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <execinfo.h>
#include <sanitizer/common_interface_defs.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

#define FOR_GOOD 2000 /* allocations that fail at most */

enum {
  ONCE = 0,
  GOOD = 1,
  ANYWHERE = 2
}; /* how: from there on; not in the core alone */
static int armed, how;
static long until, failures;
static long blocks; /* that are allocated, since we were installed */

/* --- who allocates ---------------------------------------------------------------- */

enum { UNKNOWN, OTHER, OURS, PYTHON, FRAIL, FRAME, FRAME_LEFT };

static int begins(const char *name, const char *with) {
  return strncmp(name, with, strlen(with)) == 0;
}

/* Others do not survive that memory runs out: NumPy forgets to check or to raise;
 * CPython crashes where functions are made and contexts are set, leaks buffers of
 * classes written in Python, and loses the exception where frames are left
 * (take_ownership). */
static int kind_of(const char *name) {
  static const char *const HERE[] = {"fails ",  "who_allocates ", "python_",
                                     "__wrap_", "counted ",       "dlw_faults_"};
  for (size_t i = 0; i < sizeof HERE / sizeof HERE[0]; i++) {
    if (begins(name, HERE[i])) return OTHER;
  }
  if (strstr(name, "/dlpack_web/_core") != NULL) return OURS;
  if (strstr(name, "/numpy/") != NULL) return FRAIL;
  if (begins(name, "PyFunction_New")) return FRAIL;
  if (begins(name, "slot_bf_getbuffer ")) return FRAIL;
  if (begins(name, "contextvar_set ")) return FRAIL;
  if (begins(name, "_PyFrame_MakeAndSetFrameObject ")) return FRAME;
  if (begins(name, "clear_thread_frame ")) return FRAME_LEFT;
  if (begins(name, "_PyEval_EvalFrameDefault ")) return PYTHON;
  return OTHER;
}

/* The same by address, remembered: to find the name takes long. */
static int kind_at(void *address) {
  static struct {
    void *address;
    int kind;
  } known[1 << 16];
  size_t at = (uintptr_t)address / 2 % (1 << 16);
  if (known[at].address == address) return known[at].kind;
  char name[300];
  __sanitizer_symbolize_pc(address, "%f %m", name, sizeof name);
  known[at].address = address;
  known[at].kind = kind_of(name);
  return known[at].kind;
}

/* FRAIL, OURS for the core and what it calls, or PYTHON for the rest. */
static int who_allocates(void) {
  void *frames[24];
  int count = backtrace(frames, 24), frame = 0;
  for (int i = 0; i < count; i++) {
    int kind = kind_at(frames[i]);
    if (kind == OURS || kind == FRAIL || kind == PYTHON) return kind;
    if (kind == FRAME) frame = 1;
    if (kind == FRAME_LEFT && frame) return FRAIL;
  }
  return PYTHON;
}

static int fails(void) {
  if (!armed || (until <= 0 && !(how & GOOD))) return 0;
  int who = who_allocates();
  if (who == FRAIL || (who == PYTHON && !(how & ANYWHERE))) return 0;
  if (--until > 0) return 0;
  /* CPython may try for ever to enter a `with` block's cleaning up. */
  if (++failures > FOR_GOOD) return 0;
  if (getenv("DLW_FAULTS_TRACE") != NULL) __sanitizer_print_stack_trace();
  return 1;
}

static void *counted(void *block) {
  if (block != NULL) blocks++;
  return block;
}

/* --- the core's ------------------------------------------------------------------- */

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) {
  return fails() ? NULL : counted(__real_malloc(bytes));
}

void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return fails() ? NULL : counted(__real_aligned_alloc(alignment, bytes));
}

void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes) {
  if (fails()) return NULL;
  void *block = __real_realloc(old, bytes);
  if (old == NULL) counted(block);
  return block;
}

void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block) {
  if (block != NULL) blocks--;
  __real_free(block);
}

/* --- Python's --------------------------------------------------------------------- */

static PyMemAllocatorEx real[3]; /* by PyMemAllocatorDomain */

static void *python_malloc(void *domain, size_t bytes) {
  PyMemAllocatorEx *of = domain;
  return fails() ? NULL : counted(of->malloc(of->ctx, bytes));
}

static void *python_calloc(void *domain, size_t count, size_t bytes) {
  PyMemAllocatorEx *of = domain;
  return fails() ? NULL : counted(of->calloc(of->ctx, count, bytes));
}

static void *python_realloc(void *domain, void *old, size_t bytes) {
  PyMemAllocatorEx *of = domain;
  if (fails()) return NULL;
  void *block = of->realloc(of->ctx, old, bytes);
  if (old == NULL) counted(block);
  return block;
}

static void python_free(void *domain, void *block) {
  PyMemAllocatorEx *of = domain;
  if (block != NULL) blocks--;
  of->free(of->ctx, block);
}

EXPORTED void dlw_faults_install(void);
EXPORTED void dlw_faults_install(void) {
  for (int domain = 0; domain < 3; domain++) {
    PyMem_GetAllocator((PyMemAllocatorDomain)domain, &real[domain]);
    PyMemAllocatorEx ours = {&real[domain], python_malloc, python_calloc,
                             python_realloc, python_free};
    PyMem_SetAllocator((PyMemAllocatorDomain)domain, &ours);
  }
}

/* --- calls ------------------------------------------------------------------------ */

static void arm(long n, int flags) {
  until = n;
  how = flags;
  failures = 0;
  armed = n > 0;
}

/* callable(), in which the n-th allocation fails (0: none). */
EXPORTED PyObject *dlw_faults_call(PyObject *callable, long n, int flags);
EXPORTED PyObject *dlw_faults_call(PyObject *callable, long n, int flags) {
  arm(n, flags);
  PyObject *result = PyObject_CallNoArgs(callable);
  armed = 0;
  return result;
}

/* Numbers have registers of their own, so that it does not matter how many integers
 * stand before the one that some of these functions take. */
typedef void *(*bridge)(intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,
                        double);

/* The same of a function for JavaScript that gives an address. */
EXPORTED void *dlw_faults_bridge(bridge call, const intptr_t *args, double number,
                                 long n, int flags);
EXPORTED void *dlw_faults_bridge(bridge call, const intptr_t *args, double number,
                                 long n, int flags) {
  arm(n, flags);
  void *address = call(args[0], args[1], args[2], args[3], args[4], args[5], number);
  armed = 0;
  return address;
}

/* How many failed in the last call. */
EXPORTED long dlw_faults_failures(void);
EXPORTED long dlw_faults_failures(void) { return failures; }

EXPORTED long dlw_faults_blocks(void);
EXPORTED long dlw_faults_blocks(void) { return blocks; }

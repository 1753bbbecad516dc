// Which blocks of the extension ran since the last look: linked into the build that the map of
// tests is made with (-fsanitize-coverage=trace-pc). Not for several threads at once: a block
// that is missed is one test fewer for its line.

#include <stddef.h>
#include <stdint.h>

enum { BITS = 16, SLOTS = 1 << BITS };
static uintptr_t seen[SLOTS];

extern const char __ehdr_start __attribute__((visibility("hidden")));

void __sanitizer_cov_trace_pc(void);
size_t mutants_take(uintptr_t* addresses);

void __sanitizer_cov_trace_pc(void) {
  uintptr_t pc = (uintptr_t)__builtin_return_address(0);
  size_t at = (size_t)((uint64_t)pc * 0x9E3779B97F4A7C15u >> (64 - BITS));
  while (seen[at] != pc) {
    if (seen[at] == 0) {
      seen[at] = pc;
      return;
    }
    at = (at + 1) % SLOTS;
  }
}

// Writes the addresses in the file, at most SLOTS, and forgets them.
__attribute__((visibility("default"))) size_t mutants_take(uintptr_t* addresses) {
  size_t count = 0;
  for (size_t at = 0; at < SLOTS; at++) {
    if (seen[at] != 0) {
      addresses[count++] = seen[at] - (uintptr_t)&__ehdr_start;
      seen[at] = 0;
    }
  }
  return count;
}

/* What the reproductions of this folder share.
 *
 * Each function of these files is one test: it gives NULL when the library did right, and otherwise
 * says what it did. A crash, a hang or a report of a sanitizer says the rest. */
#include <b2nd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

#define WRONG_IF(condition, what) \
  do {                            \
    if (condition) return what;   \
  } while (0)

/* Bytes that no codec makes smaller. */
static inline void fill_noise(uint8_t *bytes, size_t len, uint32_t seed) {
  for (size_t i = 0; i < len; i++) {
    seed = seed * 1103515245u + 12345u;
    bytes[i] = (uint8_t)(seed >> 16);
  }
}

/* A super-chunk on one thread: in one buffer or file when `contiguous`, else sparse in memory. */
static inline blosc2_schunk *new_schunk(bool contiguous, const char *path, int32_t typesize) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  cparams.typesize = typesize;
  storage.contiguous = contiguous;
  storage.urlpath = (char *)path;
  storage.cparams = &cparams;
  storage.dparams = &dparams;
  return blosc2_schunk_new(&storage);
}

#ifndef _WIN32
/* Makes an empty folder where temporary files belong, and puts its path into `folder`. */
static inline bool new_folder(char folder[200]) {
  const char *base = getenv("TMPDIR");
  snprintf(folder, 200, "%s/blosc2-XXXXXX", base != NULL ? base : "/tmp");
  return mkdtemp(folder) != NULL;
}

/* Runs a test in a child: that has no other threads, so that it may change its environment. */
static inline const char *in_child(const char *(*test)(void)) {
  int ends[2];
  const char *wrong = "the child has died";
  WRONG_IF(pipe(ends) != 0, "no pipe");
  pid_t child = fork();
  if (child == 0) {
    wrong = test();
    _exit(write(ends[1], &wrong, sizeof wrong) != sizeof wrong);
  }
  close(ends[1]);
  /* The text lies at the same place in both. */
  if (read(ends[0], &wrong, sizeof wrong) != sizeof wrong) wrong = "the child has died";
  close(ends[0]);
  waitpid(child, NULL, 0);
  return wrong;
}
#endif

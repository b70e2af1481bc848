/* C-Blosc2 reads its environment through this function.
 *
 * Upstream lets a dozen variables override the parameters that a program has chosen, and some of
 * them corrupt frames (BLOSC_TYPESIZE). Only the two that make it print messages pass here. */
#include <stdlib.h>
#include <string.h>

char *blosc2_sys_getenv(const char *name) {
  if (strcmp(name, "BLOSC_TRACE") == 0 || strcmp(name, "BLOSC_INFO") == 0) {
    return getenv(name);
  }
  return NULL;
}

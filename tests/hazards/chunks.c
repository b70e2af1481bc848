/* Hazards of chunks and contexts (blosc2.c). */
#include "hazards.h"

/* The pipeline takes the caller's source as scratch memory from the third filter on. */
const char *three_filters_write_into_the_source(void) {
  enum { ITEMS = 100000 };
  static int32_t source[ITEMS], before[ITEMS];
  static uint8_t chunk[sizeof source + BLOSC2_MAX_OVERHEAD];
  for (int i = 0; i < ITEMS; i++) source[i] = before[i] = i / 3;
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.typesize = 4;
  cparams.blocksize = 8192;
  cparams.filters[3] = BLOSC_SHUFFLE;
  cparams.filters[4] = BLOSC_BITSHUFFLE;
  cparams.filters[5] = BLOSC_SHUFFLE;
  blosc2_context *context = blosc2_create_cctx(cparams);
  int written = blosc2_compress_ctx(context, source, sizeof source, chunk, sizeof chunk);
  blosc2_free_ctx(context);
  WRONG_IF(written <= 0, "the source cannot be compressed");
  WRONG_IF(memcmp(source, before, sizeof source) != 0, "the const source has changed");
  return NULL;
}

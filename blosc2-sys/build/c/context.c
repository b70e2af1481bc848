/* Settings of a context that upstream has no function for. */
#include "context.h"

/* Whether blosc2_compress_ctx writes the header of Blosc1 (build/patches, blosc1-header). */
void blosc2_sys_set_blosc1(blosc2_context *context, bool blosc1) { context->blosc1 = blosc1; }

/* Sizes as blosc2_create_cctx sets them; a call puts those that it has used in their place. */
void blosc2_sys_set_sizes(blosc2_context *context, int32_t typesize, int32_t blocksize) {
  context->typesize = typesize;
  context->blocksize = blocksize;
}

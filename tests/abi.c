/* What the C headers keep to themselves. build.rs appends the tables. */
#include <stddef.h>
#include <b2nd.h>
#include <blosc2/codecs-registry.h>
#include <blosc2/filters-registry.h>
#include <blosc2/tuners-registry.h>

typedef void (*function)(void);

const blosc2_cparams *abi_cparams_defaults(void) { return &BLOSC2_CPARAMS_DEFAULTS; }
const blosc2_dparams *abi_dparams_defaults(void) { return &BLOSC2_DPARAMS_DEFAULTS; }
const blosc2_storage *abi_storage_defaults(void) { return &BLOSC2_STORAGE_DEFAULTS; }
const blosc2_io *abi_io_defaults(void) { return &BLOSC2_IO_DEFAULTS; }
const blosc2_stdio_params *abi_stdio_params_defaults(void) { return &BLOSC2_STDIO_PARAMS_DEFAULTS; }
const blosc2_stdio_mmap *abi_stdio_mmap_defaults(void) { return &BLOSC2_STDIO_MMAP_DEFAULTS; }

int abi_meta_exists(blosc2_schunk *schunk, const char *name) {
  return blosc2_meta_exists(schunk, name);
}
int abi_meta_get(blosc2_schunk *schunk, const char *name, uint8_t **content, int32_t *len) {
  return blosc2_meta_get(schunk, name, content, len);
}
int abi_deserialize_meta(const uint8_t *smeta, int32_t len, int8_t *ndim, int64_t *shape,
                         int32_t *chunkshape, int32_t *blockshape, char **dtype, int8_t *format) {
  return b2nd_deserialize_meta_inline(smeta, len, ndim, shape, chunkshape, blockshape, dtype,
                                      format);
}

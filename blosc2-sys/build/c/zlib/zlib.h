/* What C-Blosc2 uses of zlib, served by libdeflate: the same format, and whole buffers are all that is
 * asked for. */
#ifndef BLOSC2_SYS_ZLIB_H
#define BLOSC2_SYS_ZLIB_H

#include <libdeflate.h>

typedef unsigned char Bytef;
typedef unsigned long uLong;
typedef uLong uLongf;

enum { Z_OK = 0, Z_DATA_ERROR = -3, Z_MEM_ERROR = -4, Z_BUF_ERROR = -5 };

#define ZLIB_VERSION "libdeflate " LIBDEFLATE_VERSION_STRING

static inline int compress2(Bytef *dest, uLongf *dest_len, const Bytef *source, uLong source_len,
                            int level) {
  struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
  if (compressor == NULL) {
    return Z_MEM_ERROR;
  }
  size_t written = libdeflate_zlib_compress(compressor, source, source_len, dest, *dest_len);
  libdeflate_free_compressor(compressor);
  *dest_len = (uLongf)written;
  return written == 0 ? Z_BUF_ERROR : Z_OK;
}

static inline int uncompress(Bytef *dest, uLongf *dest_len, const Bytef *source, uLong source_len) {
  struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
  if (decompressor == NULL) {
    return Z_MEM_ERROR;
  }
  size_t written = 0;
  enum libdeflate_result result = libdeflate_zlib_decompress(decompressor, source, source_len, dest,
                                                             *dest_len, &written);
  libdeflate_free_decompressor(decompressor);
  *dest_len = (uLongf)written;
  return result == LIBDEFLATE_SUCCESS ? Z_OK : Z_DATA_ERROR;
}

#endif

/* What C-Blosc2 uses of zfp 1.0. The crate zfp-sys builds that library, but does not say where its
 * headers are. */
#ifndef BLOSC2_SYS_ZFP_H
#define BLOSC2_SYS_ZFP_H

#include <stddef.h>
#include <stdint.h>

#define ZFP_MAX_PREC 64

typedef unsigned int uint;
typedef unsigned char uchar;
typedef int32_t int32;
typedef int64_t int64;
typedef uint32_t uint32;
typedef uint64_t uint64;

enum { zfp_false = 0, zfp_true = 1 };
typedef int zfp_bool;

typedef enum {
  zfp_type_none = 0,
  zfp_type_int32 = 1,
  zfp_type_int64 = 2,
  zfp_type_float = 3,
  zfp_type_double = 4
} zfp_type;

typedef struct bitstream bitstream;
typedef struct zfp_field zfp_field;

/* Made by zfp_stream_open; the fields after these are left out. */
typedef struct {
  uint minbits;
  uint maxbits;
  uint maxprec;
  int minexp;
  bitstream *stream;
} zfp_stream;

bitstream *stream_open(void *buffer, size_t bytes);
void stream_close(bitstream *stream);
void stream_rseek(bitstream *stream, uint64_t offset);

zfp_stream *zfp_stream_open(bitstream *stream);
void zfp_stream_close(zfp_stream *stream);
void zfp_stream_rewind(zfp_stream *stream);
void zfp_stream_set_bit_stream(zfp_stream *stream, bitstream *bits);
double zfp_stream_set_rate(zfp_stream *stream, double rate, zfp_type type, uint dims, zfp_bool align);
uint zfp_stream_set_precision(zfp_stream *stream, uint precision);
double zfp_stream_set_accuracy(zfp_stream *stream, double tolerance);
size_t zfp_stream_maximum_size(const zfp_stream *stream, const zfp_field *field);

zfp_field *zfp_field_1d(void *data, zfp_type type, size_t nx);
zfp_field *zfp_field_2d(void *data, zfp_type type, size_t nx, size_t ny);
zfp_field *zfp_field_3d(void *data, zfp_type type, size_t nx, size_t ny, size_t nz);
zfp_field *zfp_field_4d(void *data, zfp_type type, size_t nx, size_t ny, size_t nz, size_t nw);
void zfp_field_free(zfp_field *field);

size_t zfp_compress(zfp_stream *stream, const zfp_field *field);
size_t zfp_decompress(zfp_stream *stream, zfp_field *field);

size_t zfp_decode_block_float_1(zfp_stream *stream, float *block);
size_t zfp_decode_block_float_2(zfp_stream *stream, float *block);
size_t zfp_decode_block_float_3(zfp_stream *stream, float *block);
size_t zfp_decode_block_float_4(zfp_stream *stream, float *block);
size_t zfp_decode_block_double_1(zfp_stream *stream, double *block);
size_t zfp_decode_block_double_2(zfp_stream *stream, double *block);
size_t zfp_decode_block_double_3(zfp_stream *stream, double *block);
size_t zfp_decode_block_double_4(zfp_stream *stream, double *block);

#endif

/* What C-Blosc2 uses of zlib, served by zlib-rs through `src/zlib.rs`. */
#ifndef BLOSC2_SYS_ZLIB_H
#define BLOSC2_SYS_ZLIB_H

typedef unsigned char Bytef;
typedef unsigned long uLong;
typedef uLong uLongf;

#define Z_OK 0
#define ZLIB_VERSION blosc2_sys_zlib_version()

#define compress2 blosc2_sys_zlib_compress2
#define uncompress blosc2_sys_zlib_uncompress

int blosc2_sys_zlib_compress2(Bytef *dest, uLongf *dest_len, const Bytef *source,
                              uLong source_len, int level);
int blosc2_sys_zlib_uncompress(Bytef *dest, uLongf *dest_len, const Bytef *source,
                               uLong source_len);
const char *blosc2_sys_zlib_version(void);

#endif

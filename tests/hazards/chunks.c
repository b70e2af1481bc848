/* Hazards of chunks and contexts (blosc2.c). */
#include "hazards.h"
#include <blosc2/codecs-registry.h>
#include <blosc2/filters-registry.h>

#ifndef _WIN32
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

/* The flags of a chunk's header that blosc2.h does not name. */
enum { EXTENDED = BLOSC_DOSHUFFLE | BLOSC_DOBITSHUFFLE, NOT_SPLIT = 0x10, LAZY = 0x08 };
enum { ITEMS = 20000, ROOM = 4 * ITEMS + BLOSC2_MAX_OVERHEAD };

static void put32(uint8_t *bytes, int32_t value) {
  for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)((uint32_t)value >> (8 * i));
}

/* The first 16 bytes of a chunk, which are all that Blosc1 has. */
static void put_header(uint8_t *chunk, int version, int flags, int typesize, int32_t nbytes,
                       int32_t blocksize, int32_t cbytes) {
  chunk[BLOSC2_CHUNK_VERSION] = (uint8_t)version;
  chunk[BLOSC2_CHUNK_VERSIONLZ] = 1;
  chunk[BLOSC2_CHUNK_FLAGS] = (uint8_t)flags;
  chunk[BLOSC2_CHUNK_TYPESIZE] = (uint8_t)typesize;
  put32(chunk + BLOSC2_CHUNK_NBYTES, nbytes);
  put32(chunk + BLOSC2_CHUNK_BLOCKSIZE, blocksize);
  put32(chunk + BLOSC2_CHUNK_CBYTES, cbytes);
}

/* LZ4 and one filter, for blocks of 8 KiB. */
static blosc2_cparams params(int32_t typesize, uint8_t filter) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.compcode = BLOSC_LZ4;
  cparams.typesize = typesize;
  cparams.blocksize = 8192;
  cparams.filters[BLOSC2_MAX_FILTERS - 1] = filter;
  return cparams;
}

static int pack(blosc2_cparams cparams, const void *source, int32_t len, void *chunk, int32_t room) {
  blosc2_context *context = blosc2_create_cctx(cparams);
  int written = blosc2_compress_ctx(context, source, len, chunk, room);
  blosc2_free_ctx(context);
  return written;
}

static blosc2_context *new_dctx(int16_t threads, blosc2_schunk *schunk) {
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  dparams.nthreads = threads;
  dparams.schunk = schunk;
  return blosc2_create_dctx(dparams);
}

static int unpack(int16_t threads, const void *chunk, int32_t len, void *dest, int32_t room) {
  blosc2_context *context = new_dctx(threads, NULL);
  int read = blosc2_decompress_ctx(context, chunk, len, dest, room);
  blosc2_free_ctx(context);
  return read;
}

/* A copy with nothing behind it, so that reading too far is seen. */
static uint8_t *exact(const void *bytes, size_t len) {
  uint8_t *copy = malloc(len);
  memcpy(copy, bytes, len);
  return copy;
}

/* Whether `len` bytes come back as they were, whatever is done with them in between. */
static bool survives(blosc2_cparams cparams, const void *source, int32_t len) {
  uint8_t *chunk = malloc((size_t)len + BLOSC2_MAX_OVERHEAD), *back = malloc((size_t)len);
  int written = pack(cparams, source, len, chunk, len + BLOSC2_MAX_OVERHEAD);
  int read = written <= 0 ? written : unpack(1, chunk, written, back, len);
  bool same = read == len && memcmp(source, back, (size_t)len) == 0;
  free(chunk);
  free(back);
  return same;
}

/* The pipeline takes the caller's source as scratch memory from the third filter on. */
const char *three_filters_write_into_the_source(void) {
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

static int copy_input(blosc2_prefilter_params *block) {
  memcpy(block->output, block->input, (size_t)block->output_size);
  return 0;
}

/* The same, the prefilter counting as one of them. */
const char *prefilter_and_two_filters_write_into_the_source(void) {
  static int32_t source[ITEMS], before[ITEMS];
  static uint8_t chunk[sizeof source + BLOSC2_MAX_OVERHEAD];
  for (int i = 0; i < ITEMS; i++) source[i] = before[i] = i / 3;
  blosc2_prefilter_params preparams = {0};
  blosc2_cparams cparams = params(4, BLOSC_BITSHUFFLE);
  cparams.filters[4] = BLOSC_SHUFFLE;
  cparams.prefilter = copy_input;
  cparams.preparams = &preparams;
  int written = pack(cparams, source, sizeof source, chunk, sizeof chunk);
  WRONG_IF(written <= 0, "the source cannot be compressed");
  WRONG_IF(memcmp(source, before, sizeof source) != 0, "the const source has changed");
  return NULL;
}

static int write_nines(blosc2_prefilter_params *block) {
  memset(block->output, 9, (size_t)block->output_size);
  return 0;
}

/* A prefilter that makes items of 8 bytes of those of 1 gets room for the latter. */
const char *prefilter_output_overflows_the_scratch(void) {
  static uint8_t source[20000], chunk[sizeof source + BLOSC2_MAX_OVERHEAD];
  blosc2_prefilter_params preparams = {.output_typesize = 8};
  blosc2_cparams cparams = params(1, BLOSC_NOFILTER);
  cparams.prefilter = write_nines;
  cparams.preparams = &preparams;
  WRONG_IF(pack(cparams, source, sizeof source, chunk, sizeof chunk) > 0, "it fits");
  return NULL;
}

/* Three bytes that are no whole item are not the prefilter's, and nobody else writes them. */
const char *prefilter_leaves_the_end_uninitialised(void) {
  static uint8_t source[4003], chunk[sizeof source + BLOSC2_MAX_OVERHEAD], back[sizeof source];
  blosc2_prefilter_params preparams = {0};
  blosc2_cparams cparams = params(4, BLOSC_NOFILTER);
  cparams.prefilter = write_nines;
  cparams.preparams = &preparams;
  int len = pack(cparams, source, sizeof source, chunk, sizeof chunk);
  int read = unpack(1, chunk, len, back, sizeof back);
  WRONG_IF(read != sizeof back || back[0] != 9 || back[3999] != 9, "other data comes back");
  WRONG_IF(memcmp(back + 4000, "\0\0\0", 3) != 0, "the end is what was in memory");
  return NULL;
}

#ifndef _WIN32
enum { BLOCK = 65536, BLOCKS = 8 };

/* Blocks of noise and blocks of zeros in turns. */
static void fill_mixed(uint8_t *data) {
  memset(data, 0, BLOCKS * BLOCK);
  for (int i = 0; i < BLOCKS; i += 2) fill_noise(data + i * BLOCK, BLOCK, 5 + i);
}

/* Writes a frame of two such chunks, the first of items of 1 byte and the second of 128. */
int write_mixed_typesizes(const char *path) {
  int32_t len = BLOCKS * BLOCK, room = len + BLOSC2_MAX_OVERHEAD;
  uint8_t *data = malloc((size_t)len), *chunk = malloc((size_t)room);
  fill_mixed(data);
  blosc2_schunk *schunk = new_schunk(true, path, 1);
  int64_t nchunks = 0;
  for (int32_t typesize = 1; typesize <= 128; typesize += 127) {
    blosc2_cparams cparams = params(typesize, BLOSC_NOFILTER);
    cparams.blocksize = BLOCK;
    cparams.splitmode = BLOSC_ALWAYS_SPLIT;
    pack(cparams, data, len, chunk, room);
    nchunks = blosc2_schunk_append_chunk(schunk, chunk, true);
  }
  blosc2_schunk_free(schunk);
  free(data);
  free(chunk);
  return (int)nchunks;
}

/* Reads chunks of that frame lazily, by one context: all of a chunk, or some items of it. Often, since
 * with threads the scratch memory of a thread that has read the one has to meet the other. */
static const char *read_mixed_typesizes(int16_t threads, int first, bool items) {
  int32_t size = BLOCKS * BLOCK;
  char folder[200], path[220];
  WRONG_IF(!new_folder(folder), "no folder");
  snprintf(path, sizeof path, "%s/mixed.b2frame", folder);
  const char *wrong = write_mixed_typesizes(path) == 2 ? NULL : "the frame cannot be written";
  uint8_t *data = malloc((size_t)size), *back = malloc((size_t)size);
  fill_mixed(data);
  blosc2_schunk *schunk = blosc2_schunk_open(path);
  blosc2_context *context = new_dctx(threads, schunk);
  for (int round = 0; round < 40 && wrong == NULL; round++) {
    int i = round % 2 < first ? first : round % 2;
    uint8_t *chunk;
    bool needs_free;
    int len = blosc2_schunk_get_lazychunk(schunk, i, &chunk, &needs_free);
    int32_t expected = items ? 128 : size;
    int read = items ? blosc2_getitem_ctx(context, chunk, len, 0, i == 0 ? 128 : 1, back, size)
                     : blosc2_decompress_ctx(context, chunk, len, back, size);
    if (read != expected) wrong = "the lazy chunk cannot be read";
    else if (memcmp(data, back, (size_t)expected) != 0) wrong = "other data comes back";
    if (needs_free) free(chunk);
  }
  blosc2_free_ctx(context);
  blosc2_schunk_free(schunk);
  free(data);
  free(back);
  unlink(path);
  rmdir(folder);
  return wrong;
}

/* Scratch memory was kept for the next chunk by the block size alone, but a lazy block may take four
 * bytes more for each byte of an item. */
const char *lazy_reads_of_mixed_typesizes_overflow(void) {
  return read_mixed_typesizes(1, 0, false);
}

const char *lazy_reads_of_mixed_typesizes_overflow_on_threads(void) {
  return read_mixed_typesizes(2, 0, false);
}

const char *lazy_items_of_mixed_typesizes_overflow(void) {
  return read_mixed_typesizes(1, 0, true);
}

/* A context that has nothing to do with the frame leaves its scratch memory in the thread pool. */
const char *users_of_one_thread_pool_overflow_its_scratch(void) {
  static uint8_t data[BLOCKS * BLOCK], chunk[BLOCKS * BLOCK + BLOSC2_MAX_OVERHEAD];
  fill_mixed(data);
  blosc2_cparams cparams = params(1, BLOSC_NOFILTER);
  cparams.blocksize = BLOCK;
  cparams.nthreads = 2;
  blosc2_context *other = blosc2_create_cctx(cparams);
  int written = blosc2_compress_ctx(other, data, sizeof data, chunk, sizeof chunk);
  const char *wrong = written > 0 ? read_mixed_typesizes(2, 1, false) : "no chunk";
  blosc2_free_ctx(other);
  return wrong;
}
#endif

/* A block size of 1002 becomes 1000 for items of 4 bytes, but the header says 1002. */
const char *header_has_another_block_size_than_the_chunk(void) {
  static uint8_t source[10000];
  for (size_t i = 0; i < sizeof source; i++) source[i] = (uint8_t)(i / 100);
  blosc2_cparams cparams = params(4, BLOSC_SHUFFLE);
  cparams.blocksize = 1002;
  WRONG_IF(!survives(cparams, source, sizeof source), "other data comes back");
  return NULL;
}

/* Parameters for a dictionary; the blocks are so small that the copy of its samples does not overlap,
 * which is a fault of its own. */
static blosc2_cparams with_dictionary(uint8_t codec) {
  blosc2_cparams cparams = params(4, BLOSC_SHUFFLE);
  cparams.compcode = codec;
  cparams.blocksize = 64;
  cparams.use_dict = 1;
  return cparams;
}

/* The training of a dictionary copies tiny sources, and the header goes on calling them copies. */
const char *tiny_source_with_dictionary_is_called_a_copy(void) {
  uint8_t source[20];
  memset(source, 7, sizeof source);
  blosc2_cparams cparams = params(1, BLOSC_NOFILTER);
  cparams.use_dict = 1;
  WRONG_IF(!survives(cparams, source, sizeof source), "other data comes back");
  return NULL;
}

/* And its header, which names no codec since nothing was to be compressed, is used for LZ4. */
const char *tiny_source_with_dictionary_gets_no_codec(void) {
  const char *source = "abababababababababababababababa";
  blosc2_cparams cparams = params(1, BLOSC_NOFILTER);
  cparams.use_dict = 1;
  WRONG_IF(!survives(cparams, source, 31), "other data comes back");
  return NULL;
}

/* Noise is stored as it is, but the header goes on saying that a dictionary comes first. */
const char *stored_chunk_claims_a_dictionary(void) {
  static uint8_t source[20000];
  fill_noise(source, sizeof source, 1);
  WRONG_IF(!survives(with_dictionary(BLOSC_LZ4), source, sizeof source), "the chunk cannot be read");
  return NULL;
}

/* The samples for a dictionary of LZ4 are copied by memcpy to where they overlap. */
const char *dictionary_samples_overlap(void) {
  static int32_t source[ITEMS];
  for (int i = 0; i < ITEMS; i++) source[i] = (i * 7919) % 1000;
  blosc2_cparams cparams = params(4, BLOSC_SHUFFLE);
  cparams.use_dict = 1;
  WRONG_IF(!survives(cparams, source, sizeof source), "other data comes back");
  return NULL;
}

/* The samples for it are copied to the destination, however small that is. */
const char *dictionary_samples_overflow_the_destination(void) {
  static uint8_t source[200000];
  for (size_t i = 0; i < sizeof source; i++) source[i] = (uint8_t)(i / 500);
  blosc2_cparams cparams = params(4, BLOSC_SHUFFLE);
  cparams.use_dict = 1;
  uint8_t *chunk = malloc(100000);
  int written = pack(cparams, source, sizeof source, chunk, 100000);
  free(chunk);
  WRONG_IF(written <= 0, "there is room, but no chunk");
  return NULL;
}

/* And so is the dictionary itself. */
const char *dictionary_overflows_the_destination(void) {
  static uint8_t source[200000];
  fill_noise(source, sizeof source, 1);
  blosc2_cparams cparams = params(4, BLOSC_SHUFFLE);
  cparams.use_dict = 1;
  cparams.nthreads = 2;
  uint8_t *chunk = malloc(100);
  int written = pack(cparams, source, sizeof source, chunk, 100);
  free(chunk);
  WRONG_IF(written != 0, "noise fits in 100 bytes");
  return NULL;
}

/* Half a billion blocks of one byte: the length of their starts overflows. */
const char *block_starts_overflow(void) {
  int32_t len = (1 << 29) + 8;
  uint8_t *source = malloc((size_t)len), chunk[100];
  if (source == NULL) return NULL; /* too small a machine */
  source[0] = 1;
  blosc2_cparams cparams = params(1, BLOSC_NOFILTER);
  cparams.blocksize = 1;
  int written = pack(cparams, source, len, chunk, sizeof chunk);
  free(source);
  WRONG_IF(written != 0, "half a gigabyte fits in 100 bytes");
  return NULL;
}

/* A chunk with a dictionary. The memory belongs to the caller. */
static uint8_t *dictionary_chunk(uint8_t codec, int32_t *words, int *len) {
  uint8_t chunk[ROOM];
  for (int i = 0; i < ITEMS; i++) words[i] = (i * 7919) % 1000;
  *len = pack(with_dictionary(codec), words, 4 * ITEMS, chunk, sizeof chunk);
  return exact(chunk, *len > 0 ? (size_t)*len : 0);
}

/* Reading items used the dictionary of the chunk before, where that was in memory. */
const char *items_use_a_freed_dictionary(void) {
  static int32_t words[ITEMS], back[ITEMS];
  int len;
  uint8_t *first = dictionary_chunk(BLOSC_LZ4, words, &len);
  uint8_t *second = exact(first, (size_t)len);
  blosc2_context *context = new_dctx(1, NULL);
  blosc2_decompress_ctx(context, first, len, back, sizeof back);
  free(first);
  int32_t item = 0;
  int read = blosc2_getitem_ctx(context, second, len, 5000, 1, &item, sizeof item);
  blosc2_free_ctx(context);
  free(second);
  WRONG_IF(read != sizeof item || item != words[5000], "another item comes back");
  return NULL;
}

/* A context without such a chunk before had no dictionary at all. */
static const char *read_items_with_dictionary(uint8_t codec) {
  int32_t words[ITEMS];
  int len;
  uint8_t *chunk = dictionary_chunk(codec, words, &len);
  if (len < 0) {
    free(chunk);
    return NULL; /* The codec is not in this build. */
  }
  blosc2_context *context = new_dctx(1, NULL);
  int32_t item = 0;
  int read = blosc2_getitem_ctx(context, chunk, len, 5000, 1, &item, sizeof item);
  blosc2_free_ctx(context);
  int32_t again = 0;
  int read_again = blosc2_getitem(chunk, len, 5000, 1, &again, sizeof again);
  free(chunk);
  WRONG_IF(read != sizeof item || item != words[5000], "an item cannot be read");
  WRONG_IF(read_again != sizeof item || again != item, "an item cannot be read without a context");
  return NULL;
}

const char *items_ignore_the_dictionary_of_lz4(void) {
  return read_items_with_dictionary(BLOSC_LZ4);
}

const char *items_ignore_the_dictionary_of_zstd(void) {
  return read_items_with_dictionary(BLOSC_ZSTD);
}

/* Scattered items are read from single blocks, which had no dictionary either. */
static const char *read_scattered(blosc2_cparams cparams, int factor, int limit) {
  int32_t words[ITEMS];
  for (int i = 0; i < ITEMS; i++) words[i] = (i * factor) % limit;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  storage.cparams = &cparams;
  blosc2_schunk *schunk = blosc2_schunk_new(&storage);
  int64_t nchunks = blosc2_schunk_append_buffer(schunk, words, sizeof words);
  int64_t at[4] = {5, 15000, ITEMS - 1, 5000};
  int32_t items[4] = {0};
  int code = blosc2_schunk_get_sparse_buffer(schunk, 4, at, items);
  blosc2_schunk_free(schunk);
  WRONG_IF(nchunks != 1, "the chunk cannot be made");
  WRONG_IF(code < 0, "the items cannot be read");
  for (int i = 0; i < 4; i++) WRONG_IF(items[i] != words[at[i]], "another item comes back");
  return NULL;
}

const char *scattered_items_ignore_the_dictionary(void) {
  return read_scattered(with_dictionary(BLOSC_LZ4), 7919, 1000);
}

/* A chunk of 10 blocks of 32-bit numbers, packed with this filter. */
static int number_chunk(uint8_t filter, int32_t *words, uint8_t *chunk) {
  for (int i = 0; i < ITEMS; i++) words[i] = i * 3;
  blosc2_cparams cparams = params(4, BLOSC_SHUFFLE);
  cparams.filters[4] = filter;
  return pack(cparams, words, 4 * ITEMS, chunk, ROOM);
}
enum { NUMBER_BLOCKS = 10 };

/* A mask that waits for a decompression was used for single items too, whatever its length. */
const char *items_take_a_pending_mask(void) {
  static uint8_t chunk[ROOM];
  static int32_t words[ITEMS];
  int len = number_chunk(BLOSC_NOFILTER, words, chunk);
  blosc2_context *context = new_dctx(1, NULL);
  bool mask[2] = {true, true};
  blosc2_set_maskout(context, mask, 2);
  int32_t item = 0;
  int read = blosc2_getitem_ctx(context, chunk, len, 19000, 1, &item, sizeof item);
  blosc2_free_ctx(context);
  WRONG_IF(read != sizeof item || item != words[19000], "another item comes back");
  return NULL;
}

/* A mask of a negative length frees the one before, and keeps it. */
const char *negative_mask_is_taken(void) {
  blosc2_context *context = new_dctx(1, NULL);
  bool mask[2] = {true, true};
  blosc2_set_maskout(context, mask, 2);
  int code = blosc2_set_maskout(context, mask, -1);
  blosc2_free_ctx(context);
  WRONG_IF(code >= 0, "a mask of -1 blocks is taken");
  return NULL;
}

/* Delta needs the first block to undo any other. */
const char *items_of_delta_are_wrong(void) {
  static uint8_t chunk[ROOM];
  static int32_t words[ITEMS];
  int len = number_chunk(BLOSC_DELTA, words, chunk);
  for (int16_t threads = 1; threads <= 4; threads += 3) {
    blosc2_context *context = new_dctx(threads, NULL);
    int32_t items[5000] = {0};
    int read = blosc2_getitem_ctx(context, chunk, len, 10000, 5000, items, sizeof items);
    blosc2_free_ctx(context);
    WRONG_IF(read != sizeof items || memcmp(items, words + 10000, sizeof items) != 0,
             "other items come back");
  }
  return NULL;
}

const char *scattered_items_of_delta_are_wrong(void) {
  blosc2_cparams cparams = params(4, BLOSC_SHUFFLE);
  cparams.filters[4] = BLOSC_DELTA;
  return read_scattered(cparams, 3, 1000000);
}

static const char *read_masked_delta(int16_t threads) {
  uint8_t chunk[ROOM];
  int32_t words[ITEMS], back[ITEMS] = {0};
  int len = number_chunk(BLOSC_DELTA, words, chunk);
  bool mask[NUMBER_BLOCKS];
  for (int i = 0; i < NUMBER_BLOCKS; i++) mask[i] = i != 5;
  blosc2_context *context = new_dctx(threads, NULL);
  blosc2_set_maskout(context, mask, NUMBER_BLOCKS);
  int read = blosc2_decompress_ctx(context, chunk, len, back, sizeof back);
  blosc2_free_ctx(context);
  WRONG_IF(read >= 0 && memcmp(back + 5 * 2048, words + 5 * 2048, 8192) != 0,
           "another block comes back");
  return NULL;
}

const char *masked_delta_is_wrong(void) {
  return read_masked_delta(1);
}

/* With threads, all wait for a first block that the mask leaves out. */
const char *masked_first_block_of_delta_hangs_threads(void) {
  return read_masked_delta(4);
}

/* And for one that is broken: its end is, so that the other threads have begun by then. */
const char *broken_first_block_of_delta_hangs_threads(void) {
  static int32_t words[100000], back[100000];
  static uint8_t chunk[sizeof words + BLOSC2_MAX_OVERHEAD];
  for (int i = 0; i < 100000; i++) words[i] = i * 3;
  blosc2_cparams cparams = params(4, BLOSC_SHUFFLE);
  cparams.filters[4] = BLOSC_DELTA;
  cparams.blocksize = 100000;
  cparams.splitmode = BLOSC_NEVER_SPLIT;
  int len = pack(cparams, words, sizeof words, chunk, sizeof chunk);
  int32_t start, stream;
  memcpy(&start, chunk + BLOSC_EXTENDED_HEADER_LENGTH, 4);
  memcpy(&stream, chunk + start, 4);
  put32(chunk + start, stream - 1);
  for (int i = 0; i < 300; i++) {
    WRONG_IF(unpack(4, chunk, len, back, sizeof back) >= 0, "the broken chunk is read");
  }
  return NULL;
}

/* Each block of variable length is a reference of its own, but was read against the first. */
const char *delta_of_variable_blocks_is_wrong(void) {
  static uint8_t chunk[ROOM], back[30000];
  static uint8_t blocks[3][10000];
  const void *sources[3] = {blocks[0], blocks[1], blocks[2]};
  int32_t sizes[3] = {10000, 10000, 10000};
  for (int i = 0; i < 30000; i++) blocks[0][i] = (uint8_t)(i / 100);
  blosc2_cparams cparams = params(1, BLOSC_NOFILTER);
  cparams.filters[0] = BLOSC_DELTA;
  blosc2_context *context = blosc2_create_cctx(cparams);
  int len = blosc2_vlcompress_ctx(context, sources, sizes, 3, chunk, sizeof chunk);
  blosc2_free_ctx(context);
  WRONG_IF(len <= 0, "the blocks cannot be compressed");
  for (int16_t threads = 1; threads <= 4; threads += 3) {
    int read = unpack(threads, chunk, len, back, sizeof back);
    WRONG_IF(read != sizeof back || memcmp(blocks, back, sizeof back) != 0,
             "other data comes back at once");
    void *parts[3];
    context = new_dctx(threads, NULL);
    read = blosc2_vldecompress_ctx(context, chunk, len, parts, sizes, 3);
    blosc2_free_ctx(context);
    WRONG_IF(read != 3, "the blocks cannot be read one by one");
    bool same = true;
    for (int i = 0; i < 3; i++) {
      same = same && memcmp(parts[i], blocks[i], 10000) == 0;
      free(parts[i]);
    }
    WRONG_IF(!same, "other data comes back one by one");
  }
  return NULL;
}

/* Numbers through these filters and back, some times. One block only where there are more than two
 * filters, which spoil the source. */
static const char *pass_filters(const uint8_t *filters, int nfilters, int16_t threads, int times) {
  int32_t words[ITEMS], source[ITEMS], back[ITEMS];
  uint8_t chunk[ROOM];
  for (int i = 0; i < ITEMS; i++) words[i] = source[i] = i * 3;
  blosc2_cparams cparams = params(4, BLOSC_NOFILTER);
  memcpy(cparams.filters, filters, (size_t)nfilters);
  if (nfilters > 2) cparams.blocksize = sizeof source;
  int len = pack(cparams, source, sizeof source, chunk, sizeof chunk);
  WRONG_IF(len <= 0, "the source cannot be compressed");
  for (int i = 0; i < times; i++) {
    int read = unpack(threads, chunk, len, back, sizeof back);
    WRONG_IF(read != sizeof back || memcmp(back, words, sizeof back) != 0, "other data comes back");
  }
  return NULL;
}

/* Undoing three filters in front of delta, and one behind it, mixed up the places for their results.
 * Two stored blocks, since C spoils the source of three filters and more. */
const char *delta_after_three_filters_is_wrong(void) {
  enum { BLOCK_LEN = 1024, STARTS = BLOSC_EXTENDED_HEADER_LENGTH, FIRST = STARTS + 8, EACH = 4 + BLOCK_LEN };
  uint8_t filters[] = {BLOSC_SHUFFLE, BLOSC_SHUFFLE, BLOSC_SHUFFLE, BLOSC_DELTA, BLOSC_SHUFFLE};
  uint8_t source[2 * BLOCK_LEN], chunk[FIRST + 2 * EACH] = {0}, back[2 * BLOCK_LEN];
  fill_noise(source, sizeof source, 1);
  put_header(chunk, BLOSC2_VERSION_FORMAT_STABLE, EXTENDED | NOT_SPLIT, 4, sizeof source, BLOCK_LEN,
             sizeof chunk);
  memcpy(chunk + BLOSC2_CHUNK_FILTER_CODES, filters, sizeof filters);
  for (int i = 0; i < 2; i++) {
    uint8_t here[BLOCK_LEN], there[BLOCK_LEN];
    blosc2_shuffle(4, BLOCK_LEN, source + i * BLOCK_LEN, here);
    blosc2_shuffle(4, BLOCK_LEN, here, there);
    blosc2_shuffle(4, BLOCK_LEN, there, here);
    for (int j = 0; j < BLOCK_LEN; j++) {
      there[j] = here[j] ^ (i > 0 ? source[j] : j >= 4 ? here[j - 4] : 0);
    }
    uint8_t *stream = chunk + FIRST + i * EACH;
    put32(chunk + STARTS + 4 * i, FIRST + i * EACH);
    put32(stream, BLOCK_LEN);
    blosc2_shuffle(4, BLOCK_LEN, there, stream + 4);
  }
  int read = unpack(1, chunk, sizeof chunk, back, sizeof back);
  WRONG_IF(read != sizeof back || memcmp(back, source, sizeof back) != 0, "other data comes back");
  return NULL;
}

const char *delta_twice_is_wrong(void) {
  uint8_t filters[] = {BLOSC_DELTA, BLOSC_SHUFFLE, BLOSC_DELTA};
  return pass_filters(filters, 3, 1, 1);
}

/* With threads, the reference was the first block before the filters in front of delta were undone. */
const char *delta_after_a_filter_is_wrong_with_threads(void) {
  uint8_t filters[] = {BLOSC_SHUFFLE, BLOSC_DELTA};
  return pass_filters(filters, 2, 4, 300);
}

static int add_one(blosc2_postfilter_params *block) {
  for (int i = 0; i < block->size; i++) block->output[i] = (uint8_t)(block->input[i] + 1);
  return 0;
}

static blosc2_context *new_dctx_with(blosc2_postfilter_fn postfilter) {
  static blosc2_postfilter_params postparams;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  dparams.postfilter = postfilter;
  dparams.postparams = &postparams;
  return blosc2_create_dctx(dparams);
}

/* The reference was what the postfilter had made of the first block. */
const char *delta_before_a_postfilter_is_wrong(void) {
  static uint8_t chunk[ROOM];
  static int32_t words[ITEMS], back[ITEMS];
  int len = number_chunk(BLOSC_DELTA, words, chunk);
  blosc2_context *context = new_dctx_with(add_one);
  int read = blosc2_decompress_ctx(context, chunk, len, back, sizeof back);
  blosc2_free_ctx(context);
  WRONG_IF(read != sizeof back, "the chunk cannot be read");
  for (size_t i = 0; i < sizeof back; i++) {
    uint8_t expected = (uint8_t)(((uint8_t *)words)[i] + 1);
    WRONG_IF(((uint8_t *)back)[i] != expected, "other data comes back");
  }
  return NULL;
}

static int subtract_one(blosc2_prefilter_params *block) {
  for (int i = 0; i < block->output_size; i++) block->output[i] = (uint8_t)(block->input[i] - 1);
  return 0;
}

/* The reference was the first block of the source, but the prefilter had changed it. */
const char *delta_after_a_prefilter_is_wrong(void) {
  static uint8_t source[4 * ITEMS], chunk[ROOM], back[4 * ITEMS];
  for (size_t i = 0; i < sizeof source; i++) source[i] = (uint8_t)(i / 1000);
  blosc2_prefilter_params preparams = {0};
  blosc2_cparams cparams = params(4, BLOSC_DELTA);
  cparams.prefilter = subtract_one;
  cparams.preparams = &preparams;
  int len = pack(cparams, source, sizeof source, chunk, sizeof chunk);
  if (len <= 0) return NULL;
  int read = unpack(1, chunk, len, back, sizeof back);
  WRONG_IF(read != sizeof back, "the chunk cannot be read");
  for (size_t i = 0; i < sizeof back; i++) {
    WRONG_IF(back[i] != (uint8_t)(source[i] - 1), "other data comes back");
  }
  return NULL;
}

/* Values that are not there are no data for a postfilter: it saw what was in memory. */
const char *postfilter_sees_uninitialised_values(void) {
  enum { LEN = 8192 };
  static uint8_t source[LEN], chunk[LEN + BLOSC2_MAX_OVERHEAD], back[LEN];
  fill_noise(source, LEN, 1);
  blosc2_context *context = new_dctx_with(add_one);
  int len = pack(params(1, BLOSC_NOFILTER), source, LEN, chunk, sizeof chunk);
  blosc2_decompress_ctx(context, chunk, len, back, LEN);
  blosc2_chunk_uninit(params(1, BLOSC_NOFILTER), LEN, chunk, sizeof chunk);
  int read = blosc2_decompress_ctx(context, chunk, BLOSC_EXTENDED_HEADER_LENGTH, back, LEN);
  blosc2_free_ctx(context);
  WRONG_IF(read != LEN, "the chunk cannot be read");
  for (int i = 0; i < LEN; i++) WRONG_IF(back[i] != 1, "the chunk before comes back");
  return NULL;
}

/* A chunk that repeats a value of 300 bytes has items of one byte. */
enum { LONG_VALUE = 300, LONG_VALUES = 1000 };
static int long_value_chunk(uint8_t *value, uint8_t *chunk, int32_t room) {
  fill_noise(value, LONG_VALUE, 1);
  blosc2_cparams cparams = params(LONG_VALUE, BLOSC_NOFILTER);
  cparams.blocksize = 200;
  return blosc2_chunk_repeatval(cparams, LONG_VALUE * LONG_VALUES, chunk, room, value);
}

/* Its blocks, here of 200 bytes, could not be filled where they were no whole number of values. */
const char *long_value_cannot_be_read(void) {
  static uint8_t value[LONG_VALUE], chunk[1000], back[LONG_VALUE * LONG_VALUES];
  int len = long_value_chunk(value, chunk, sizeof chunk);
  WRONG_IF(unpack(1, chunk, len, back, sizeof back) != sizeof back, "the chunk cannot be read");
  for (size_t i = 0; i < sizeof back; i++) {
    WRONG_IF(back[i] != value[i % LONG_VALUE], "other data comes back");
  }
  return NULL;
}

/* And items of it were taken from the start of the value. */
const char *items_of_a_long_value_are_wrong(void) {
  static uint8_t value[LONG_VALUE], chunk[1000], back[LONG_VALUE];
  int len = long_value_chunk(value, chunk, sizeof chunk);
  blosc2_context *context = new_dctx(1, NULL);
  int read = blosc2_getitem_ctx(context, chunk, len, 100, LONG_VALUE, back, sizeof back);
  blosc2_free_ctx(context);
  WRONG_IF(read != LONG_VALUE, "the items cannot be read");
  for (int i = 0; i < LONG_VALUE; i++) {
    WRONG_IF(back[i] != value[(100 + i) % LONG_VALUE], "other items come back");
  }
  return NULL;
}

/* Compresses blocks of variable length into `room` bytes, and reads what comes of it. */
static const char *pack_variable(int nblocks, int32_t len, int clevel, bool dictionary, bool noise,
                                 int32_t room) {
  uint8_t blocks[40960];
  const void *sources[10];
  int32_t sizes[10];
  for (int i = 0; i < (int)sizeof blocks; i++) blocks[i] = (uint8_t)(i / 64 % 100);
  if (noise) fill_noise(blocks, sizeof blocks, 3);
  for (int i = 0; i < nblocks; i++) sources[i] = blocks + i * len, sizes[i] = len;
  blosc2_cparams cparams = params(1, BLOSC_NOFILTER);
  if (dictionary) cparams.compcode = BLOSC_ZSTD;
  if (clevel == 0) cparams.compcode = BLOSC_BLOSCLZ;
  cparams.use_dict = dictionary;
  cparams.clevel = (uint8_t)clevel;
  uint8_t *chunk = malloc((size_t)room);
  blosc2_context *context = blosc2_create_cctx(cparams);
  int written = blosc2_vlcompress_ctx(context, sources, sizes, nblocks, chunk, room);
  blosc2_free_ctx(context);
  uint8_t back[sizeof blocks];
  int read = written <= 0 ? written : unpack(1, chunk, written, back, sizeof back);
  free(chunk);
  WRONG_IF(written > 0 && (read != nblocks * len || memcmp(blocks, back, (size_t)read) != 0),
           "other data comes back");
  WRONG_IF(written <= 0 && room > 2 * nblocks * len + 1000, "there is room, but no chunk");
  return NULL;
}

/* Blocks of variable length that do not fit were copied from a source that is not there. */
const char *variable_blocks_without_room_read_null(void) {
  return pack_variable(4, 4096, 5, false, true, 4 * 4096 + BLOSC2_MAX_OVERHEAD);
}

const char *variable_blocks_without_room_for_their_starts_read_null(void) {
  return pack_variable(10, 1, 5, false, true, 10 + BLOSC2_MAX_OVERHEAD);
}

const char *variable_blocks_without_room_for_samples_read_on(void) {
  return pack_variable(10, 4096, 5, true, false, 20000);
}

/* At level 0 the codecs are not to be called. */
const char *variable_blocks_at_level_zero_crash(void) {
  return pack_variable(4, 4096, 0, false, false, 50000);
}

/* Items of 8 bytes in blocks of 4: 8 streams of no bytes. */
const char *blocks_shorter_than_an_item_are_lost(void) {
  uint8_t source[1000], back[1000];
  static uint8_t chunk[100000];
  fill_noise(source, sizeof source, 1);
  blosc2_cparams cparams = params(8, BLOSC_NOFILTER);
  cparams.blocksize = 4;
  cparams.splitmode = BLOSC_ALWAYS_SPLIT;
  int len = pack(cparams, source, sizeof source, chunk, sizeof chunk);
  WRONG_IF(len <= 0, "there is room, but no chunk");
  int read = unpack(1, chunk, len, back, sizeof back);
  WRONG_IF(read != sizeof back || memcmp(source, back, sizeof back) != 0,
           "other data comes back");
  return NULL;
}

/* A block of 8 bytes in 3 streams of 2 leaves 2 bytes of the destination as they were. */
const char *split_with_rest_leaves_bytes_unwritten(void) {
  enum { STREAMS = BLOSC_EXTENDED_HEADER_LENGTH + 4 };
  uint8_t chunk[STREAMS + 3 * 4] = {0}, back[8];
  put_header(chunk, BLOSC2_VERSION_FORMAT_STABLE, EXTENDED, 3, 8, 8, sizeof chunk);
  put32(chunk + BLOSC_EXTENDED_HEADER_LENGTH, STREAMS);
  memset(back, 0xAB, sizeof back);
  int read = unpack(1, chunk, sizeof chunk, back, sizeof back);
  WRONG_IF(read == sizeof back && back[7] == 0xAB, "success, but the end is unwritten");
  WRONG_IF(read >= 0 && read != sizeof back, "success, but not all of it");
  return NULL;
}

/* A chunk without values is "decompressed" by leaving the destination alone. */
const char *uninit_chunk_leaves_the_destination(void) {
  uint8_t chunk[BLOSC_EXTENDED_HEADER_LENGTH], back[100];
  blosc2_chunk_uninit(params(1, BLOSC_NOFILTER), sizeof back, chunk, sizeof chunk);
  memset(back, 0xAB, sizeof back);
  int read = unpack(1, chunk, sizeof chunk, back, sizeof back);
  WRONG_IF(read == sizeof back && back[5] == 0xAB, "success, but nothing is written");
  return NULL;
}

/* So are the blocks that a mask leaves out. */
const char *masked_blocks_leave_the_destination(void) {
  static uint8_t chunk[ROOM];
  static int32_t words[ITEMS], back[ITEMS];
  int len = number_chunk(BLOSC_NOFILTER, words, chunk);
  bool mask[NUMBER_BLOCKS] = {false, true};
  memset(back, 0xAB, sizeof back);
  blosc2_context *context = new_dctx(1, NULL);
  blosc2_set_maskout(context, mask, NUMBER_BLOCKS);
  int read = blosc2_decompress_ctx(context, chunk, len, back, sizeof back);
  blosc2_free_ctx(context);
  WRONG_IF(read == sizeof back && ((uint8_t *)back)[10000] == 0xAB,
           "success, but not all is written");
  return NULL;
}

/* A header that announces -16 bytes. */
const char *negative_length_is_decompressed(void) {
  uint8_t chunk[16] = {0}, back[100];
  put_header(chunk, BLOSC1_VERSION_FORMAT, NOT_SPLIT, 1, -16, 100, 16);
  int read = unpack(1, chunk, sizeof chunk, back, sizeof back);
  WRONG_IF(read >= 0, "a chunk of -16 bytes is read");
  return NULL;
}

/* A header that announces 5 blocks of variable length, but no bytes. */
static void put_empty_variable(uint8_t *chunk) {
  put_header(chunk, BLOSC2_VERSION_FORMAT_VL_BLOCKS, EXTENDED | NOT_SPLIT, 1, 0, 5, 32);
  chunk[BLOSC2_CHUNK_BLOSC2_FLAGS2] = BLOSC2_VL_BLOCKS;
}

const char *empty_variable_blocks_divide_by_zero(void) {
  uint8_t chunk[32] = {0}, back[64];
  put_empty_variable(chunk);
  WRONG_IF(unpack(1, chunk, sizeof chunk, back, sizeof back) > 0, "no bytes are read as some");
  return NULL;
}

const char *empty_variable_blocks_divide_by_zero_on_threads(void) {
  uint8_t chunk[32] = {0}, back[64];
  put_empty_variable(chunk);
  WRONG_IF(unpack(4, chunk, sizeof chunk, back, sizeof back) > 0, "no bytes are read as some");
  return NULL;
}

const char *empty_variable_blocks_read_null(void) {
  uint8_t chunk[32] = {0};
  put_empty_variable(chunk);
  void *parts[8];
  int32_t sizes[8];
  blosc2_context *context = new_dctx(1, NULL);
  int read = blosc2_vldecompress_ctx(context, chunk, sizeof chunk, parts, sizes, 8);
  blosc2_free_ctx(context);
  WRONG_IF(read > 0, "no bytes are read as some");
  return NULL;
}

const char *single_empty_variable_block_reads_null(void) {
  uint8_t chunk[32] = {0}, *part = NULL;
  int32_t size;
  put_empty_variable(chunk);
  blosc2_context *context = new_dctx(1, NULL);
  int read = blosc2_vldecompress_block_ctx(context, chunk, sizeof chunk, 0, &part, &size);
  blosc2_free_ctx(context);
  WRONG_IF(read >= 0, "no bytes are read as some");
  return NULL;
}

/* The header of Blosc1 has no special type: that of the chunk before was taken. */
const char *short_header_takes_the_last_special_type(void) {
  uint8_t special[33], back[20];
  int value = 7;
  blosc2_chunk_repeatval(params(1, BLOSC_NOFILTER), 100, special, sizeof special, &value);
  uint8_t *chunk = malloc(36);
  put_header(chunk, BLOSC1_VERSION_FORMAT, BLOSC_MEMCPYED, 1, 20, 20, 36);
  fill_noise(chunk + 16, 20, 3);
  blosc2_context *context = new_dctx(1, NULL);
  blosc2_getitem_ctx(context, special, sizeof special, 0, 4, back, sizeof back);
  int read = blosc2_getitem_ctx(context, chunk, 36, 0, 20, back, sizeof back);
  blosc2_free_ctx(context);
  bool same = read == 20 && memcmp(back, chunk + 16, 20) == 0;
  free(chunk);
  WRONG_IF(!same, "other data comes back");
  return NULL;
}

/* Nor has it parameters of filters. */
const char *short_header_takes_the_last_filter_parameters(void) {
  static uint8_t grouped[ROOM];
  static int32_t words[ITEMS], back[ITEMS];
  blosc2_cparams cparams = params(4, BLOSC_SHUFFLE);
  cparams.filters_meta[BLOSC2_MAX_FILTERS - 1] = 2;
  int len = pack(cparams, words, sizeof words, grouped, sizeof grouped);
  uint8_t source[32], chunk[16 + 4 + 4 + 32];
  fill_noise(source, sizeof source, 3);
  put_header(chunk, BLOSC1_VERSION_FORMAT, BLOSC_DOSHUFFLE | NOT_SPLIT, 4, 32, 32, sizeof chunk);
  put32(chunk + 16, 20);
  put32(chunk + 20, 32);
  blosc2_shuffle(4, 32, source, chunk + 24);
  blosc2_context *context = new_dctx(1, NULL);
  blosc2_decompress_ctx(context, grouped, len, back, sizeof back);
  int read = blosc2_decompress_ctx(context, chunk, sizeof chunk, back, sizeof back);
  blosc2_free_ctx(context);
  WRONG_IF(read != 32 || memcmp(back, source, 32) != 0, "other data comes back");
  return NULL;
}

/* Undoing the bitshuffle of Blosc1 forgot what follows the last whole item. */
const char *bitshuffle_of_blosc1_loses_the_end(void) {
  uint8_t source[34], chunk[16 + 4 + 4 + 34], back[34] = {0};
  fill_noise(source, sizeof source, 3);
  put_header(chunk, BLOSC1_VERSION_FORMAT, BLOSC_DOBITSHUFFLE | NOT_SPLIT, 4, 34, 34, sizeof chunk);
  put32(chunk + 16, 20);
  put32(chunk + 20, 34);
  blosc2_bitshuffle(4, 32, source, chunk + 24);
  memcpy(chunk + 24 + 32, source + 32, 2);
  int read = unpack(1, chunk, sizeof chunk, back, sizeof back);
  WRONG_IF(read != 34 || memcmp(back, source, 34) != 0, "the last two bytes are lost");
  return NULL;
}

/* A repeated value is as long as the header says, and a lazy bit turned off the check of that. */
const char *lazy_special_chunk_is_read_past_its_end(void) {
  uint8_t *chunk = calloc(1, 33), back[200];
  put_header(chunk, BLOSC2_VERSION_FORMAT_STABLE, EXTENDED, 1, 200, 200, 32 + 200);
  chunk[BLOSC2_CHUNK_BLOSC2_FLAGS] = BLOSC2_SPECIAL_VALUE << 4 | LAZY;
  int read = unpack(1, chunk, 33, back, sizeof back);
  free(chunk);
  WRONG_IF(read >= 0, "a chunk that is cut short is read");
  return NULL;
}

/* A chunk that claims to be lazy and to have a dictionary: where that is, its trailer would say. */
const char *lazy_trailer_is_read_past_its_end(void) {
  uint8_t *chunk = calloc(1, 36), back[200];
  put_header(chunk, BLOSC2_VERSION_FORMAT_STABLE, EXTENDED | NOT_SPLIT, 1, 200, 200, 1000);
  chunk[BLOSC2_CHUNK_BLOSC2_FLAGS] = BLOSC2_USEDICT | LAZY;
  blosc2_schunk *schunk = new_schunk(true, NULL, 1);
  blosc2_context *context = new_dctx(1, schunk);
  int read = blosc2_decompress_ctx(context, chunk, 36, back, sizeof back);
  blosc2_free_ctx(context);
  blosc2_schunk_free(schunk);
  free(chunk);
  WRONG_IF(read >= 0, "a chunk that is cut short is read");
  return NULL;
}

/* The length of a match overflows after 8.4 million bytes of 255. */
const char *blosclz_match_length_overflows(void) {
  enum { RUN = 8421506, STREAM = 3 + RUN + 3, LEN = 40 + STREAM };
  uint8_t *chunk = calloc(1, LEN), *stream = chunk + 40, *back = malloc(65536);
  put_header(chunk, BLOSC2_VERSION_FORMAT_STABLE, EXTENDED | NOT_SPLIT, 1, 65536, 65536, LEN);
  put32(chunk + 32, 36);
  put32(chunk + 36, STREAM);
  stream[2] = 0xE0; /* after one byte as it is: a match, whose length the next bytes tell */
  memset(stream + 3, 255, RUN);
  int read = unpack(1, chunk, LEN, back, 65536);
  free(chunk);
  free(back);
  WRONG_IF(read >= 0, "the endless match is read");
  return NULL;
}

/* A null string is copied. */
const char *unknown_library_is_null(void) {
  char *library = NULL, *version = NULL;
  int code = blosc2_get_complib_info("unknown", &library, &version);
  free(library);
  free(version);
  WRONG_IF(code >= 0, "an unknown codec has a library");
  return NULL;
}

/* Items of no bytes. */
const char *typesize_zero_divides_by_zero(void) {
  uint8_t source[100] = {1}, chunk[200];
  WRONG_IF(pack(params(0, BLOSC_NOFILTER), source, sizeof source, chunk, sizeof chunk) > 0,
           "items of no bytes are compressed");
  return NULL;
}

const char *typesize_zero_of_zeros_divides_by_zero(void) {
  uint8_t chunk[200];
  WRONG_IF(blosc2_chunk_zeros(params(0, 0), 100, chunk, sizeof chunk) > 0, "a chunk is made");
  return NULL;
}

const char *typesize_zero_of_nans_divides_by_zero(void) {
  uint8_t chunk[200];
  WRONG_IF(blosc2_chunk_nans(params(0, 0), 100, chunk, sizeof chunk) > 0, "a chunk is made");
  return NULL;
}

const char *typesize_zero_of_uninit_divides_by_zero(void) {
  uint8_t chunk[200];
  WRONG_IF(blosc2_chunk_uninit(params(0, 0), 100, chunk, sizeof chunk) > 0, "a chunk is made");
  return NULL;
}

const char *typesize_zero_of_a_value_divides_by_zero(void) {
  uint8_t chunk[200];
  int code = blosc2_chunk_repeatval(params(0, 0), 100, chunk, sizeof chunk, "value");
  WRONG_IF(code > 0, "a chunk is made");
  return NULL;
}

/* A source of -5 bytes gives a chunk of -5 bytes. */
const char *negative_source_is_compressed(void) {
  uint8_t source[100] = {1}, chunk[200];
  WRONG_IF(pack(params(1, BLOSC_NOFILTER), source, -5, chunk, sizeof chunk) > 0,
           "-5 bytes are compressed");
  return NULL;
}

/* Zeros and 3 bytes that are no whole item: these have to come back, whatever the filter does. */
static const char *filter_rest(uint8_t filter, uint8_t meta) {
  uint8_t source[4003] = {0};
  memcpy(source + 4000, "\1\2\3", 3);
  blosc2_cparams cparams = params(4, filter);
  cparams.filters_meta[BLOSC2_MAX_FILTERS - 1] = meta;
  WRONG_IF(!survives(cparams, source, sizeof source), "the end is lost");
  return NULL;
}

const char *delta_loses_the_end(void) {
  return filter_rest(BLOSC_DELTA, 0);
}

const char *trunc_prec_loses_the_end(void) {
  return filter_rest(BLOSC_TRUNC_PREC, 10);
}

const char *int_trunc_loses_the_end(void) {
  return filter_rest(BLOSC_FILTER_INT_TRUNC, 10);
}

const char *first_bytedelta_loses_the_end(void) {
  return filter_rest(BLOSC_FILTER_BYTEDELTA_BUGGY, 4);
}

/* Blocks of fewer bytes than an item: delta took a whole one from each. */
const char *delta_reads_past_a_short_block(void) {
  uint8_t chunk[200], back[20];
  uint8_t *bytes = exact("0123456789", 10);
  const void *sources[1] = {bytes + 9};
  int32_t size = 1;
  blosc2_cparams cparams = params(8, BLOSC_DELTA);
  blosc2_context *context = blosc2_create_cctx(cparams);
  int len = blosc2_vlcompress_ctx(context, sources, &size, 1, chunk, sizeof chunk);
  blosc2_free_ctx(context);
  free(bytes);
  WRONG_IF(len <= 0, "the block cannot be compressed");
  WRONG_IF(unpack(1, chunk, len, back, sizeof back) != 1 || back[0] != '9',
           "another byte comes back");
  return NULL;
}

/* The context behind the functions without one took over the flags of the last chunk it read. */
const char *global_context_takes_over_a_dictionary(void) {
  static int32_t words[ITEMS], back[ITEMS];
  uint8_t source[1000] = {1}, small[2000];
  int len;
  uint8_t *chunk = dictionary_chunk(BLOSC_LZ4, words, &len);
  int read = blosc2_decompress(chunk, len, back, sizeof back);
  free(chunk);
  WRONG_IF(read != sizeof back, "the chunk cannot be read");
  int written = blosc2_compress(5, BLOSC_SHUFFLE, 4, source, sizeof source, small, sizeof small);
  WRONG_IF(written <= 0, "nothing can be compressed any more");
  return NULL;
}

#ifndef _WIN32
static const char *compress_with_variables(void) {
  static uint8_t chunk[ROOM];
  static int32_t words[ITEMS];
  setenv("BLOSC_TYPESIZE", "7", 1);
  setenv("BLOSC_CLEVEL", "0", 1);
  setenv("BLOSC_COMPRESSOR", "blosclz", 1);
  int len = number_chunk(BLOSC_NOFILTER, words, chunk);
  WRONG_IF(len <= 0, "nothing is compressed");
  WRONG_IF(chunk[BLOSC2_CHUNK_TYPESIZE] != 4, "the typesize is another");
  WRONG_IF(chunk[BLOSC2_CHUNK_FLAGS] & BLOSC_MEMCPYED, "the level is another");
  WRONG_IF(chunk[BLOSC2_CHUNK_FLAGS] >> 5 != BLOSC_LZ4_FORMAT, "the codec is another");
  return NULL;
}

/* What a program asks for has to win over what happens to be in its environment. */
const char *environment_overrides_the_parameters(void) { return in_child(compress_with_variables); }

static const char *compress_for_blosc1(void) {
  static int32_t words[ITEMS];
  static uint8_t chunk[ROOM];
  setenv("BLOSC_BLOSC1_COMPAT", "1", 1);
  int len = blosc2_compress(5, BLOSC_SHUFFLE, 4, words, sizeof words, chunk, sizeof chunk);
  WRONG_IF(len <= 0, "the source cannot be compressed");
  bool is_short = (chunk[BLOSC2_CHUNK_FLAGS] & EXTENDED) != EXTENDED;
  WRONG_IF(is_short && chunk[BLOSC2_CHUNK_VERSION] != BLOSC1_VERSION_FORMAT,
           "Blosc1 takes the chunk for one from the future");
  return NULL;
}

/* The header of Blosc1 with the version of Blosc2. */
const char *chunk_for_blosc1_has_another_version(void) { return in_child(compress_for_blosc1); }

static void write_script(const char *path, const char *mark) {
  FILE *file = fopen(path, "w");
  fprintf(file, "#!/bin/sh\necho started > %s\n", mark);
  fclose(file);
  chmod(path, 0700);
}

static const char *decompress_with_python_in_path(void) {
  char folder[200], python[220], python3[220], mark[220], search[4096];
  WRONG_IF(!new_folder(folder), "no folder");
  snprintf(python, sizeof python, "%s/python", folder);
  snprintf(python3, sizeof python3, "%s/python3", folder);
  snprintf(mark, sizeof mark, "%s/mark", folder);
  write_script(python, mark);
  write_script(python3, mark);
  snprintf(search, sizeof search, "%s:%s", folder, getenv("PATH"));
  setenv("PATH", search, 1);

  uint8_t chunk[60] = {0}, back[100];
  put_header(chunk, BLOSC2_VERSION_FORMAT_STABLE, EXTENDED | NOT_SPLIT | BLOSC_UDCODEC_FORMAT << 5, 1,
             sizeof back, sizeof back, sizeof chunk);
  chunk[BLOSC2_CHUNK_FILTER_CODES + 6] = BLOSC_CODEC_OPENHTJ2K;
  put32(chunk + 32, 36);
  put32(chunk + 36, 20);
  int read = unpack(1, chunk, sizeof chunk, back, sizeof back);

  bool started = access(mark, F_OK) == 0;
  unlink(mark);
  unlink(python3);
  unlink(python);
  rmdir(folder);
  WRONG_IF(started, "a program was started");
  WRONG_IF(read >= 0, "the chunk is read");
  return NULL;
}

/* The number of a codec in a chunk makes the library look for a plugin with the help of Python. */
const char *chunk_starts_python(void) { return in_child(decompress_with_python_in_path); }

/* A child has no threads but the one that forked; the library waits for those of the parent. */
const char *child_waits_for_threads_of_its_parent(void) {
  static uint8_t chunk[ROOM];
  static int32_t words[ITEMS];
  blosc2_cparams cparams = params(4, BLOSC_SHUFFLE);
  cparams.nthreads = 4;
  blosc2_context *context = blosc2_create_cctx(cparams);
  blosc2_compress_ctx(context, words, sizeof words, chunk, sizeof chunk);
  pid_t child = fork();
  if (child == 0) {
    pack(cparams, words, sizeof words, chunk, sizeof chunk);
    _exit(0);
  }
  bool ended = false;
  for (int i = 0; i < 500 && !ended; i++) {
    usleep(10000);
    ended = waitpid(child, NULL, WNOHANG) == child;
  }
  if (!ended) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
  }
  blosc2_free_ctx(context);
  WRONG_IF(!ended, "the child hangs");
  return NULL;
}
#endif

static uint8_t nested_chunk[ROOM];
static int32_t nested_words[ITEMS];
static int nested_len;

static int decompress_in_postfilter(blosc2_postfilter_params *block) {
  int32_t *back = malloc(sizeof nested_words);
  int read = unpack(4, nested_chunk, nested_len, back, sizeof nested_words);
  free(back);
  memcpy(block->output, block->input, (size_t)block->size);
  return read < 0 ? read : 0;
}

/* All threads of the pool run callbacks, which wait for a free thread of the pool. */
const char *nested_call_waits_for_its_own_thread(void) {
  static int32_t back[ITEMS];
  nested_len = number_chunk(BLOSC_NOFILTER, nested_words, nested_chunk);
  blosc2_postfilter_params postparams = {0};
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  dparams.nthreads = 4;
  dparams.postfilter = decompress_in_postfilter;
  dparams.postparams = &postparams;
  blosc2_context *context = blosc2_create_dctx(dparams);
  int read = blosc2_decompress_ctx(context, nested_chunk, nested_len, back, sizeof back);
  blosc2_free_ctx(context);
  WRONG_IF(read != sizeof back || memcmp(back, nested_words, sizeof back) != 0, "other data comes back");
  return NULL;
}

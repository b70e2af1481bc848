/* Hazards of arrays (b2nd.c) and of the plugins that look at their shapes. */
#include "hazards.h"

#include <blosc2/codecs-registry.h>
#include <blosc2/filters-registry.h>
#include <stdio.h>

static blosc2_cparams plain(int32_t typesize) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.typesize = typesize;
  memset(cparams.filters, 0, sizeof cparams.filters);
  return cparams;
}

static b2nd_context_t *new_context(blosc2_cparams cparams, int8_t ndim, const int64_t *shape,
                                   const int32_t *chunks, const int32_t *blocks) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  storage.cparams = &cparams;
  return b2nd_create_ctx(&storage, ndim, shape, chunks, blocks, NULL, 0, NULL, 0);
}

/* An array in memory: of zeros, or of `items`. NULL when it cannot be made. */
static b2nd_array_t *new_array(blosc2_cparams cparams, int8_t ndim, const int64_t *shape,
                               const int32_t *chunks, const int32_t *blocks, const void *items,
                               int64_t len) {
  b2nd_context_t *context = new_context(cparams, ndim, shape, chunks, blocks);
  b2nd_array_t *array = NULL;
  int code = items == NULL ? b2nd_zeros(context, &array) : b2nd_from_cbuffer(context, &array, items, len);
  b2nd_free_ctx(context);
  return code < 0 ? NULL : array;
}

/* 10 x 10 items of 4 bytes in four chunks: item i is i. */
static b2nd_array_t *hundred(void) {
  int32_t items[100];
  for (int i = 0; i < 100; i++) items[i] = i;
  return new_array(plain(4), 2, (int64_t[]){10, 10}, (int32_t[]){5, 5}, (int32_t[]){5, 5}, items,
                   sizeof items);
}

/* A super-chunk that says that it is an array, whatever it holds. */
static blosc2_schunk *claimed_array(blosc2_cparams cparams, int8_t ndim, const int64_t *shape,
                                    const int32_t *chunks, const int32_t *blocks) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  storage.cparams = &cparams;
  blosc2_schunk *schunk = blosc2_schunk_new(&storage);
  uint8_t *meta;
  int32_t len = b2nd_serialize_meta(ndim, shape, chunks, blocks, NULL, 0, &meta);
  blosc2_meta_add(schunk, "b2nd", meta, len);
  free(meta);
  return schunk;
}

/* ---- Plugins ---- */

/* The product of the sides of a block, 2^32 + 65536, overflows to the length of the source. */
static const char *ndlz_reads_behind(uint8_t cell) {
  static uint8_t source[65536];
  fill_noise(source, sizeof source, 1);
  blosc2_cparams cparams = plain(1);
  cparams.compcode = BLOSC_CODEC_NDLZ;
  cparams.compcode_meta = cell;
  cparams.blocksize = sizeof source;
  int32_t sides[] = {65537, 65536};
  blosc2_schunk *schunk = claimed_array(cparams, 2, (int64_t[]){65537, 65536}, sides, sides);
  uint8_t *copy = malloc(sizeof source);
  memcpy(copy, source, sizeof source);
  int64_t nchunks = blosc2_schunk_append_buffer(schunk, copy, sizeof source);
  free(copy);
  blosc2_schunk_free(schunk);
  WRONG_IF(nchunks >= 0, "a block of another shape was compressed");
  return NULL;
}

const char *ndlz_reads_behind_the_source(void) { return ndlz_reads_behind(4); }
const char *ndlz_of_8_reads_behind_the_source(void) { return ndlz_reads_behind(8); }

/* The distance to repeated rows is raised by 3 after it was read, and overflows from 65533 on. */
const char *ndlz_repeats_the_wrong_rows(void) {
  enum { WIDTH = 32768, CELLS_BACK = 3855 };
  static uint8_t items[4 * WIDTH], found[4 * WIDTH];
  for (int row = 0; row < 4; row++) {
    /* Cells without a match take 17 bytes each; later cells of zeros make up for that. */
    fill_noise(items + row * WIDTH, 4 * (CELLS_BACK + 240), row + 1);
    if (row < 2) memcpy(items + row * WIDTH + 4 * CELLS_BACK, items + row * WIDTH, 4 * 240);
  }
  blosc2_cparams cparams = plain(1);
  cparams.compcode = BLOSC_CODEC_NDLZ;
  cparams.compcode_meta = 4;
  int32_t sides[] = {4, WIDTH};
  b2nd_array_t *array = new_array(cparams, 2, (int64_t[]){4, WIDTH}, sides, sides, items, sizeof items);
  WRONG_IF(array == NULL, "the array cannot be made");
  int code = b2nd_to_cbuffer(array, found, sizeof found);
  b2nd_free(array);
  WRONG_IF(code < 0, "the array cannot be read");
  WRONG_IF(memcmp(items, found, sizeof items) != 0, "other items came out");
  return NULL;
}

/* The cells lie where they would if all sides were as the first, which is cut down to the block. */
const char *ndmean_misplaces_cells(void) {
  float items[200], found[200];
  for (int i = 0; i < 200; i++) items[i] = (float)(i % 100 / 4);
  blosc2_cparams cparams = plain(4);
  cparams.filters[5] = BLOSC_FILTER_NDMEAN;
  cparams.filters_meta[5] = 4;
  int32_t sides[] = {2, 100};
  b2nd_array_t *array = new_array(cparams, 2, (int64_t[]){2, 100}, sides, sides, items, sizeof items);
  WRONG_IF(array == NULL, "the array cannot be made");
  int code = b2nd_to_cbuffer(array, found, sizeof found);
  b2nd_free(array);
  WRONG_IF(code < 0, "the array cannot be read");
  WRONG_IF(memcmp(items, found, sizeof items) != 0, "the mean of equal items is another");
  return NULL;
}

/* ---- ZFP ---- */

enum { ZFP_SIDE = 24, ZFP_ITEMS = ZFP_SIDE * ZFP_SIDE };

/* 24 x 24 floats in nine blocks of one chunk. */
static b2nd_array_t *zfp_array(int codec, uint8_t meta, float scale) {
  float items[ZFP_ITEMS];
  for (int i = 0; i < ZFP_ITEMS; i++) items[i] = (float)i * scale;
  blosc2_cparams cparams = plain(4);
  cparams.compcode = codec;
  cparams.compcode_meta = meta;
  cparams.splitmode = BLOSC_NEVER_SPLIT;
  int32_t chunks[] = {ZFP_SIDE, ZFP_SIDE}, blocks[] = {8, 8};
  return new_array(cparams, 2, (int64_t[]){ZFP_SIDE, ZFP_SIDE}, chunks, blocks, items, sizeof items);
}

/* Puts another shape of the blocks into the metalayer. */
static void put_blocks(blosc2_schunk *schunk, int8_t ndim, const int32_t *blocks) {
  int64_t shape[16];
  int32_t chunks[16];
  for (int i = 0; i < 16; i++) shape[i] = chunks[i] = ZFP_SIDE;
  uint8_t *meta;
  int32_t len = b2nd_serialize_meta(ndim, shape, chunks, blocks, NULL, 0, &meta);
  blosc2_metalayer *layer = schunk->metalayers[blosc2_meta_exists(schunk, "b2nd")];
  free(layer->content);
  layer->content = meta;
  layer->content_len = len;
}

/* The decoder is not told where its input ends. */
const char *zfp_reads_behind_a_block(void) {
  b2nd_array_t *array = zfp_array(BLOSC_CODEC_ZFP_FIXED_ACCURACY, (uint8_t)-3, 1.1f);
  WRONG_IF(array == NULL, "the array cannot be made");
  uint8_t *stored;
  bool needs_free;
  int len = blosc2_schunk_get_chunk(array->sc, 0, &stored, &needs_free);
  uint8_t *chunk = malloc(len);
  memcpy(chunk, stored, len);
  /* The stream of the last block follows its length. */
  int32_t start;
  memcpy(&start, chunk + BLOSC_EXTENDED_HEADER_LENGTH + 8 * sizeof start, sizeof start);
  fill_noise(chunk + start + 4, len - start - 4, 1);
  float found[ZFP_ITEMS];
  int code = blosc2_decompress_ctx(array->sc->dctx, chunk, len, found, sizeof found);
  free(chunk);
  if (needs_free) free(stored);
  b2nd_free(array);
  WRONG_IF(code >= 0, "noise was decompressed");
  return NULL;
}

/* The room for the output is that of another rate. */
const char *zfp_writes_behind_its_output(void) {
  b2nd_array_t *array = zfp_array(BLOSC_CODEC_ZFP_FIXED_RATE, 255, 1.1f);
  if (array != NULL) b2nd_free(array);
  return NULL;
}

/* Blocks that are smaller in the metalayer than they are. */
const char *zfp_leaves_a_block_unwritten(void) {
  b2nd_array_t *array = zfp_array(BLOSC_CODEC_ZFP_FIXED_ACCURACY, (uint8_t)-3, 1.1f);
  WRONG_IF(array == NULL, "the array cannot be made");
  put_blocks(array->sc, 2, (int32_t[]){4, 4});
  float found[ZFP_ITEMS];
  int code = blosc2_schunk_decompress_chunk(array->sc, 0, found, sizeof found);
  b2nd_free(array);
  WRONG_IF(code >= 0, "16 items out of 64 passed for a block");
  return NULL;
}

static const char *zfp_items(b2nd_array_t *array, int most, bool compare) {
  float all[ZFP_ITEMS];
  uint8_t *chunk;
  bool needs_free;
  const char *wrong = NULL;
  int len = blosc2_schunk_get_chunk(array->sc, 0, &chunk, &needs_free);
  if (compare && blosc2_schunk_decompress_chunk(array->sc, 0, all, sizeof all) < 0) {
    wrong = "the chunk cannot be read";
  }
  for (int start = 0; start < ZFP_ITEMS && wrong == NULL; start++) {
    for (int count = 1; count <= most && start + count <= ZFP_ITEMS && wrong == NULL; count++) {
      float *found = malloc(count * sizeof *found);
      int code = blosc2_getitem_ctx(array->sc->dctx, chunk, len, start, count, found,
                                    (int)(count * sizeof *found));
      if (compare && code < 0) wrong = "items cannot be read";
      if (compare && code >= 0 && memcmp(found, all + start, count * sizeof *found) != 0) {
        wrong = "other items came out";
      }
      if (!compare && code >= 0) wrong = "items of blocks of another shape were read";
      free(found);
    }
  }
  if (needs_free) free(chunk);
  b2nd_free(array);
  return wrong;
}

/* A few items are taken out of a cell, whose rows do not follow each other in the block. */
const char *zfp_takes_the_wrong_items(void) {
  b2nd_array_t *array = zfp_array(BLOSC_CODEC_ZFP_FIXED_RATE, 40, 1.1f);
  WRONG_IF(array == NULL, "the array cannot be made");
  return zfp_items(array, 12, true);
}

/* The shape is taken from the metalayer as it is. */
const char *zfp_takes_a_cell_of_any_shape(void) {
  b2nd_array_t *array = zfp_array(BLOSC_CODEC_ZFP_FIXED_RATE, 40, 1.1f);
  WRONG_IF(array == NULL, "the array cannot be made");
  int32_t blocks[16];
  for (int i = 0; i < 16; i++) blocks[i] = 8;
  put_blocks(array->sc, 16, blocks);
  return zfp_items(array, 1, false);
}

/* ---- Chunks ---- */

/* As many items as a block has, from the second item on. */
const char *getitem_takes_the_second_block_for_all(void) {
  enum { BLOCK = 256 };
  int32_t items[4 * BLOCK], found[BLOCK];
  uint8_t chunk[sizeof items + BLOSC2_MAX_OVERHEAD];
  for (int i = 0; i < 4 * BLOCK; i++) items[i] = i / 3;
  blosc2_cparams cparams = plain(4);
  cparams.blocksize = BLOCK * 4;
  blosc2_context *compressor = blosc2_create_cctx(cparams);
  blosc2_context *decompressor = blosc2_create_dctx(BLOSC2_DPARAMS_DEFAULTS);
  int len = blosc2_compress_ctx(compressor, items, sizeof items, chunk, sizeof chunk);
  int code = blosc2_getitem_ctx(decompressor, chunk, len, 1, BLOCK, found, sizeof found);
  blosc2_free_ctx(compressor);
  blosc2_free_ctx(decompressor);
  WRONG_IF(code != sizeof found, "the items cannot be read");
  WRONG_IF(memcmp(found, items + 1, sizeof found) != 0, "other items came out");
  return NULL;
}

/* ---- Slices ---- */

const char *slice_ends_before_it_starts(void) {
  b2nd_array_t *array = hundred();
  int32_t buffer[100];
  int code = b2nd_get_slice_cbuffer(array, (int64_t[]){0, 7}, (int64_t[]){10, 6}, buffer,
                                    (int64_t[]){10, 10}, sizeof buffer);
  b2nd_free(array);
  WRONG_IF(code >= 0, "the slice was taken");
  return NULL;
}

/* Room for what is read, but not for the rows of the buffer's shape. */
const char *slice_reaches_behind_the_buffer(void) {
  b2nd_array_t *array = hundred();
  int32_t *buffer = malloc(9 * sizeof *buffer);
  int code = b2nd_get_slice_cbuffer(array, (int64_t[]){0, 0}, (int64_t[]){3, 3}, buffer,
                                    (int64_t[]){3, 1000}, 9 * sizeof *buffer);
  free(buffer);
  b2nd_free(array);
  WRONG_IF(code >= 0, "the buffer was taken");
  return NULL;
}

const char *set_slice_reads_behind_the_buffer(void) {
  b2nd_array_t *array = hundred();
  int32_t *buffer = calloc(9, sizeof *buffer);
  int code = b2nd_set_slice_cbuffer(buffer, (int64_t[]){3, 1000}, 9 * sizeof *buffer,
                                    (int64_t[]){0, 0}, (int64_t[]){3, 3}, array);
  free(buffer);
  b2nd_free(array);
  WRONG_IF(code >= 0, "the buffer was taken");
  return NULL;
}

/* An array without dimensions has one item. */
const char *slice_of_one_item_reaches_behind_the_buffer(void) {
  b2nd_array_t *array = new_array(plain(64), 0, NULL, NULL, NULL, NULL, 0);
  WRONG_IF(array == NULL, "the array cannot be made");
  uint8_t *buffer = malloc(1);
  int64_t none = 0;
  int code = b2nd_get_slice_cbuffer(array, &none, &none, buffer, &none, 1);
  free(buffer);
  b2nd_free(array);
  WRONG_IF(code >= 0, "64 bytes were read to 1");
  return NULL;
}

const char *set_slice_of_one_item_reads_behind_the_buffer(void) {
  b2nd_array_t *array = new_array(plain(64), 0, NULL, NULL, NULL, NULL, 0);
  WRONG_IF(array == NULL, "the array cannot be made");
  uint8_t *buffer = calloc(1, 1);
  int64_t none = 0;
  int code = b2nd_set_slice_cbuffer(buffer, &none, 1, &none, &none, array);
  free(buffer);
  b2nd_free(array);
  WRONG_IF(code >= 0, "64 bytes were written from 1");
  return NULL;
}

/* One whole chunk, 5 x 5, to the left of a buffer of 5 x 10. */
const char *slice_of_a_chunk_forgets_the_buffers_shape(void) {
  b2nd_array_t *array = hundred();
  int32_t found[50];
  int code = b2nd_get_slice_cbuffer(array, (int64_t[]){5, 5}, (int64_t[]){10, 10}, found,
                                    (int64_t[]){5, 10}, sizeof found);
  b2nd_free(array);
  WRONG_IF(code < 0, "the slice cannot be read");
  for (int i = 0; i < 25; i++) {
    WRONG_IF(found[i / 5 * 10 + i % 5] != (i / 5 + 5) * 10 + i % 5 + 5, "items are in other places");
  }
  return NULL;
}

/* A shape of 2^62 items in chunks of one, and the last of them. */
const char *slice_counts_all_chunks_before_it(void) {
  int64_t shape = INT64_C(1) << 62, start = shape - 1, one = 1;
  int32_t side = 1;
  blosc2_schunk *schunk = claimed_array(plain(1), 1, &shape, &side, &side);
  b2nd_array_t *array;
  uint8_t item;
  int code = b2nd_from_schunk(schunk, &array);
  if (code < 0) {
    blosc2_schunk_free(schunk);
    return NULL;
  }
  code = b2nd_get_slice_cbuffer(array, &start, &shape, &item, &one, 1);
  b2nd_free(array);
  WRONG_IF(code >= 0, "an item was read from a chunk that is not there");
  return NULL;
}

/* A thousand chunks in the metalayer, one in the super-chunk. */
const char *slice_numbers_chunks_that_are_not_there(void) {
  int64_t shape = 1000, start = 0, *numbers = NULL;
  int32_t side = 1;
  blosc2_schunk *schunk = claimed_array(plain(1), 1, &shape, &side, &side);
  blosc2_schunk_append_buffer(schunk, &side, 1);
  int64_t count = blosc2_get_slice_nchunks(schunk, &start, &shape, &numbers);
  if (count >= 0) free(numbers);
  blosc2_schunk_free(schunk);
  WRONG_IF(count > 1, "there are more chunks than there are");
  return NULL;
}

/* An array of 4096 items in one chunk, whose stored chunk is another one. */
static b2nd_array_t *array_of_chunk(const uint8_t *chunk) {
  int64_t shape = 4096;
  int32_t side = 4096, block = 512;
  blosc2_cparams cparams = plain(1);
  cparams.blocksize = block;
  blosc2_schunk *schunk = claimed_array(cparams, 1, &shape, &side, &block);
  schunk->chunksize = side;
  blosc2_schunk_append_chunk(schunk, (uint8_t *)chunk, true);
  b2nd_array_t *array;
  if (b2nd_from_schunk(schunk, &array) >= 0) return array;
  blosc2_schunk_free(schunk);
  return NULL;
}

/* Whether items come out that nobody stored, after the first one has been set if `set`. */
static const char *slice_discloses_memory(const uint8_t *chunk, bool set) {
  static uint8_t found[4095];
  int64_t start = 0, one = 1, stop = sizeof found;
  uint8_t zero = 0;
  b2nd_array_t *array = array_of_chunk(chunk);
  if (array == NULL) return NULL;
  int code = set ? b2nd_set_slice_cbuffer(&zero, &one, 1, &start, &one, array) : 0;
  if (code >= 0) code = b2nd_get_slice_cbuffer(array, &start, &stop, found, &stop, sizeof found);
  b2nd_free(array);
  for (size_t i = 0; code >= 0 && i < sizeof found; i++) {
    WRONG_IF(found[i] != 0, "items came out that nobody stored");
  }
  return NULL;
}

/* Zeros, in as many blocks as the array has, but smaller ones. */
static const char *small_chunk_discloses_memory(bool set) {
  static const uint8_t zeros[1024];
  uint8_t chunk[sizeof zeros + BLOSC2_MAX_OVERHEAD];
  blosc2_cparams cparams = plain(1);
  cparams.blocksize = sizeof zeros / 8;
  blosc2_context *context = blosc2_create_cctx(cparams);
  blosc2_compress_ctx(context, zeros, sizeof zeros, chunk, sizeof chunk);
  blosc2_free_ctx(context);
  return slice_discloses_memory(chunk, set);
}

const char *slice_of_a_small_chunk_discloses_memory(void) { return small_chunk_discloses_memory(false); }
const char *set_slice_of_a_small_chunk_stores_memory(void) { return small_chunk_discloses_memory(true); }

const char *slice_without_values_discloses_memory(void) {
  uint8_t chunk[BLOSC_EXTENDED_HEADER_LENGTH];
  blosc2_cparams cparams = plain(1);
  cparams.blocksize = 512;
  blosc2_chunk_uninit(cparams, 4096, chunk, sizeof chunk);
  return slice_discloses_memory(chunk, false);
}

/* The blocks of a chunk are differences to the first. */
const char *slice_of_delta_is_wrong(void) {
  enum { ITEMS = 20000, COUNT = 10 };
  static int32_t items[ITEMS];
  for (int i = 0; i < ITEMS; i++) items[i] = i * 3;
  blosc2_cparams cparams = plain(4);
  cparams.filters[4] = BLOSC_DELTA;
  cparams.filters[5] = BLOSC_SHUFFLE;
  int64_t shape = ITEMS, start = 9000, stop = start + COUNT, count = COUNT;
  int32_t chunk = ITEMS, block = 500, found[COUNT];
  b2nd_array_t *array = new_array(cparams, 1, &shape, &chunk, &block, items, sizeof items);
  WRONG_IF(array == NULL, "the array cannot be made");
  int code = b2nd_get_slice_cbuffer(array, &start, &stop, found, &count, sizeof found);
  b2nd_free(array);
  WRONG_IF(code < 0, "the slice cannot be read");
  WRONG_IF(memcmp(found, items + start, sizeof found) != 0, "other items came out");
  return NULL;
}

const char *slice_with_a_dictionary_fails(void) {
  enum { ITEMS = 200000, COUNT = 10 };
  static int32_t items[ITEMS];
  for (int i = 0; i < ITEMS; i++) items[i] = (i * 7919) % 1000;
  blosc2_cparams cparams = plain(4);
  cparams.filters[5] = BLOSC_SHUFFLE;
  cparams.compcode = BLOSC_LZ4;
  cparams.use_dict = 1;
  int64_t shape = ITEMS, start = 9000, stop = start + COUNT, count = COUNT;
  int32_t chunk = ITEMS, block = 2000, found[COUNT];
  b2nd_array_t *array = new_array(cparams, 1, &shape, &chunk, &block, items, sizeof items);
  WRONG_IF(array == NULL, "the array cannot be made");
  int code = b2nd_get_slice_cbuffer(array, &start, &stop, found, &count, sizeof found);
  b2nd_free(array);
  WRONG_IF(code < 0, "the slice cannot be read");
  WRONG_IF(memcmp(found, items + start, sizeof found) != 0, "other items came out");
  return NULL;
}

/* ---- Selections ---- */

static const char *select_items(int64_t first, int32_t room) {
  b2nd_array_t *array = hundred();
  int64_t rows[] = {0, 1, 2, 3, 4}, columns[] = {first, 1, 2, 3, 4};
  int64_t *selection[] = {rows, columns};
  int64_t sizes[] = {5, 5};
  int32_t *buffer = malloc(room);
  int code = b2nd_get_orthogonal_selection(array, selection, sizes, buffer, sizes, room);
  free(buffer);
  b2nd_free(array);
  WRONG_IF(code >= 0, "the selection was taken");
  return NULL;
}

const char *selection_overflows_a_small_buffer(void) { return select_items(0, 8); }
const char *selection_takes_a_negative_index(void) { return select_items(-3, 100); }
const char *selection_takes_the_index_after_the_last(void) { return select_items(10, 100); }

const char *selection_refuses_a_large_buffer(void) {
  b2nd_array_t *array = hundred();
  int64_t row = 3, column = 4, one = 1, *selection[] = {&row, &column}, sizes[] = {one, one};
  int32_t buffer[8] = {0};
  int code = b2nd_get_orthogonal_selection(array, selection, sizes, buffer, sizes, sizeof buffer);
  b2nd_free(array);
  WRONG_IF(code < 0, "a buffer with room to spare was refused");
  WRONG_IF(buffer[0] != 34, "another item came out");
  return NULL;
}

/* What stands for the indices along the first dimension of an array that has none. */
const char *selection_needs_a_dimension(void) {
  b2nd_array_t *array = new_array(plain(4), 0, NULL, NULL, NULL, NULL, 0);
  WRONG_IF(array == NULL, "the array cannot be made");
  int64_t *selection[1] = {NULL}, none[1] = {0};
  int32_t buffer;
  int code = b2nd_get_orthogonal_selection(array, selection, none, &buffer, none, sizeof buffer);
  b2nd_free(array);
  WRONG_IF(code >= 0, "the selection was taken");
  return NULL;
}

/* ---- Changing the shape ---- */

const char *insert_takes_a_negative_axis(void) {
  b2nd_array_t *array = hundred();
  int32_t buffer[100] = {0};
  int code = b2nd_insert(array, buffer, sizeof buffer, -100, 0);
  b2nd_free(array);
  WRONG_IF(code >= 0, "the axis was taken");
  return NULL;
}

const char *append_takes_a_negative_axis(void) {
  b2nd_array_t *array = hundred();
  int32_t buffer[25] = {0};
  int code = b2nd_append(array, buffer, sizeof buffer, -100);
  b2nd_free(array);
  WRONG_IF(code >= 0, "the axis was taken");
  return NULL;
}

const char *delete_takes_a_negative_axis(void) {
  b2nd_array_t *array = hundred();
  int code = b2nd_delete(array, -100, 0, 0);
  b2nd_free(array);
  WRONG_IF(code >= 0, "the axis was taken");
  return NULL;
}

/* The other dimension has no items, so that none can be inserted. */
const char *insert_divides_by_no_items(void) {
  int32_t chunks[] = {2, 2}, buffer[4] = {0};
  b2nd_array_t *array = new_array(plain(4), 2, (int64_t[]){0, 4}, chunks, chunks, NULL, 0);
  WRONG_IF(array == NULL, "the array cannot be made");
  int code = b2nd_insert(array, buffer, sizeof buffer, 1, 0);
  b2nd_free(array);
  WRONG_IF(code >= 0, "items were inserted into nothing");
  return NULL;
}

const char *append_divides_by_no_items(void) {
  int32_t chunks[] = {0, 2}, buffer[4] = {0};
  b2nd_array_t *array = new_array(plain(4), 2, (int64_t[]){0, 4}, chunks, chunks, NULL, 0);
  if (array == NULL) return NULL;
  int code = b2nd_append(array, buffer, sizeof buffer, 0);
  b2nd_free(array);
  WRONG_IF(code >= 0, "items were appended to chunks without items");
  return NULL;
}

const char *resize_divides_by_no_items(void) {
  int32_t chunks[] = {0, 2};
  b2nd_array_t *array = new_array(plain(4), 2, (int64_t[]){0, 4}, chunks, chunks, NULL, 0);
  if (array == NULL) return NULL;
  int code = b2nd_resize(array, (int64_t[]){5, 4}, NULL);
  b2nd_free(array);
  WRONG_IF(code >= 0, "an array without chunks has grown");
  return NULL;
}

const char *new_array_divides_by_no_items(void) {
  int64_t shape = 5;
  int32_t none = 0;
  b2nd_array_t *array = new_array(plain(4), 1, &shape, &none, &none, NULL, 0);
  if (array != NULL) b2nd_free(array);
  WRONG_IF(array != NULL, "five items were put into chunks without items");
  return NULL;
}

/* One chunk's worth is appended to an array whose last chunk is not full. */
const char *append_misplaces_items(void) {
  int64_t shape = 5;
  int32_t chunk = 4, block = 2, found[9];
  b2nd_array_t *array =
      new_array(plain(4), 1, &shape, &chunk, &block, (int32_t[]){0, 1, 2, 3, 4}, 5 * sizeof(int32_t));
  WRONG_IF(array == NULL, "the array cannot be made");
  int code = b2nd_append(array, (int32_t[]){5, 6, 7, 8}, 4 * sizeof(int32_t), 0);
  if (code >= 0) code = b2nd_to_cbuffer(array, found, sizeof found);
  b2nd_free(array);
  WRONG_IF(code < 0, "the items cannot be appended and read");
  for (int i = 0; i < 9; i++) WRONG_IF(found[i] != i, "other items came out");
  return NULL;
}

/* One chunk has the items of two rows of the array. Each row takes two chunks. */
const char *append_misplaces_narrow_chunks(void) {
  int32_t items[8 * 6], found[8 * 6], sides[] = {4, 4};
  for (int i = 0; i < 8 * 6; i++) items[i] = i;
  b2nd_array_t *array = new_array(plain(4), 2, (int64_t[]){4, 8}, sides, sides, items, 32 * sizeof *items);
  WRONG_IF(array == NULL, "the array cannot be made");
  int code = b2nd_append(array, items + 32, 16 * sizeof *items, 0);
  bool grown = array->shape[0] == 6;
  if (code >= 0 && grown) code = b2nd_to_cbuffer(array, found, sizeof found);
  b2nd_free(array);
  WRONG_IF(code < 0, "the items cannot be appended and read");
  WRONG_IF(!grown, "other rows than the two were appended");
  WRONG_IF(memcmp(items, found, sizeof items) != 0, "other items came out");
  return NULL;
}

/* Two arrays of three rows without columns. */
const char *concatenate_divides_by_no_items(void) {
  int64_t shape[] = {3, 0};
  int32_t chunks[] = {3, 0};
  b2nd_array_t *left = new_array(plain(4), 2, shape, chunks, chunks, NULL, 0), *both = NULL;
  b2nd_array_t *right = new_array(plain(4), 2, shape, chunks, chunks, NULL, 0);
  if (left != NULL && right != NULL) {
    b2nd_context_t *context = new_context(plain(4), 2, shape, chunks, chunks);
    if (b2nd_concatenate(context, left, right, 1, true, &both) >= 0) b2nd_free(both);
    b2nd_free_ctx(context);
  }
  if (left != NULL) b2nd_free(left);
  if (right != NULL) b2nd_free(right);
  return NULL;
}

/* The chunks of the second array are larger than its metalayer says. */
const char *concatenate_overflows_its_buffer(void) {
  static uint8_t zeros[4096];
  int64_t shape = 3;
  int32_t side = 2, one = 1;
  b2nd_array_t *left = new_array(plain(1), 1, &shape, &side, &side, NULL, 0), *right, *both = NULL;
  blosc2_schunk *schunk = claimed_array(plain(1), 1, &shape, &one, &one);
  for (int i = 0; i < 3; i++) blosc2_schunk_append_buffer(schunk, zeros, sizeof zeros);
  if (b2nd_from_schunk(schunk, &right) < 0) {
    blosc2_schunk_free(schunk);
    b2nd_free(left);
    return NULL;
  }
  b2nd_context_t *context = new_context(plain(1), 1, &shape, &side, &side);
  int code = b2nd_concatenate(context, left, right, 0, true, &both);
  b2nd_free_ctx(context);
  if (both != NULL) b2nd_free(both);
  b2nd_free(left);
  b2nd_free(right);
  WRONG_IF(code >= 0, "chunks of another size were read");
  return NULL;
}

/* ---- Views and contexts ---- */

const char *view_frees_metalayers_twice(void) {
  int32_t sides[] = {1, 4};
  b2nd_array_t *view, *array = new_array(plain(4), 2, (int64_t[]){1, 4}, sides, sides, NULL, 0);
  WRONG_IF(array == NULL, "the array cannot be made");
  int code = blosc2_vlmeta_add(array->sc, "name", (uint8_t *)"content", 7, NULL);
  if (code >= 0) code = b2nd_squeeze(array, &view);
  if (code >= 0) b2nd_free(view);
  b2nd_free(array);
  WRONG_IF(code < 0, "the view cannot be made");
  return NULL;
}

const char *expand_dims_overflows_its_shapes(void) {
  b2nd_array_t *array = hundred(), *view = NULL;
  bool axis[255];
  for (int i = 0; i < 255; i++) axis[i] = i >= 2;
  int code = b2nd_expand_dims(array, &view, axis, 255);
  b2nd_free(array);
  WRONG_IF(code >= 0, "a view of 255 dimensions was made");
  return NULL;
}

/* A context has room for 15, since an array has one of its own. */
const char *context_overflows_with_metalayers(void) {
  enum { COUNT = 4096 };
  blosc2_metalayer *layers = calloc(COUNT, sizeof *layers);
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  int64_t shape = 1;
  int32_t side = 1;
  b2nd_context_t *context = b2nd_create_ctx(&storage, 1, &shape, &side, &side, NULL, 0, layers, COUNT);
  free(layers);
  WRONG_IF(context != NULL, "4096 metalayers were taken");
  return NULL;
}

#ifndef _WIN32
#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

static int open_files(void) {
  int count = 0;
  DIR *folder = opendir("/dev/fd");
  while (folder != NULL && readdir(folder) != NULL) count++;
  if (folder != NULL) closedir(folder);
  return count;
}

const char *opening_no_array_keeps_the_file_open(void) {
  char folder[200], path[220];
  WRONG_IF(!new_folder(folder), "no folder can be made");
  snprintf(path, sizeof path, "%s/frame.b2frame", folder);
  blosc2_schunk *schunk = new_schunk(true, path, 4);
  blosc2_schunk_append_buffer(schunk, (int32_t[]){1, 2, 3}, 12);
  blosc2_schunk_free(schunk);
  int before = open_files(), code = -1;
  b2nd_array_t *array;
  for (int i = 0; i < 4; i++) code = b2nd_open(path, &array);
  int after = open_files();
  unlink(path);
  rmdir(folder);
  WRONG_IF(code >= 0, "an array was opened that is none");
  WRONG_IF(after != before, "files stay open");
  return NULL;
}

static b2nd_array_t *shared;

static void *read_shared(void *wrong) {
  int32_t found[4096];
  for (int64_t i = 0; i < 2000; i++) {
    int64_t start = i * 997 % 60000, stop = start + 4096, len = 4096;
    int code = b2nd_get_slice_cbuffer(shared, &start, &stop, found, &len, sizeof found);
    for (int64_t at = 0; code >= 0 && at < len; at++) {
      if (found[at] != (start + at) / 5) code = -1;
    }
    if (code < 0) *(bool *)wrong = true;
  }
  return NULL;
}

/* Four threads read slices of one array, which nobody changes. */
const char *slices_of_one_array_at_once(void) {
  enum { ITEMS = 65536, THREADS = 4 };
  static int32_t items[ITEMS];
  for (int i = 0; i < ITEMS; i++) items[i] = i / 5;
  int64_t shape = ITEMS;
  int32_t chunk = 8192, block = 1024;
  blosc2_cparams cparams = plain(4);
  cparams.filters[5] = BLOSC_SHUFFLE;
  shared = new_array(cparams, 1, &shape, &chunk, &block, items, sizeof items);
  WRONG_IF(shared == NULL, "the array cannot be made");
  pthread_t threads[THREADS];
  bool wrong[THREADS] = {false};
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, read_shared, &wrong[i]);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  b2nd_free(shared);
  for (int i = 0; i < THREADS; i++) WRONG_IF(wrong[i], "other items came out, or an error");
  return NULL;
}
#endif

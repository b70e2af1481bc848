/* Hazards of functions that the library calls (blosc2.c). */
#include "hazards.h"

enum { LEN = 40000, ROOM = LEN + BLOSC2_MAX_OVERHEAD };

/* LZ4 and one filter, for blocks of 4 KiB. */
static blosc2_cparams params(uint8_t filter) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.compcode = BLOSC_LZ4;
  cparams.typesize = 4;
  cparams.blocksize = 4096;
  cparams.filters[BLOSC2_MAX_FILTERS - 1] = filter;
  return cparams;
}

static void fill_numbers(int32_t *numbers) {
  for (int32_t i = 0; i < LEN / 4; i++) numbers[i] = i / 16;
}

static int pack(blosc2_cparams cparams, const void *source, int32_t len, void *chunk) {
  blosc2_context *context = blosc2_create_cctx(cparams);
  int written = blosc2_compress_ctx(context, source, len, chunk, ROOM);
  blosc2_free_ctx(context);
  return written;
}

static int unpack(blosc2_dparams dparams, const void *chunk, int32_t len, void *dest) {
  blosc2_context *context = blosc2_create_dctx(dparams);
  int read = blosc2_decompress_ctx(context, chunk, len, dest, LEN);
  blosc2_free_ctx(context);
  return read;
}

static int copy_block(blosc2_postfilter_params *block) {
  memcpy(block->output, block->input, (size_t)block->size);
  return 0;
}

static int note_offset(blosc2_postfilter_params *block) {
  int32_t *offsets = block->user_data;
  offsets[block->nblock] = block->offset;
  return copy_block(block);
}

/* Blocks of variable length are said to be where blocks of the same length would be. */
const char *postfilter_receives_wrong_offsets_of_variable_blocks(void) {
  static uint8_t bytes[900], chunk[ROOM], back[900];
  for (int i = 0; i < 900; i++) bytes[i] = (uint8_t)(i / 50);
  const void *sources[3] = {bytes, bytes + 100, bytes + 600};
  int32_t lens[3] = {100, 500, 300}, offsets[3] = {-1, -1, -1};
  blosc2_context *context = blosc2_create_cctx(params(BLOSC_NOFILTER));
  int len = blosc2_vlcompress_ctx(context, sources, lens, 3, chunk, ROOM);
  blosc2_free_ctx(context);
  blosc2_postfilter_params postparams = {.user_data = offsets};
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  dparams.postfilter = note_offset;
  dparams.postparams = &postparams;
  context = blosc2_create_dctx(dparams);
  int read = blosc2_decompress_ctx(context, chunk, len, back, sizeof back);
  blosc2_free_ctx(context);
  WRONG_IF(read != 900 || memcmp(back, bytes, 900) != 0, "it cannot be read");
  WRONG_IF(offsets[0] != 0 || offsets[1] != 100 || offsets[2] != 600, "the places are wrong");
  return NULL;
}

static int copy_forward(const uint8_t *input, uint8_t *output, int32_t len, uint8_t meta,
                        blosc2_cparams *cparams, uint8_t id) {
  memcpy(output, input, (size_t)len);
  return 0;
}

static int fail_above_zero(const uint8_t *input, uint8_t *output, int32_t len, uint8_t meta,
                           blosc2_dparams *dparams, uint8_t id) {
  return 1;
}

/* A filter that fails by a number above zero stops a compression, but not a decompression: that
 * leaves the destination as it was, and succeeds. */
const char *filter_that_fails_leaves_the_destination(void) {
  static int32_t source[LEN / 4], back[LEN / 4];
  static uint8_t chunk[ROOM];
  fill_numbers(source);
  /* Below the users' ids, which the crate has registered. */
  blosc2_filter filter = {.id = 150, .name = "fails", .version = 1,
                          .forward = copy_forward, .backward = fail_above_zero};
  int register_filter_private(blosc2_filter *);
  WRONG_IF(register_filter_private(&filter) < 0, "it cannot be registered");
  int len = pack(params(150), source, LEN, chunk);
  memset(back, 0xAA, LEN);
  int read = unpack(BLOSC2_DPARAMS_DEFAULTS, chunk, len, back);
  WRONG_IF(read >= 0, "the error is taken for a success");
  return NULL;
}

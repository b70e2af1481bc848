/* Hazards of frames and super-chunks (frame.c, schunk.c, sframe.c). */
#include "hazards.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CHUNK = 1000 };

/* The bytes of the chunk of this number: none that compress. */
static void fill_chunk(uint8_t *bytes, int64_t number) { fill_noise(bytes, CHUNK, (uint32_t)number + 1); }

static int64_t append(blosc2_schunk *schunk, int64_t number) {
  uint8_t bytes[CHUNK];
  fill_chunk(bytes, number);
  return blosc2_schunk_append_buffer(schunk, bytes, CHUNK);
}

static blosc2_schunk *filled(bool contiguous, const char *path, int nchunks) {
  blosc2_schunk *schunk = new_schunk(contiguous, path, 1);
  for (int i = 0; i < nchunks; i++) append(schunk, i);
  return schunk;
}

/* Whether the chunk at an index is that of this number. */
static bool holds(blosc2_schunk *schunk, int64_t index, int64_t number) {
  uint8_t bytes[CHUNK], found[CHUNK] = {0};
  fill_chunk(bytes, number);
  return blosc2_schunk_decompress_chunk(schunk, index, found, CHUNK) == CHUNK &&
         memcmp(bytes, found, CHUNK) == 0;
}

/* A frame with this number of chunks, in memory from malloc of exactly its length. */
static uint8_t *frame_of(int nchunks, int64_t *len) {
  blosc2_schunk *schunk = filled(true, NULL, nchunks);
  uint8_t *frame;
  bool needs_free;
  *len = blosc2_schunk_to_buffer(schunk, &frame, &needs_free);
  uint8_t *copy = malloc((size_t)*len);
  memcpy(copy, frame, (size_t)*len);
  blosc2_schunk_free(schunk);
  return copy;
}

/* Integers of a frame: the most significant byte first. */
static uint64_t get(const uint8_t *at, int nbytes) {
  uint64_t value = 0;
  for (int i = 0; i < nbytes; i++) value = value << 8 | at[i];
  return value;
}
static void put(uint8_t *at, int nbytes, uint64_t value) {
  for (int i = nbytes - 1; i >= 0; i--, value >>= 8) at[i] = (uint8_t)value;
}
static void put_little(uint8_t *at, int32_t value) {
  for (int i = 0; i < 4; i++) at[i] = (uint8_t)((uint32_t)value >> 8 * i);
}

/* Where the header of a frame has its fields. */
enum { HEADER_LEN = 11, FRAME_LEN = 16, NBYTES = 30, CBYTES = 39, FILTERS = 71 };

static int64_t header_len(const uint8_t *frame) { return (int64_t)get(frame + HEADER_LEN, 4); }
static int64_t trailer_len(const uint8_t *frame, int64_t len) { return (int64_t)get(frame + len - 22, 4); }

/* A frame with the header and trailer of another one, and other bytes between these. */
static uint8_t *with_body(const uint8_t *frame, int64_t len, const uint8_t *body, int64_t body_len,
                          int64_t *new_len) {
  int64_t head = header_len(frame), tail = trailer_len(frame, len);
  *new_len = head + body_len + tail;
  uint8_t *made = malloc((size_t)*new_len);
  memcpy(made, frame, (size_t)head);
  memcpy(made + head, body, (size_t)body_len);
  memcpy(made + head + body_len, frame + len - tail, (size_t)tail);
  put(made + FRAME_LEN, 8, (uint64_t)*new_len);
  return made;
}

/* A chunk of Blosc1 that holds the bytes as they are. */
static uint8_t *blosc1_chunk(const uint8_t *bytes, int32_t nbytes) {
  uint8_t *chunk = malloc((size_t)nbytes + BLOSC_MIN_HEADER_LENGTH);
  chunk[0] = 2;
  chunk[1] = 1;
  chunk[2] = BLOSC_MEMCPYED;
  chunk[3] = 1;
  put_little(chunk + 4, nbytes);
  put_little(chunk + 8, nbytes);
  put_little(chunk + 12, nbytes + BLOSC_MIN_HEADER_LENGTH);
  memcpy(chunk + BLOSC_MIN_HEADER_LENGTH, bytes, (size_t)nbytes);
  return chunk;
}

/* A path in a fresh folder, and its removal. */
typedef struct { char folder[200], path[220]; } temporary;

static temporary new_temporary(void) {
  temporary made;
  if (!new_folder(made.folder)) abort();
  snprintf(made.path, sizeof made.path, "%s/frame", made.folder);
  return made;
}
static void remove_temporary(temporary *made) {
  blosc2_remove_urlpath(made->path);
  rmdir(made->folder);
}

static void write_file(const char *path, const uint8_t *bytes, int64_t len) {
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(bytes, 1, (size_t)len, file) != (size_t)len) abort();
  fclose(file);
}
static uint8_t *read_file(const char *path, int64_t *len) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) abort();
  *len = ftell(file);
  uint8_t *bytes = malloc((size_t)*len);
  rewind(file);
  if (fread(bytes, 1, (size_t)*len, file) != (size_t)*len) abort();
  fclose(file);
  return bytes;
}

/* ---- Frames in the caller's memory ---- */

/* Behind 512 chunks, the list of chunks is written beyond its end. */
const char *copied_frame_overflows_when_it_grows(void) {
  enum { CHUNKS = 600 };
  int64_t len;
  uint8_t *frame = frame_of(CHUNKS, &len);
  blosc2_schunk *copy = blosc2_schunk_from_buffer(frame, len, true);
  free(frame);
  WRONG_IF(copy == NULL, "the frame cannot be read");
  WRONG_IF(append(copy, CHUNKS) != CHUNKS + 1, "a chunk cannot be appended");
  WRONG_IF(!holds(copy, 550, 550) || !holds(copy, CHUNKS, CHUNKS), "a chunk has changed");
  blosc2_schunk_free(copy);
  return NULL;
}

/* The list of chunks is copied as if it were empty. */
const char *copied_frame_loses_its_chunks_when_reordered(void) {
  enum { CHUNKS = 10 };
  int64_t len, order[CHUNKS];
  uint8_t *frame = frame_of(CHUNKS, &len);
  blosc2_schunk *copy = blosc2_schunk_from_buffer(frame, len, true);
  free(frame);
  WRONG_IF(copy == NULL, "the frame cannot be read");
  for (int i = 0; i < CHUNKS; i++) order[i] = CHUNKS - 1 - i;
  WRONG_IF(blosc2_schunk_reorder_offsets(copy, order) < 0, "the chunks cannot be reordered");
  for (int i = 0; i < CHUNKS; i++) WRONG_IF(!holds(copy, i, CHUNKS - 1 - i), "a chunk has changed");
  blosc2_schunk_free(copy);
  return NULL;
}

/* All pointers of the list of chunks are freed, also those that were never set. */
const char *copied_frame_with_a_broken_chunk_frees_garbage(void) {
  int64_t len;
  uint8_t *frame = frame_of(100, &len);
  int32_t cbytes;
  memcpy(&cbytes, frame + header_len(frame) + BLOSC2_CHUNK_CBYTES, sizeof cbytes);
  put_little(frame + header_len(frame) + cbytes + BLOSC2_CHUNK_BLOCKSIZE, 0);
  blosc2_schunk *copy = blosc2_schunk_from_buffer(frame, len, true);
  free(frame);
  WRONG_IF(copy != NULL, "a broken chunk has been copied");
  return NULL;
}

/* The caller's memory is given to realloc, wherever it comes from. */
const char *changing_a_borrowed_frame_reallocates_it(void) {
  int64_t len;
  uint8_t *frame = frame_of(3, &len);
  uint8_t *memory = malloc((size_t)len + 16), *borrowed = memory + 16;
  memcpy(borrowed, frame, (size_t)len);
  blosc2_schunk *schunk = blosc2_schunk_from_buffer(borrowed, len, false);
  WRONG_IF(schunk == NULL, "the frame cannot be read");
  WRONG_IF(append(schunk, 3) != 4, "a chunk cannot be appended");
  WRONG_IF(!holds(schunk, 0, 0) || !holds(schunk, 3, 3), "a chunk has changed");
  blosc2_schunk_free(schunk);
  WRONG_IF(memcmp(borrowed, frame, (size_t)len) != 0, "the caller's bytes have changed");
  free(memory);
  free(frame);
  return NULL;
}

/* ---- Malformed frames ---- */

/* Sums with the compressed size of all chunks, which the header gives, overflow. */
static uint8_t *frame_of_huge_size(uint64_t cbytes, int64_t *len) {
  uint8_t body[48 + 32] = {0};
  int64_t offsets[2] = {(int64_t)0x8100000000000000, 48};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.typesize = sizeof(int64_t);
  cparams.clevel = 0;
  blosc2_context *context = blosc2_create_cctx(cparams);
  if (blosc2_compress_ctx(context, offsets, sizeof offsets, body, 48) != 48) abort();
  blosc2_free_ctx(context);
  uint8_t *evil = body + 48;
  evil[0] = 5;
  evil[1] = 1;
  evil[2] = BLOSC_DOSHUFFLE | BLOSC_DOBITSHUFFLE | BLOSC_MEMCPYED;
  evil[3] = 1;
  put_little(evil + BLOSC2_CHUNK_NBYTES, CHUNK);
  put_little(evil + BLOSC2_CHUNK_BLOCKSIZE, CHUNK);
  put_little(evil + BLOSC2_CHUNK_CBYTES, CHUNK + BLOSC_EXTENDED_HEADER_LENGTH);
  int64_t sound_len;
  uint8_t *sound = frame_of(2, &sound_len);
  uint8_t *made = with_body(sound, sound_len, body, sizeof body, len);
  put(made + CBYTES, 8, cbytes == 0 ? INT64_MAX - (uint64_t)header_len(sound) : cbytes);
  free(sound);
  return made;
}

const char *huge_compressed_size_reads_behind_the_frame(void) {
  int64_t len;
  uint8_t *frame = frame_of_huge_size(0, &len), bytes[CHUNK];
  blosc2_schunk *schunk = blosc2_schunk_from_buffer(frame, len, false);
  if (schunk != NULL) {
    WRONG_IF(blosc2_schunk_decompress_chunk(schunk, 1, bytes, CHUNK) >= 0, "bytes behind the frame were read");
    blosc2_schunk_free(schunk);
  }
  free(frame);
  return NULL;
}

const char *huge_compressed_size_copies_from_behind_the_frame(void) {
  int64_t len;
  uint8_t *frame = frame_of_huge_size(INT64_MAX, &len);
  blosc2_schunk *schunk = blosc2_schunk_from_buffer(frame, len, true);
  WRONG_IF(schunk != NULL, "bytes behind the frame were copied");
  free(frame);
  return NULL;
}

/* Leaves zeros on the stack, where the library then has its variables. */
static __attribute__((noinline)) void clear_stack(void) {
  volatile uint8_t bytes[1 << 16];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = 0;
}

/* Whether the second of two chunks is found, or an error, after a change of the index. */
static bool reads_changed_index(void (*change)(uint8_t *index)) {
  int64_t len;
  uint8_t *frame = frame_of(2, &len), bytes[CHUNK], *chunk;
  fill_chunk(bytes, 1);
  blosc2_schunk *schunk = blosc2_schunk_from_buffer(frame, len, false);
  if (schunk == NULL) abort();
  change(frame + header_len(frame) + get(frame + CBYTES, 8));
  bool needs_free;
  clear_stack();
  int cbytes = blosc2_schunk_get_chunk(schunk, 1, &chunk, &needs_free);
  bool right = cbytes < 0 || memcmp(chunk + BLOSC_EXTENDED_HEADER_LENGTH, bytes, CHUNK) == 0;
  blosc2_schunk_free(schunk);
  free(frame);
  return right;
}

static void make_items_bytes(uint8_t *index) { index[BLOSC2_CHUNK_TYPESIZE] = 1; }

static void drop_values(uint8_t *index) {
  index[BLOSC2_CHUNK_BLOSC2_FLAGS] = BLOSC2_SPECIAL_UNINIT << 4;
  put_little(index + BLOSC2_CHUNK_CBYTES, BLOSC_EXTENDED_HEADER_LENGTH);
}

/* An index of other items than 64-bit integers leaves most bytes of a position unset. */
const char *index_of_bytes_returns_unset_positions(void) {
  WRONG_IF(!reads_changed_index(make_items_bytes), "a position that was not wholly set was used");
  return NULL;
}

/* An index that is a special chunk, one of uninitialised values, leaves all positions unset. */
const char *index_without_values_is_used(void) {
  WRONG_IF(!reads_changed_index(drop_values), "a position that was never set was used");
  return NULL;
}

/* The header of a file says that there is a chunk more, while the index in memory has none for it. */
const char *position_that_the_index_lacks_is_stored(void) {
  temporary file = new_temporary();
  blosc2_schunk_free(filled(true, file.path, 2));
  blosc2_schunk *schunk = blosc2_schunk_open(file.path);
  WRONG_IF(schunk == NULL || !holds(schunk, 1, 1), "the frame cannot be read");
  int64_t len;
  uint8_t *bytes = read_file(file.path, &len);
  put(bytes + NBYTES, 8, 3 * CHUNK);
  write_file(file.path, bytes, len);
  free(bytes);
  WRONG_IF(append(schunk, 2) >= 0, "a position that was never set was stored");
  blosc2_schunk_free(schunk);
  remove_temporary(&file);
  return NULL;
}

/* An order for the chunks that were known is taken for as many as there are in the file. */
const char *order_is_read_beyond_its_end(void) {
  temporary file = new_temporary();
  blosc2_schunk_free(filled(true, file.path, 3));
  blosc2_schunk *schunk = blosc2_schunk_open(file.path), *other = blosc2_schunk_open(file.path);
  WRONG_IF(append(other, 3) != 4, "a chunk cannot be appended");
  int64_t *order = malloc(3 * sizeof *order);
  for (int i = 0; i < 3; i++) order[i] = 2 - i;
  WRONG_IF(blosc2_schunk_reorder_offsets(schunk, order) >= 0, "3 numbers gave 4 chunks an order");
  free(order);
  blosc2_schunk_free(schunk);
  blosc2_schunk_free(other);
  remove_temporary(&file);
  return NULL;
}

/* Filling a frame looks at chunk sizes through a null pointer when another handle was faster. */
const char *filling_a_filled_frame_is_a_null_pointer(void) {
  temporary file = new_temporary();
  blosc2_schunk_free(new_schunk(true, file.path, 1));
  blosc2_schunk *schunk = blosc2_schunk_open(file.path), *other = blosc2_schunk_open(file.path);
  WRONG_IF(append(other, 0) != 1, "a chunk cannot be appended");
  WRONG_IF(blosc2_schunk_fill_special(schunk, CHUNK, BLOSC2_SPECIAL_ZERO, CHUNK) >= 0, "a chunk was lost");
  blosc2_schunk_free(schunk);
  blosc2_schunk_free(other);
  remove_temporary(&file);
  return NULL;
}

/* What is stored for a metalayer of variable length is read as a chunk, whatever its length. */
const char *short_metalayer_is_read_as_a_chunk(void) {
  blosc2_schunk *schunk = filled(true, NULL, 1);
  uint8_t content[40] = "content", *frame, *found;
  WRONG_IF(blosc2_vlmeta_add(schunk, "name", content, sizeof content, NULL) < 0, "it cannot be added");
  bool needs_free;
  int64_t len = blosc2_schunk_to_buffer(schunk, &frame, &needs_free);
  uint8_t *copy = malloc((size_t)len), *at = copy + len - trailer_len(frame, len);
  memcpy(copy, frame, (size_t)len);
  while (*at != 0xdc) at++;  // the list of contents, which are 5 bytes and the content each
  put(at + 4, 4, 3);
  blosc2_schunk *opened = blosc2_schunk_from_buffer(copy, len, false);
  if (opened != NULL) {
    int32_t found_len;
    WRONG_IF(blosc2_vlmeta_get(opened, "name", &found, &found_len) >= 0, "3 bytes were taken for a chunk");
    blosc2_schunk_free(opened);
  }
  free(copy);
  blosc2_schunk_free(schunk);
  return NULL;
}

/* A chunk that is marked as lazy is followed by more than it counts, which is read. */
const char *stored_lazy_chunk_is_read_beyond_its_end(void) {
  temporary file = new_temporary();
  blosc2_schunk *schunk = new_schunk(true, file.path, 1);
  uint8_t bytes[8] = "content", found[8];
  WRONG_IF(blosc2_schunk_append_buffer(schunk, bytes, 8) != 1, "a chunk cannot be appended");
  blosc2_schunk_free(schunk);
  int64_t len;
  uint8_t *frame = read_file(file.path, &len), *chunk = frame + header_len(frame);
  chunk[BLOSC2_CHUNK_FLAGS] &= (uint8_t)~BLOSC_MEMCPYED;
  chunk[BLOSC2_CHUNK_BLOSC2_FLAGS] = BLOSC2_USEDICT | 0x08;
  write_file(file.path, frame, len);
  free(frame);
  schunk = blosc2_schunk_open(file.path);
  if (schunk != NULL) {
    WRONG_IF(blosc2_schunk_decompress_chunk(schunk, 0, found, 8) >= 0, "a lazy chunk in a file was read");
    blosc2_schunk_free(schunk);
  }
  remove_temporary(&file);
  return NULL;
}

/* A lazy chunk counts bytes that it does not have. */
const char *appended_lazy_chunk_is_read_beyond_its_end(void) {
  temporary file = new_temporary();
  blosc2_schunk *schunk = filled(true, file.path, 1), *target = new_schunk(false, NULL, 1);
  uint8_t *lazy;
  bool needs_free;
  WRONG_IF(blosc2_schunk_get_lazychunk(schunk, 0, &lazy, &needs_free) < 0, "it cannot be read");
  WRONG_IF(blosc2_schunk_append_chunk(target, lazy, true) >= 0, "a chunk without its data was stored");
  if (needs_free) free(lazy);
  blosc2_schunk_free(target);
  blosc2_schunk_free(schunk);
  remove_temporary(&file);
  return NULL;
}

/* In a directory, a chunk is taken to be as long as its header says. */
const char *short_chunk_file_is_read_beyond_its_end(void) {
  temporary folder = new_temporary();
  blosc2_schunk_free(filled(false, folder.path, 1));
  char path[250];
  snprintf(path, sizeof path, "%s/00000000.chunk", folder.path);
  WRONG_IF(truncate(path, 100) != 0, "the file cannot be cut");
  blosc2_schunk *schunk = blosc2_schunk_open(folder.path);
  if (schunk != NULL) {
    WRONG_IF(holds(schunk, 0, 0), "a chunk that is not there was read");
    blosc2_schunk_free(schunk);
  }
  remove_temporary(&folder);
  return NULL;
}

/* Bytes that are missing in one chunk move the next ones, but the last is not cut at the end. */
const char *short_chunk_overflows_a_slice(void) {
  int64_t len;
  uint8_t *frame = frame_of(4, &len), *chunk = frame + header_len(frame);
  put_little(chunk + BLOSC2_CHUNK_NBYTES, CHUNK - 100);
  put_little(chunk + BLOSC2_CHUNK_BLOCKSIZE, CHUNK - 100);
  put_little(chunk + BLOSC2_CHUNK_CBYTES, CHUNK - 100 + BLOSC_EXTENDED_HEADER_LENGTH);
  blosc2_schunk *schunk = blosc2_schunk_from_buffer(frame, len, false);
  if (schunk != NULL) {
    uint8_t *items = malloc(2 * CHUNK + CHUNK / 2);
    int code = blosc2_schunk_get_slice_buffer(schunk, 0, 2 * CHUNK + CHUNK / 2, items);
    free(items);
    WRONG_IF(code >= 0, "a slice was made of bytes from elsewhere");
    blosc2_schunk_free(schunk);
  }
  free(frame);
  return NULL;
}

/* A filter that is not there is not needed to open a frame. */
const char *unknown_filter_hides_a_frame(void) {
  int64_t len;
  uint8_t *frame = frame_of(1, &len);
  frame[FILTERS] = 100;
  blosc2_schunk *schunk = blosc2_schunk_from_buffer(frame, len, false);
  WRONG_IF(schunk == NULL, "the frame cannot be opened");
  WRONG_IF(!holds(schunk, 0, 0), "its chunk cannot be read");
  blosc2_schunk_free(schunk);
  free(frame);
  return NULL;
}

/* Metalayers that could not be read again stay null pointers. */
const char *broken_file_leaves_null_metalayers(void) {
  temporary file = new_temporary();
  blosc2_schunk *writer = new_schunk(true, file.path, 1);
  uint8_t content[] = "content";
  blosc2_meta_add(writer, "one", content, sizeof content);
  blosc2_meta_add(writer, "two", content, sizeof content);
  append(writer, 0);
  blosc2_schunk *reader = blosc2_schunk_open(file.path);
  WRONG_IF(reader == NULL, "the frame cannot be opened");
  append(writer, 1);  // so that the reader looks at the file again
  blosc2_schunk_free(writer);
  int64_t len;
  uint8_t *bytes = read_file(file.path, &len), *name = bytes;
  while (memcmp(name, "two", 3) != 0) name++;
  name[-1] = 0;
  write_file(file.path, bytes, len);
  free(bytes);
  blosc2_vlmeta_exists(reader, "name");
  WRONG_IF(blosc2_meta_exists(reader, "three") >= 0, "there is a metalayer that is not there");
  blosc2_schunk_free(reader);
  remove_temporary(&file);
  return NULL;
}

/* ---- Memory maps ---- */

static blosc2_schunk *open_map(const char *path, const char *mode) {
  blosc2_stdio_mmap *map = malloc(sizeof *map);
  *map = BLOSC2_STDIO_MMAP_DEFAULTS;
  map->mode = mode;
  map->needs_free = true;
  map->initial_mapping_size = 1;  // of the file's size, not 1 GiB
  blosc2_io io = {.id = BLOSC2_IO_FILESYSTEM_MMAP, .name = "filesystem_mmap", .params = map};
  return blosc2_schunk_open_udio(path, &io);
}

enum { ITEMS = 100000 };

/* A file with one chunk, made with these parameters, read through a memory map. */
static const char *read_through_map(blosc2_cparams cparams, const char *mode) {
  static int32_t items[ITEMS], source[ITEMS], found[ITEMS];
  for (int i = 0; i < ITEMS; i++) items[i] = source[i] = (int32_t)(i * 7919L % 1000);
  temporary file = new_temporary();
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  storage.contiguous = true;
  storage.urlpath = file.path;
  storage.cparams = &cparams;
  blosc2_schunk *schunk = blosc2_schunk_new(&storage);
  WRONG_IF(blosc2_schunk_append_buffer(schunk, source, sizeof source) != 1, "a chunk cannot be appended");
  blosc2_schunk_free(schunk);
  int64_t len, len_after;
  uint8_t *before = read_file(file.path, &len);
  schunk = open_map(file.path, mode);
  WRONG_IF(schunk == NULL, "the map cannot be opened");
  int code = blosc2_schunk_get_slice_buffer(schunk, 0, ITEMS, found);
  blosc2_schunk_free(schunk);
  uint8_t *after = read_file(file.path, &len_after);
  WRONG_IF(len != len_after || memcmp(before, after, (size_t)len) != 0, "reading has changed the file");
  WRONG_IF(code < 0, "the map cannot be read");
  WRONG_IF(memcmp(items, found, sizeof items) != 0, "the map has other items");
  free(before);
  free(after);
  remove_temporary(&file);
  return NULL;
}

static blosc2_cparams three_filters(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.typesize = 4;
  cparams.blocksize = 8192;
  cparams.filters[3] = BLOSC_SHUFFLE;
  cparams.filters[4] = BLOSC_BITSHUFFLE;
  cparams.filters[5] = BLOSC_SHUFFLE;
  return cparams;
}

const char *dictionary_in_a_memory_map_is_freed(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.typesize = 4;
  cparams.blocksize = 8192;
  cparams.compcode = BLOSC_ZSTD;
  cparams.use_dict = 1;
  return read_through_map(cparams, "r");
}

const char *three_filters_write_into_a_read_only_map(void) { return read_through_map(three_filters(), "r"); }

const char *three_filters_write_into_a_mapped_file(void) { return read_through_map(three_filters(), "r+"); }

/* A map that grows may move, but the place of the index in it is kept. */
const char *index_is_read_where_a_map_was(void) {
  enum { LEN = 1 << 22 };
  temporary file = new_temporary();
  blosc2_schunk_free(filled(true, file.path, 3));
  blosc2_schunk *schunk = open_map(file.path, "r+");
  WRONG_IF(schunk == NULL || !holds(schunk, 1, 1), "the map cannot be read");
  // Something behind the map, so that it cannot grow in place.
  blosc2_stdio_mmap *map = schunk->storage->io->params;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *end = map->addr + (map->mapping_size + page - 1) / page * page;
  mmap(end, page, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);
  uint8_t *content = malloc(LEN);
  fill_noise(content, LEN, 1);
  WRONG_IF(blosc2_vlmeta_add(schunk, "name", content, LEN, NULL) < 0, "a metalayer cannot be added");
  WRONG_IF(!holds(schunk, 1, 1), "a chunk has changed");
  free(content);
  blosc2_schunk_free(schunk);
  remove_temporary(&file);
  return NULL;
}

/* Bytes that a memory map does not have are still copied: from a null pointer. */
const char *lazy_chunk_behind_a_map_is_a_null_pointer(void) {
  temporary file = new_temporary();
  blosc2_schunk_free(filled(true, file.path, 1));
  int64_t len;
  uint8_t *frame = read_file(file.path, &len), *chunk = frame + header_len(frame);
  chunk[BLOSC2_CHUNK_FLAGS] &= (uint8_t)~BLOSC_MEMCPYED;
  put_little(chunk + BLOSC2_CHUNK_NBYTES, 1 << 20);
  put_little(chunk + BLOSC2_CHUNK_BLOCKSIZE, 16);
  put_little(chunk + BLOSC2_CHUNK_CBYTES, 1 << 20);
  write_file(file.path, frame, len);
  free(frame);
  blosc2_schunk *schunk = open_map(file.path, "r");
  if (schunk != NULL) {
    uint8_t *lazy;
    bool needs_free;
    WRONG_IF(blosc2_schunk_get_lazychunk(schunk, 0, &lazy, &needs_free) >= 0, "bytes behind the map were read");
    blosc2_schunk_free(schunk);
  }
  remove_temporary(&file);
  return NULL;
}

/* ---- Metalayers ---- */

const char *seventeenth_metalayer_overwrites_a_field(void) {
  blosc2_schunk *schunk = new_schunk(false, NULL, 1);
  uint8_t content[] = "content";
  for (int i = 0; i < BLOSC2_MAX_METALAYERS; i++) {
    char name[] = {(char)('a' + i), 0};
    WRONG_IF(blosc2_meta_add(schunk, name, content, sizeof content) != i, "it cannot be added");
  }
  WRONG_IF(blosc2_meta_add(schunk, "one more", content, sizeof content) >= 0, "there is no room for it");
  blosc2_schunk_free(schunk);
  return NULL;
}

const char *metalayer_8193_overwrites_a_field(void) {
  blosc2_schunk *schunk = new_schunk(false, NULL, 1);
  uint8_t content[] = "content";
  for (int i = 0; i < BLOSC2_MAX_VLMETALAYERS; i++) {
    char name[20];
    snprintf(name, sizeof name, "%d", i);
    WRONG_IF(blosc2_vlmeta_add(schunk, name, content, sizeof content, NULL) != i, "it cannot be added");
  }
  WRONG_IF(blosc2_vlmeta_add(schunk, "one more", content, sizeof content, NULL) >= 0, "there is no room for it");
  blosc2_schunk_free(schunk);
  return NULL;
}

const char *long_metalayer_name_is_a_null_pointer(void) {
  blosc2_schunk *schunk = new_schunk(true, NULL, 1);
  uint8_t content[] = "content";
  WRONG_IF(blosc2_meta_add(schunk, "a name that is longer than 31 bytes", content, sizeof content) >= 0,
           "the format has no room for the name");
  WRONG_IF(append(schunk, 0) != 1 || !holds(schunk, 0, 0), "nothing can be added any more");
  blosc2_schunk_free(schunk);
  return NULL;
}

const char *long_name_of_a_variable_metalayer_is_cut(void) {
  blosc2_schunk *schunk = filled(true, NULL, 1);
  uint8_t content[] = "content";
  char name[262];
  memset(name, 'n', 261);
  name[261] = 0;
  WRONG_IF(blosc2_vlmeta_add(schunk, name, content, sizeof content, NULL) >= 0, "5 bytes of the name are kept");
  blosc2_schunk_free(schunk);
  return NULL;
}

/* A metalayer that came too late stays in the list, and does not fit the file. */
const char *refused_metalayer_blocks_all_changes(void) {
  blosc2_schunk *schunk = filled(true, NULL, 1);
  uint8_t content[] = "content";
  WRONG_IF(blosc2_meta_add(schunk, "late", content, sizeof content) >= 0, "it cannot be there");
  WRONG_IF(append(schunk, 1) != 2 || !holds(schunk, 1, 1), "nothing can be added any more");
  blosc2_schunk_free(schunk);
  return NULL;
}

/* Where chunks take no bytes, the new header is written over the index. */
const char *metalayer_overwrites_special_chunks(void) {
  blosc2_schunk *schunk = new_schunk(true, NULL, 1);
  uint8_t content[] = "content", zeros[CHUNK] = {0}, found[CHUNK], *frame;
  WRONG_IF(blosc2_schunk_append_buffer(schunk, zeros, CHUNK) != 1, "a chunk cannot be appended");
  blosc2_meta_add(schunk, "late", content, sizeof content);
  bool needs_free;
  int64_t len = blosc2_schunk_to_buffer(schunk, &frame, &needs_free);
  blosc2_schunk *opened = blosc2_schunk_from_buffer(frame, len, true);
  WRONG_IF(opened == NULL, "the frame is broken");
  WRONG_IF(blosc2_schunk_decompress_chunk(opened, 0, found, CHUNK) != CHUNK, "the chunk is gone");
  blosc2_schunk_free(opened);
  blosc2_schunk_free(schunk);
  return NULL;
}

const char *longer_metalayer_content_is_ignored(void) {
  blosc2_schunk *schunk = new_schunk(true, NULL, 1);
  uint8_t content[] = "content", longer[] = "longer content", *found;
  int32_t len;
  WRONG_IF(blosc2_meta_add(schunk, "name", content, sizeof content) < 0, "it cannot be added");
  if (blosc2_meta_update(schunk, "name", longer, sizeof longer) >= 0) {
    WRONG_IF(blosc2_meta_get(schunk, "name", &found, &len) < 0, "it cannot be read");
    WRONG_IF(len != sizeof longer || memcmp(found, longer, sizeof longer) != 0, "success, but the old content");
    free(found);
  }
  blosc2_schunk_free(schunk);
  return NULL;
}

/* ---- Chunks of other sizes and forms ---- */

static blosc2_schunk *varying_sizes(void) {
  blosc2_schunk *schunk = filled(true, NULL, 1);
  uint8_t bytes[CHUNK];
  fill_chunk(bytes, 1);
  blosc2_schunk_append_buffer(schunk, bytes, CHUNK / 10);
  blosc2_schunk_append_buffer(schunk, bytes, CHUNK / 3);
  return schunk;
}

const char *special_chunk_divides_by_zero(void) {
  blosc2_schunk *schunk = varying_sizes();
  uint8_t zeros[CHUNK] = {0}, found[CHUNK];
  int64_t nchunks = blosc2_schunk_append_buffer(schunk, zeros, CHUNK);
  int code = blosc2_schunk_decompress_chunk(schunk, 3, found, CHUNK);
  WRONG_IF(code >= 0 && (nchunks != 4 || code != CHUNK || memcmp(zeros, found, CHUNK) != 0), "other bytes");
  blosc2_schunk_free(schunk);
  return NULL;
}

const char *slice_divides_by_zero(void) {
  blosc2_schunk *schunk = varying_sizes();
  uint8_t bytes[CHUNK], found[CHUNK];
  fill_chunk(bytes, 0);
  int code = blosc2_schunk_get_slice_buffer(schunk, 0, CHUNK, found);
  WRONG_IF(code >= 0 && memcmp(bytes, found, CHUNK) != 0, "other bytes");
  blosc2_schunk_free(schunk);
  return NULL;
}

const char *setting_a_slice_divides_by_zero(void) {
  blosc2_schunk *schunk = varying_sizes();
  uint8_t bytes[CHUNK];
  fill_chunk(bytes, 9);
  int code = blosc2_schunk_set_slice_buffer(schunk, 0, CHUNK, bytes);
  WRONG_IF(!holds(schunk, 0, code < 0 ? 0 : 9), "other bytes");
  blosc2_schunk_free(schunk);
  return NULL;
}

const char *chunks_of_a_slice_divide_by_zero(void) {
  blosc2_schunk *schunk = varying_sizes();
  int64_t *chunks = NULL;
  int64_t count = blosc2_get_slice_nchunks(schunk, &(int64_t){0}, &(int64_t){10}, &chunks);
  WRONG_IF(count >= 0 && (count != 1 || chunks[0] != 0), "another chunk");
  free(chunks);
  blosc2_schunk_free(schunk);
  return NULL;
}

/* The byte that says what is special lies in a longer header. */
const char *short_blosc1_chunk_is_read_beyond_its_end(void) {
  blosc2_schunk *schunk = new_schunk(true, NULL, 1);
  uint8_t bytes[8] = "content", found[8];
  uint8_t *chunk = blosc1_chunk(bytes, sizeof bytes);
  int64_t nchunks = blosc2_schunk_append_chunk(schunk, chunk, true);
  free(chunk);
  if (nchunks >= 0) {
    WRONG_IF(blosc2_schunk_decompress_chunk(schunk, 0, found, sizeof found) != sizeof found ||
                 memcmp(bytes, found, sizeof found) != 0,
             "the chunk was stored, but cannot be read");
  }
  blosc2_schunk_free(schunk);
  return NULL;
}

/* What is in the place of that byte is data: here it says that the chunk is one of zeros. */
static const char *store_blosc1_chunks(const char *path) {
  blosc2_schunk *schunk = new_schunk(true, path, 1);
  uint8_t bytes[CHUNK], found[CHUNK];
  fill_chunk(bytes, 0);
  bytes[14] = 0;
  bytes[15] = BLOSC2_SPECIAL_ZERO << 4;
  uint8_t *chunk = blosc1_chunk(bytes, CHUNK);
  WRONG_IF(blosc2_schunk_append_chunk(schunk, chunk, true) != 1, "it cannot be appended");
  WRONG_IF(blosc2_schunk_append_chunk(schunk, chunk, true) != 2, "it cannot be appended");
  WRONG_IF(blosc2_schunk_insert_chunk(schunk, 1, chunk, true) != 3, "it cannot be inserted");
  WRONG_IF(blosc2_schunk_update_chunk(schunk, 0, chunk, true) != 3, "it cannot be updated");
  free(chunk);
  for (int i = 0; i < 3; i++) {
    WRONG_IF(blosc2_schunk_decompress_chunk(schunk, i, found, CHUNK) != CHUNK, "it cannot be read");
    WRONG_IF(memcmp(bytes, found, CHUNK) != 0, "the chunk has other bytes");
    WRONG_IF(blosc2_schunk_get_slice_buffer(schunk, i * CHUNK, (i + 1) * CHUNK, found) < 0,
             "it cannot be read by slices");
    WRONG_IF(memcmp(bytes, found, CHUNK) != 0, "the slice has other bytes");
    WRONG_IF(blosc2_schunk_get_slice_buffer(schunk, i * CHUNK + 10, i * CHUNK + 20, found) < 0,
             "it cannot be read by parts");
    WRONG_IF(memcmp(bytes + 10, found, 10) != 0, "the part has other bytes");
  }
  blosc2_schunk_free(schunk);
  return NULL;
}

const char *blosc1_chunk_is_stored_as_zeros(void) { return store_blosc1_chunks(NULL); }

const char *blosc1_chunk_in_a_file_is_stored_as_zeros(void) {
  temporary file = new_temporary();
  const char *wrong = store_blosc1_chunks(file.path);
  remove_temporary(&file);
  return wrong;
}

/* The number of chunks is that of bytes, divided. */
const char *empty_chunk_makes_a_frame_unreadable(void) {
  blosc2_schunk *schunk = filled(true, NULL, 2);
  uint8_t nothing[1];
  blosc2_schunk_append_buffer(schunk, nothing, 0);
  WRONG_IF(!holds(schunk, 0, 0) || !holds(schunk, 1, 1), "a chunk cannot be read any more");
  blosc2_schunk_free(schunk);
  return NULL;
}

/* ---- Changes ---- */

/* Ten items in chunks of 4, 4 and 2. */
static blosc2_schunk *ten_items(void) {
  blosc2_schunk *schunk = new_schunk(false, NULL, 1);
  const uint8_t items[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (int i = 0; i < 10; i += 4) blosc2_schunk_append_buffer(schunk, items + i, i < 8 ? 4 : 2);
  return schunk;
}

/* Two of the four items of the first chunk, where the last has two. */
const char *setting_items_drops_the_rest_of_their_chunk(void) {
  blosc2_schunk *schunk = ten_items();
  uint8_t items[2] = {90, 91}, found[10] = {0}, expected[] = {90, 91, 2, 3, 4, 5, 6, 7, 8, 9};
  WRONG_IF(blosc2_schunk_set_slice_buffer(schunk, 0, 2, items) < 0, "they cannot be set");
  WRONG_IF(schunk->nbytes != 10, "there are fewer items");
  WRONG_IF(blosc2_schunk_get_slice_buffer(schunk, 0, 10, found) < 0, "they cannot be read");
  WRONG_IF(memcmp(found, expected, 10) != 0, "other items");
  WRONG_IF(blosc2_schunk_set_slice_buffer(schunk, 8, 10, items) < 0, "the last cannot be set");
  WRONG_IF(blosc2_schunk_get_slice_buffer(schunk, 0, 10, found) < 0 || found[9] != 91, "other items");
  blosc2_schunk_free(schunk);
  return NULL;
}

const char *copy_with_other_parameters_is_longer(void) {
  blosc2_schunk *schunk = ten_items();
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.typesize = 1;
  cparams.clevel = 9;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  storage.cparams = &cparams;
  blosc2_schunk *copy = blosc2_schunk_copy(schunk, &storage);
  WRONG_IF(copy == NULL, "it cannot be copied");
  WRONG_IF(copy->nbytes != 10, "the copy has another number of items");
  blosc2_schunk_free(copy);
  blosc2_schunk_free(schunk);
  return NULL;
}

const char *copy_leaves_a_dangling_pointer(void) {
  blosc2_schunk *schunk = ten_items();
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *copy = blosc2_schunk_copy(schunk, &storage);
  WRONG_IF(copy == NULL, "it cannot be copied");
  WRONG_IF(storage.cparams != NULL, "the caller's storage points to the stack");
  blosc2_schunk_free(copy);
  blosc2_schunk_free(schunk);
  return NULL;
}

/* The file is cut as if the frame started at its first byte. */
const char *change_at_an_offset_cuts_the_file(void) {
  temporary file = new_temporary();
  blosc2_schunk *schunk = new_schunk(true, NULL, 1);
  uint8_t content[] = "content", chunk[BLOSC_EXTENDED_HEADER_LENGTH];
  blosc2_meta_add(schunk, "fixed", content, sizeof content);
  for (int i = 0; i < 2; i++) append(schunk, i);
  blosc2_vlmeta_add(schunk, "variable", content, sizeof content, NULL);
  int64_t offset = blosc2_schunk_to_file(schunk, file.path);
  WRONG_IF(blosc2_schunk_append_file(schunk, file.path) != offset, "it cannot be appended to a file");
  blosc2_schunk_free(schunk);
  int64_t len, len_after;
  uint8_t *before = read_file(file.path, &len);
  schunk = blosc2_schunk_open_offset(file.path, offset);
  WRONG_IF(schunk == NULL || !holds(schunk, 1, 1), "it cannot be opened");
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.typesize = 1;
  WRONG_IF(blosc2_chunk_zeros(cparams, CHUNK, chunk, sizeof chunk) < 0, "no chunk of zeros");
  append(schunk, 2);
  blosc2_schunk_insert_chunk(schunk, 0, chunk, true);
  blosc2_schunk_update_chunk(schunk, 0, chunk, true);
  blosc2_schunk_reorder_offsets(schunk, (int64_t[]){1, 0, 2, 3});
  blosc2_schunk_delete_chunk(schunk, 0);
  blosc2_meta_update(schunk, "fixed", (uint8_t *)"CONTENT", sizeof content);
  blosc2_meta_add(schunk, "late", content, sizeof content);
  blosc2_vlmeta_update(schunk, "variable", content, 1, NULL);
  blosc2_vlmeta_add(schunk, "late", content, sizeof content, NULL);
  blosc2_vlmeta_delete(schunk, "variable");
  blosc2_schunk_free(schunk);
  uint8_t *after = read_file(file.path, &len_after);
  WRONG_IF(len_after < len, "the file is shorter");
  WRONG_IF(memcmp(before, after, (size_t)offset) != 0, "the first frame has changed");
  WRONG_IF(len_after != len || memcmp(before, after, (size_t)len) != 0, "the second frame has changed");
  free(before);
  free(after);
  remove_temporary(&file);
  return NULL;
}

/* Without a size of blocks, which the library chooses by itself, scattered items cannot be read. */
const char *scattered_items_need_a_blocksize(void) {
  blosc2_schunk *schunk = filled(false, NULL, 3);
  uint8_t bytes[CHUNK], found[3];
  int64_t positions[] = {CHUNK + 900, 5, 2 * CHUNK};
  WRONG_IF(blosc2_schunk_get_sparse_buffer(schunk, 3, positions, found) < 0, "they cannot be read");
  fill_chunk(bytes, 1);
  WRONG_IF(found[0] != bytes[900], "another item");
  fill_chunk(bytes, 0);
  WRONG_IF(found[1] != bytes[5], "another item");
  fill_chunk(bytes, 2);
  WRONG_IF(found[2] != bytes[0], "another item");
  blosc2_schunk_free(schunk);
  return NULL;
}

/* They are looked for in blocks of the super-chunk's size, whatever that of the chunk's blocks. */
const char *scattered_items_come_from_other_blocks(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  storage.cparams = &cparams;
  cparams.typesize = 4;
  cparams.blocksize = 4096;
  blosc2_schunk *schunk = blosc2_schunk_new(&storage);
  int32_t items[4096], found[3];
  static uint8_t chunk[sizeof items + BLOSC2_MAX_OVERHEAD];
  for (int i = 0; i < 4096; i++) items[i] = i;
  cparams.blocksize = 1024;
  blosc2_context *context = blosc2_create_cctx(cparams);
  WRONG_IF(blosc2_compress_ctx(context, items, sizeof items, chunk, sizeof chunk) <= 0, "it cannot be compressed");
  blosc2_free_ctx(context);
  WRONG_IF(blosc2_schunk_append_chunk(schunk, chunk, true) != 1, "it cannot be appended");
  int code = blosc2_schunk_get_sparse_buffer(schunk, 3, (int64_t[]){10, 1100, 2100}, found);
  WRONG_IF(code < 0, "they cannot be read");
  WRONG_IF(found[0] != 10 || found[1] != 1100 || found[2] != 2100, "other items");
  blosc2_schunk_free(schunk);
  return NULL;
}

/* The results of a read that fails stay unset when the index is at fault. */
const char *chunk_out_of_range_leaves_its_results_unset(void) {
  blosc2_schunk *schunk = filled(true, NULL, 1);
  uint8_t unset, *chunk = &unset;
  bool needs_free = true;
  WRONG_IF(blosc2_schunk_get_chunk(schunk, 1, &chunk, &needs_free) >= 0, "there is no such chunk");
  WRONG_IF(needs_free || chunk != NULL, "the caller is asked to free what it has not got");
  chunk = &unset;
  needs_free = true;
  WRONG_IF(blosc2_schunk_get_lazychunk(schunk, 1, &chunk, &needs_free) >= 0, "there is no such chunk");
  WRONG_IF(needs_free || chunk != NULL, "the caller is asked to free what it has not got");
  blosc2_schunk_free(schunk);
  return NULL;
}

const char *empty_path_is_read_in_front(void) {
  blosc2_schunk *schunk = new_schunk(false, "", 1);
  WRONG_IF(schunk != NULL, "a super-chunk was made nowhere");
  return NULL;
}

static const char *insert_with_a_variable(void) {
  setenv("BLOSC_TYPESIZE", "4", 1);
  blosc2_schunk *schunk = filled(true, NULL, 5);
  uint8_t *chunk;
  bool needs_free;
  WRONG_IF(blosc2_schunk_get_chunk(schunk, 0, &chunk, &needs_free) < 0, "it cannot be read");
  int64_t nchunks = blosc2_schunk_insert_chunk(schunk, 2, chunk, true);
  WRONG_IF(nchunks != 6, "a chunk cannot be inserted");
  for (int i = 0; i < 6; i++) {
    WRONG_IF(!holds(schunk, i, i < 2 ? i : i == 2 ? 0 : i - 1), "a chunk cannot be found any more");
  }
  blosc2_schunk_free(schunk);
  return NULL;
}

/* The index of a frame takes the size of its items from the environment. */
const char *environment_breaks_the_index(void) { return in_child(insert_with_a_variable); }

/* ---- Threads and handles ---- */

static __thread int jobs_of_this_thread;

typedef struct { void (*job)(void *); void *data; } job;

static void *run_job(void *each) {
  ((job *)each)->job(((job *)each)->data);
  return NULL;
}

static void run_jobs(void *unused, void (*run)(void *), int count, size_t size, void *data) {
  (void)unused;
  jobs_of_this_thread += count;
  pthread_t *threads = malloc((size_t)count * sizeof *threads);
  job *jobs = malloc((size_t)count * sizeof *jobs);
  for (int i = 0; i < count; i++) {
    jobs[i] = (job){run, (char *)data + (size_t)i * size};
    if (pthread_create(threads + i, NULL, run_job, jobs + i) != 0) abort();
  }
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  free(threads);
  free(jobs);
}

/* From now on counts the threads that calls on this thread ask for. Gives their number so far. */
int threads_of_calls(void) {
  blosc2_set_threads_callback(run_jobs, NULL);
  return jobs_of_this_thread;
}

/* With an index of several blocks these threads have work; they are started in any case. */
const char *change_of_a_frame_starts_four_threads(void) {
  enum { CHUNKS = 5000 };
  int before = threads_of_calls();
  blosc2_schunk *schunk = new_schunk(true, NULL, 1);
  WRONG_IF(blosc2_schunk_fill_special(schunk, CHUNKS * (int64_t)CHUNK, BLOSC2_SPECIAL_ZERO, CHUNK) < 0,
           "it cannot be filled");
  WRONG_IF(append(schunk, 0) != CHUNKS + 1, "a chunk cannot be appended");
  blosc2_schunk_free(schunk);
  WRONG_IF(threads_of_calls() != before, "there were threads, where one was asked for");
  return NULL;
}

enum { EACH = 50 };

static void *append_many(void *schunk) {
  for (int i = 0; i < EACH; i++) append(schunk, i);
  return NULL;
}

/* Each handle writes its chunk where it has last seen the end of the file. */
const char *two_handles_lose_chunks(void) {
  temporary file = new_temporary();
  blosc2_schunk_free(filled(true, file.path, 1));
  blosc2_schunk *one = blosc2_schunk_open(file.path), *two = blosc2_schunk_open(file.path);
  blosc2_schunk *handles[2] = {one, two};
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(threads + i, NULL, append_many, handles[i]);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  blosc2_schunk_free(one);
  blosc2_schunk_free(two);
  blosc2_schunk *all = blosc2_schunk_open(file.path);
  WRONG_IF(all == NULL, "the file is broken");
  int64_t nchunks = all->nchunks;
  blosc2_schunk_free(all);
  remove_temporary(&file);
  WRONG_IF(nchunks != 1 + 2 * EACH, "chunks were lost");
  return NULL;
}

typedef struct { blosc2_schunk *schunk; int first; bool wrong; } reading;

static void *read_chunks(void *each) {
  reading *read = each;
  for (int i = 0; i < 20000 && !read->wrong; i++) {
    read->wrong = !holds(read->schunk, (read->first + i) % 20, (read->first + i) % 20);
  }
  return NULL;
}

/* All readers of a super-chunk share one context. */
const char *threads_read_chunks_of_each_other(void) {
  enum { THREADS = 4 };
  blosc2_schunk *schunk = filled(true, NULL, 20);
  pthread_t threads[THREADS];
  reading readings[THREADS];
  bool wrong = false;
  for (int i = 0; i < THREADS; i++) {
    readings[i] = (reading){schunk, i * 5, false};
    pthread_create(threads + i, NULL, read_chunks, readings + i);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    wrong = wrong || readings[i].wrong;
  }
  blosc2_schunk_free(schunk);
  WRONG_IF(wrong, "a thread got other bytes, or an error");
  return NULL;
}

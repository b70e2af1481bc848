/* Loads the plugin of a codec when the program asks for it.
 *
 * Upstream loads one when data or parameters name it, by running Python. Here nothing is loaded
 * (build/patches, plugins-on-request) but inside blosc2_sys_load_codec, on the thread that calls it. */
#include "blosc-private.h"
#include "blosc2.h"

#if defined(_MSC_VER)
static __declspec(thread) int loading = 0;
#else
static __thread int loading = 0;
#endif

extern blosc2_codec g_codecs[256];
extern uint8_t g_ncodecs;
int fill_codec(blosc2_codec *codec);

int blosc2_sys_may_load_plugin(void) { return loading; }

int blosc2_sys_load_codec(uint8_t code) {
  for (int i = 0; i < g_ncodecs; i++) {
    blosc2_codec *codec = &g_codecs[i];
    if (codec->compcode != code) {
      continue;
    }
    if (codec->encoder != NULL && codec->decoder != NULL) {
      return BLOSC2_ERROR_SUCCESS;
    }
    loading = 1;
    int rc = fill_codec(codec);
    loading = 0;
    if (rc < 0) {
      /* What was found belongs to a library that has been closed again. */
      codec->encoder = NULL;
      codec->decoder = NULL;
    }
    return rc;
  }
  return BLOSC2_ERROR_CODEC_SUPPORT;
}

//! The edits that make upstream's sources safe to call, applied to a copy of them.
//!
//! Each edit names the exact text that it replaces. When upstream changes that text the build
//! stops here, so an edit can neither be lost nor applied to code that it was not written for.

use std::fs;
use std::path::Path;

use crate::fail;

struct Edit {
    /// The file, relative to the sources.
    file: &'static str,
    /// Why, and what upstream calls it where it has been reported.
    reason: &'static str,
    /// The text to replace, and how often it is there.
    anchor: &'static str,
    occurs: usize,
    replacement: &'static str,
}

const EDITS: &[Edit] = &[
    Edit {
        file: "blosc/blosc2.c",
        reason: "with three or more filters the pipeline took the caller's source as scratch space",
        anchor: "uint8_t* pipeline_forward(struct thread_context* thread_context, const int32_t bsize,",
        occurs: 1,
        replacement: "\
/* Like _cycle_buffers, but the first input never becomes a destination. */
static void cycle_scratch(const uint8_t *input, uint8_t **src, uint8_t **dest, uint8_t **tmp) {
  uint8_t *consumed = *src;
  *src = *dest;
  *dest = consumed == input ? *tmp : consumed;
}

uint8_t* pipeline_forward(struct thread_context* thread_context, const int32_t bsize,",
    },
    Edit {
        file: "blosc/blosc2.c",
        reason: "as above, after the prefilter",
        anchor: "    _cycle_buffers(&_src, &_dest, &_tmp);
  }

  /* Process the filter pipeline */",
        occurs: 1,
        replacement: "    cycle_scratch(src + offset, &_src, &_dest, &_tmp);
  }

  /* Process the filter pipeline */",
    },
    Edit {
        file: "blosc/blosc2.c",
        reason: "as above, after each filter",
        anchor: "    if (filters[i] != BLOSC_NOFILTER) {
      _cycle_buffers(&_src, &_dest, &_tmp);
    }
  }
  return _src;",
        occurs: 1,
        replacement: "    if (filters[i] != BLOSC_NOFILTER) {
      cycle_scratch(src + offset, &_src, &_dest, &_tmp);
    }
  }
  return _src;",
    },
    Edit {
        file: "blosc/blosc2.c",
        reason: "scratch buffers of the serial context were kept when only the typesize grew",
        anchor: "    else if (context->blocksize != context->serial_context->tmp_blocksize) {
      free_thread_context(context->serial_context);",
        occurs: 1,
        replacement: "    else if (context->blocksize != context->serial_context->tmp_blocksize ||
             (size_t)4 * (context->blocksize + context->typesize * (int32_t)sizeof(int32_t)) >
                 context->serial_context->tmp_nbytes) {
      free_thread_context(context->serial_context);",
    },
    Edit {
        file: "blosc/blosc2.c",
        reason: "as above, when one variable-length block is decoded",
        anchor: "
  else if (context->blocksize != context->serial_context->tmp_blocksize) {
    free_thread_context(context->serial_context);",
        occurs: 1,
        replacement: "
  else if (context->blocksize != context->serial_context->tmp_blocksize ||
           (size_t)4 * (context->blocksize + context->typesize * (int32_t)sizeof(int32_t)) >
               context->serial_context->tmp_nbytes) {
    free_thread_context(context->serial_context);",
    },
    Edit {
        file: "blosc/blosc2.c",
        reason: "as above, in getitem",
        anchor: "  if (header->blocksize > scontext->tmp_blocksize) {",
        occurs: 1,
        replacement: "  if (header->blocksize > scontext->tmp_blocksize ||
      (size_t)4 * ebsize > scontext->tmp_nbytes) {",
    },
    Edit {
        file: "blosc/blosc2.c",
        reason: "as above, when one block is decoded",
        anchor: "  if (context->blocksize > context->serial_context->tmp_blocksize) {",
        occurs: 1,
        replacement: "  if (context->blocksize > context->serial_context->tmp_blocksize ||
      (size_t)4 * ebsize > context->serial_context->tmp_nbytes) {",
    },
    Edit {
        file: "blosc/blosc2.c",
        reason: "as above, in the threads on Windows",
        anchor: "  if (blocksize > thcontext->tmp_blocksize) {",
        occurs: 1,
        replacement: "  if (blocksize > thcontext->tmp_blocksize ||
      (size_t)4 * ebsize > thcontext->tmp_nbytes) {",
    },
    Edit {
        file: "blosc/blosc2.c",
        reason: "as above, in the threads of the pool that all contexts share",
        anchor: "  if (blocksize <= thread_context->tmp_blocksize) {",
        occurs: 1,
        replacement: "  if (blocksize <= thread_context->tmp_blocksize &&
      (size_t)4 * ebsize <= thread_context->tmp_nbytes) {",
    },
    Edit {
        file: "blosc/blosc2.c",
        reason: "the header got the block size that was asked for, not the one in use",
        anchor: "(int32_t)(context->header_blocksize > 0 ? context->header_blocksize : context->blocksize);",
        occurs: 1,
        replacement: "(int32_t)((context->blosc2_flags2 & BLOSC2_VL_BLOCKS) ?
                                       context->header_blocksize : context->blocksize);",
    },
    Edit {
        file: "blosc/blosc2.c",
        reason: "when training a dictionary ended in a plain copy, the header went on saying so",
        anchor: "  blosc_set_timestamp(&last);

  if (!memcpyed) {
    /* Do the actual compression */",
        occurs: 1,
        replacement: "  context->dest[BLOSC2_CHUNK_FLAGS] = context->header_flags;
  blosc_set_timestamp(&last);

  if (!memcpyed) {
    /* Do the actual compression */",
    },
    Edit {
        file: "blosc/blosc2.c",
        reason: "a frame that names an unknown filter could not even be opened",
        anchor: "    if (context->filters[i] >= BLOSC_LAST_FILTER && context->filters[i] <= BLOSC2_DEFINED_FILTERS_STOP) {
      BLOSC_TRACE_ERROR(\"filter (%d) is not yet defined\",
                        context->filters[i]);
      free(context);
      return NULL;
    }
    if (context->filters[i] > BLOSC_LAST_REGISTERED_FILTER && context->filters[i] <= BLOSC2_GLOBAL_REGISTERED_FILTERS_STOP) {
      BLOSC_TRACE_ERROR(\"filter (%d) is not yet defined\",
                        context->filters[i]);
      free(context);
      return NULL;
    }
",
        occurs: 1,
        replacement: "    /* Filters are looked up when they run, which fails for unknown ones. */
",
    },
    Edit {
        file: "blosc/blosclz.c",
        reason: "the length of a match could overflow, and then be written (c-blosc2 #801)",
        anchor: "          len += code;
        } while (code == 255);",
        occurs: 1,
        replacement: "          len += code;
        } while (code == 255 && len <= maxout);",
    },
    Edit {
        file: "blosc/shuffle.c",
        reason: "undoing the bitshuffle of Blosc1 left the bytes after the last whole item unwritten",
        anchor: "          ((const void *) src, (void *) dest, blocksize / typesize, typesize);
      if (ret < 0) {
        // Some error in bitshuffle (should not happen)
        BLOSC_TRACE_ERROR(\"the impossible happened: the bitunshuffle filter failed!\");
        return ret;
      }
    }
    else {
      memcpy(dest, src, blocksize);",
        occurs: 1,
        replacement:
            "          ((const void *) src, (void *) dest, blocksize / typesize, typesize);
      if (ret < 0) {
        // Some error in bitshuffle (should not happen)
        BLOSC_TRACE_ERROR(\"the impossible happened: the bitunshuffle filter failed!\");
        return ret;
      }
      size_t whole = size * typesize;
      memcpy((uint8_t *) dest + whole, (const uint8_t *) src + whole, blocksize - whole);
    }
    else {
      memcpy(dest, src, blocksize);",
    },
    Edit {
        file: "blosc/frame.c",
        reason: "a chunk without data in a frame of variable chunks divided by a chunk size of zero",
        anchor: "    // Special value
    chunk_cbytes = BLOSC_EXTENDED_HEADER_LENGTH;
    int32_t chunksize_ = chunksize;",
        occurs: 1,
        replacement: "    // Special value
    if (chunksize <= 0) {
      return BLOSC2_ERROR_INVALID_HEADER;
    }
    chunk_cbytes = BLOSC_EXTENDED_HEADER_LENGTH;
    int32_t chunksize_ = chunksize;",
    },
    Edit {
        file: "blosc/frame.c",
        reason: "as above, for a lazy chunk, which opening a frame reads",
        anchor: "    // Special value
    lazychunk_cbytes = BLOSC_EXTENDED_HEADER_LENGTH;",
        occurs: 1,
        replacement: "    // Special value
    if (chunksize <= 0) {
      return BLOSC2_ERROR_INVALID_HEADER;
    }
    lazychunk_cbytes = BLOSC_EXTENDED_HEADER_LENGTH;",
    },
    Edit {
        file: "blosc/blosc2.c",
        reason: "the samples for a dictionary of LZ4 were copied onto themselves with memcpy",
        anchor: "memcpy(context->dict_buffer, samples_buffer, (size_t)dict_actual_size);",
        occurs: 3,
        replacement: "memmove(context->dict_buffer, samples_buffer, (size_t)dict_actual_size);",
    },
    Edit {
        file: "blosc/frame.c",
        reason: "each change of a frame started four threads, whatever the caller had asked for",
        anchor: "cparams.nthreads = 4;",
        occurs: 5,
        replacement: "cparams.nthreads = 1;",
    },
];

/// Copies what the build needs to `target`, with the edits when `hardened`.
pub(crate) fn copy_sources(source: &Path, target: &Path, hardened: bool) {
    for dir in ["include", "blosc", "plugins"] {
        copy_tree(&source.join(dir), &target.join(dir));
    }
    if hardened {
        for edit in EDITS {
            apply(edit, &target.join(edit.file));
        }
    }
}

fn apply(edit: &Edit, path: &Path) {
    let text = fs::read_to_string(path)
        .unwrap_or_else(|error| fail(&format!("cannot read {}: {error}", path.display())))
        .replace("\r\n", "\n");
    let found = text.matches(edit.anchor).count();
    if found != edit.occurs {
        fail(&format!(
            "an edit of {} no longer fits: its anchor occurs {found} times, expected {}.\n\
             Reason of the edit: {}.\nAnchor:\n{}",
            edit.file, edit.occurs, edit.reason, edit.anchor
        ));
    }
    write(path, &text.replace(edit.anchor, edit.replacement));
}

fn copy_tree(source: &Path, target: &Path) {
    let entries = fs::read_dir(source)
        .unwrap_or_else(|error| fail(&format!("cannot read {}: {error}", source.display())));
    for entry in entries {
        let entry = entry.unwrap_or_else(|error| fail(&format!("{}: {error}", source.display())));
        let (path, copy) = (entry.path(), target.join(entry.file_name()));
        if path.is_dir() {
            copy_tree(&path, &copy);
        } else if path.extension().is_some_and(|suffix| suffix == "c" || suffix == "h") {
            let content = fs::read_to_string(&path)
                .unwrap_or_else(|error| fail(&format!("cannot read {}: {error}", path.display())));
            write(&copy, &content);
        }
    }
}

fn write(path: &Path, content: &str) {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, content))
        .unwrap_or_else(|error| fail(&format!("cannot write {}: {error}", path.display())));
}

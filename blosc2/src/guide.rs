//! The guide: how to use this crate, by topic, with complete examples.
//!
//! | page | content |
//! |---|---|
//! | [quick start](quick_start) | the first programs |
//! | [arrays] | create, read, write and grow n-dimensional arrays |
//! | [compute] | reductions, elementwise operations and selections, block by block |
//! | [super-chunks](super_chunks) | chunks, items, metadata, streams |
//! | [files and durability](files) | memory, files and directories; durability of changes, locking, crash recovery |
//! | [threads] | several threads for one call, and several threads that share an array |
//! | [user-defined codecs and filters](user_defined) | Rust code in the compression pipeline |
//! | [custom storage](custom_storage) | frames in a database, in an archive or in other storage |
//! | [beyond one machine](beyond_one_machine) | object storage, Zarr and HDF5; operations that scale, and operations that do not |
//! | [SQL and many machines](sql) | queries over tables and arrays; what scales, and what does not |
//! | [untrusted input](untrusted_input) | guarantees for bytes, files, remote objects, plugins and several programs; limits on memory and time |
//! | [from Python to Rust](from_python) | the calls of python-blosc2 and their equivalents |
//! | [from C to Rust](from_c) | the functions of C-Blosc2 and their equivalents |
//! | [from other crates](from_rust) | the calls of `blosc2` 0.2, `blosc2-rs`, `blosc` and `zarrs`, and their equivalents |
//! | [which settings](settings) | codec, level and filters for an aim |
//! | [performance] | chunk and block shapes, codecs, threads, caches |
//! | [recipes] | arrays larger than memory with `ndarray`, compressed arrays in memory, other chunk shapes, appends, HDF5 |
//! | [FAQ](faq) | how do I ...? |
//! | [features] | what is supported, and by which crate |
//! | [limits] | sizes, changes, processes, platforms |
//! | [terms] | chunk, block, frame and other terms |
//! | [examples] | complete programs |

macro_rules! pages {
    ($($name:ident)*) => {$(
        #[doc = include_str!(concat!("../guide/", stringify!($name), ".md"))]
        pub mod $name {}
    )*};
}

pages! {
    quick_start arrays compute super_chunks files threads user_defined custom_storage beyond_one_machine sql untrusted_input from_python
    from_c from_rust settings performance recipes faq features limits terms
}

/// Complete programs, in the directory `examples` of the crate: `cargo run --example quickstart`.
///
/// Three examples need a feature: `metalayers` needs `msgpack`, `ndarray_basics` needs `ndarray`, and `structs` needs
/// `derive`. To run such an example: `cargo run --example structs --features derive`.
// The documentation tests do not compile these examples: cargo compiles them as examples, with their features. Only the
// documentation needs `examples`, which is a link in the repository: a checkout on Windows may not have it.
#[cfg(all(doc, not(doctest)))]
pub mod examples {
    macro_rules! examples {
        ($($name:ident: $title:literal)*) => {$(
            #[doc = $title]
            ///
            /// ```no_run
            #[doc = include_str!(concat!("../examples/", stringify!($name), ".rs"))]
            /// ```
            pub mod $name {}
        )*};
    }

    examples! {
        quickstart: "Writes an array to a file, and reads a part of it."
        ndarray_basics: "Creates, reads and changes an array; with the crate `ndarray`."
        orthogonal: "Reads with orthogonal indexing, points and masks."
        structs: "Stores structures, which are NumPy's structured dtypes."
        mean_over_time: "Computes the mean of an array that need not fit in memory."
        append_rows: "Appends rows to an array."
        rechunk: "Changes the chunk shape of an array, and prints the throughput and the peak memory."
        parallel_read: "Reads an array on several threads."
        compress_buffer: "Compresses and decompresses buffers."
        partial_decode: "Decompresses items and blocks of a chunk."
        dictionary: "Compresses with a dictionary."
        frame_append: "Appends to a file in each run of a program."
        frame_in_memory: "Converts a super-chunk to bytes and back."
        many_readers: "Reads a file from several threads while another thread appends to it."
        metalayers: "Stores metadata in the same file as the data."
        stream: "Streams data of any length through a frame."
        custom_codec: "Defines a user-defined codec."
        custom_filter: "Defines a user-defined filter."
        custom_storage: "Defines a custom storage backend."
        demo: "Reads files of C-Blosc2 and Python, and compares codecs and filters."
    }
}

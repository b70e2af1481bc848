//! The guide: how to use this crate, by topic, with complete examples.
//!
//! | page | content |
//! |---|---|
//! | [quick start](quick_start) | the first programs |
//! | [arrays] | create, read, write and grow n-dimensional arrays |
//! | [super-chunks](super_chunks) | chunks, items, metadata, streams |
//! | [files and durability](files) | places, atomic changes, locks, crash recovery |
//! | [threads] | threads within a call and over many calls |
//! | [user-defined codecs and filters](user_defined) | Rust code in the compression pipeline |
//! | [custom storage](custom_storage) | frames in other places than files |
//! | [untrusted input](untrusted_input) | what is checked, and limits |
//! | [from Python to Rust](from_python) | the calls of python-blosc2 |
//! | [from C to Rust](from_c) | the functions of C-Blosc2 |
//! | [performance] | shapes, codecs, threads, caches |
//! | [FAQ](faq) | how do I ...? |
//! | [examples] | complete programs |

macro_rules! pages {
    ($($name:ident)*) => {$(
        #[doc = include_str!(concat!("../guide/", stringify!($name), ".md"))]
        pub mod $name {}
    )*};
}

pages! {
    quick_start arrays super_chunks files threads user_defined custom_storage untrusted_input from_python from_c
    performance faq
}

/// Complete programs. The folder `examples` of the crate holds them: `cargo run --example quickstart`.
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
        orthogonal: "Selects lists of indices on several axes."
        structs: "Stores structures; their fields are NumPy's."
        append_rows: "Appends rows to an array."
        parallel_read: "Reads an array on several threads."
        compress_buffer: "Compresses and decompresses buffers."
        partial_decode: "Decompresses items and blocks of a chunk."
        dictionary: "Compresses with a dictionary."
        frame_append: "Appends to a file in each run of a program."
        frame_in_memory: "Converts a super-chunk to bytes and back."
        many_readers: "Reads a file that another program writes."
        metalayers: "Stores metadata beside the data."
        stream: "Streams data of any length through a frame."
        custom_codec: "Defines a codec."
        custom_filter: "Defines a filter."
        custom_storage: "Defines a storage backend."
        demo: "Reads real files, and compares codecs and filters."
    }
}

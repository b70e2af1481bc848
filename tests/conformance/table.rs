//! The table: every row with its objects. All writers and readers work on these objects.

use blosc2::Value;
use blosc2_format::chunk::Special;

use crate::common::{KINDS, Kind as Data, Rng, data, records};
use crate::containers::{Column, Container, Node};
use crate::object::{
    Array, BITSHUFFLE, BLOSCLZ, BYTEDELTA, DELTA, Fill, INT_TRUNC, Kind, LZ4, LZ4HC, Layer, Made,
    NDCELL, NDLZ, NDMEAN, Object, PLACES, Params, Part, Place, SHUFFLE, TRUNC_PREC, ZLIB, ZSTD,
};

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) section: &'static str,
    pub(crate) name: String,
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    pub(crate) objects: Vec<Object>,
    section: &'static str,
    rng: Rng,
}

const CODECS: [(u8, &str); 5] =
    [(BLOSCLZ, "BloscLZ"), (LZ4, "LZ4"), (LZ4HC, "LZ4HC"), (ZLIB, "zlib"), (ZSTD, "Zstandard")];

/// The dtypes as they are stored, with the bytes of an item.
const DTYPES: [(&str, &[(&str, usize)]); 12] = [
    ("booleans and bytes", &[("|b1", 1), ("|i1", 1), ("|u1", 1)]),
    (
        "integers, little-endian",
        &[("<i2", 2), ("<u2", 2), ("<i4", 4), ("<u4", 4), ("<i8", 8), ("<u8", 8)],
    ),
    (
        "integers, big-endian",
        &[(">i2", 2), (">u2", 2), (">i4", 4), (">u4", 4), (">i8", 8), (">u8", 8)],
    ),
    ("floats, little-endian", &[("<f2", 2), ("<f4", 4), ("<f8", 8), ("<f16", 16)]),
    ("floats, big-endian", &[(">f2", 2), (">f4", 4), (">f8", 8)]),
    ("complex numbers", &[("<c8", 8), (">c8", 8), ("<c16", 16), (">c16", 16), ("<c32", 32)]),
    ("bytes of a fixed length", &[("|S1", 1), ("|S10", 10), ("|S255", 255), ("|S256", 256)]),
    ("text of a fixed length", &[("<U1", 4), ("<U10", 40), (">U3", 12), ("<U70", 280)]),
    (
        "dates and durations",
        &[
            ("<M8[ns]", 8),
            (">M8[us]", 8),
            ("<M8[D]", 8),
            ("<M8[25s]", 8),
            ("<M8", 8),
            ("<m8[ms]", 8),
            ("<m8", 8),
        ],
    ),
    ("raw bytes", &[("|V1", 1), ("|V5", 5), ("|V300", 300)]),
    (
        "structures",
        &[
            ("[('a', '<i4'), ('b', '<f8')]", 12),
            ("[('a', '>i4'), ('c', 'S3'), ('d', '<U2')]", 15),
            ("[(('Title A', 'a'), '<i4'), ('größe', 'u1')]", 5),
            ("[('when', '<M8[ns]'), ('z', '<c16'), ('raw', 'V7')]", 31),
            ("[('name', 'S290'), ('n', '<i2')]", 292),
        ],
    ),
    (
        "nested structures and fields of arrays",
        &[("[('p', [('x', '<f4'), ('y', '<f4', (3,))]), ('ok', '?')]", 17)],
    ),
];

/// The edges of shapes: shape, chunk shape, block shape.
type Shapes = (&'static str, &'static [u64], &'static [u64], &'static [u64]);

const SHAPES: [Shapes; 16] = [
    ("no dimensions", &[], &[], &[]),
    ("no items", &[0], &[4], &[2]),
    ("no items, several dimensions", &[5, 0, 3], &[2, 1, 3], &[1, 1, 2]),
    ("one item", &[1], &[1], &[1]),
    ("one item, several dimensions", &[1, 1, 1], &[1, 1, 1], &[1, 1, 1]),
    ("one dimension", &[1000], &[250], &[50]),
    ("one dimension, nothing a multiple", &[997], &[300], &[64]),
    ("two dimensions, all multiples", &[48, 36], &[16, 12], &[8, 4]),
    ("two dimensions, nothing a multiple", &[33, 27], &[16, 20], &[7, 9]),
    ("three dimensions, nothing a multiple", &[9, 10, 11], &[4, 10, 5], &[2, 5, 3]),
    ("five dimensions", &[5, 3, 4, 2, 6], &[2, 3, 3, 2, 5], &[2, 2, 1, 1, 3]),
    ("chunks larger than the array", &[8, 3], &[12, 5], &[5, 5]),
    ("chunks of one item", &[3, 4], &[1, 1], &[1, 1]),
    ("long axis of size 1", &[1, 400, 1], &[1, 90, 1], &[1, 16, 1]),
    (
        "16 dimensions",
        &[2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3],
        &[1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2],
        &[1; 16],
    ),
    (
        "16 dimensions, several chunks",
        &[2; 16],
        &[2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 2, 1],
        &[1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 1, 2, 1],
    ),
];

impl Table {
    /// Makes the table, always the same one.
    pub(crate) fn new() -> Self {
        let mut table = Self { rows: Vec::new(), objects: Vec::new(), section: "", rng: Rng(2026) };
        table.section = "Chunks";
        table.chunks();
        table.section = "Super-chunks";
        table.super_chunks();
        table.section = "Arrays";
        table.arrays();
        table.section = "Containers of Python";
        table.containers();
        table
    }

    fn row(&mut self, name: impl Into<String>) {
        self.rows.push(Row { section: self.section, name: name.into() });
    }

    fn add(&mut self, params: Params, kind: Kind, place: Place) -> &mut Object {
        let (number, row) = (self.objects.len(), self.rows.len() - 1);
        let (meta, vlmeta) = (Vec::new(), Vec::new());
        self.objects.push(Object { number, row, params, kind, place, meta, vlmeta });
        self.objects.last_mut().unwrap()
    }

    fn chunk(&mut self, params: Params, part: Part) {
        self.add(params, Kind::Chunk(part), Place::File);
    }

    /// Bytes of one of the kinds, in turn.
    fn data(&mut self, len: usize) -> Vec<u8> {
        let kind = KINDS[self.objects.len() % KINDS.len()];
        data(kind, len, self.rng.next())
    }

    /// Bytes that compress well.
    fn runs(&mut self, len: usize) -> Vec<u8> {
        data(Data::Runs, len, self.rng.next())
    }

    fn chunks(&mut self) {
        for (codec, name) in CODECS {
            self.row(format!("{name}, levels 0 to 9"));
            for level in 0..10 {
                for kind in [Data::Random, Data::Runs, Data::Ramp, Data::Mixed] {
                    let bytes = data(kind, 8000, self.rng.next());
                    let params = Params::new(codec, 4, &[(SHUFFLE, 0)]).level(level);
                    self.chunk(params.blocksize(2000), Part::Data(bytes));
                }
            }
        }
        self.filters();
        for (split, name) in
            [(1, "always"), (2, "never"), (3, "automatic"), (4, "forward compatible")]
        {
            self.row(format!("split mode: {name}"));
            for (codec, _) in CODECS {
                for typesize in [1, 2, 8, 16, 17, 40] {
                    let bytes = self.data(typesize * 700);
                    let params = Params::new(codec, typesize, &[(SHUFFLE, 0)]).split(split);
                    self.chunk(params, Part::Data(bytes));
                }
            }
        }
        for (name, typesizes) in [
            ("items of 1 byte", &[1][..]),
            ("items of 2 to 254 bytes", &[2, 3, 7, 15, 16, 31, 100, 254]),
            ("items of 255 bytes", &[255]),
            ("items of 256 bytes", &[256]),
            ("items of 257 bytes and more", &[257, 1000, 70_000]),
        ] {
            self.row(name);
            for (codec, _) in CODECS {
                for &typesize in typesizes {
                    for filter in [SHUFFLE, BITSHUFFLE] {
                        let bytes = self.data(typesize * (9000 / typesize).max(1));
                        let params = Params::new(codec, typesize, &[(filter, 0)]);
                        self.chunk(params, Part::Data(bytes));
                    }
                }
            }
        }
        for (name, lens) in [
            ("no data", &[0][..]),
            ("one byte", &[1]),
            ("less than an item", &[5, 7]),
            ("one item", &[8]),
            ("length not a multiple of the item", &[9, 127, 4003, 9999]),
            ("length not a multiple of the block", &[4008, 12_008]),
            ("more than a megabyte", &[1_100_000]),
        ] {
            self.row(name);
            for (codec, _) in CODECS {
                for &len in lens {
                    let bytes = self.data(len);
                    let mut params = Params::new(codec, 8, &[(SHUFFLE, 0)]);
                    if len < 1_000_000 {
                        params = params.blocksize(4000);
                    }
                    self.chunk(params, Part::Data(bytes));
                }
            }
        }
        self.row("block sizes from one item to the chunk");
        for (codec, _) in CODECS {
            for blocksize in [4, 16, 100, 1000, 4096, 9000] {
                let bytes = self.data(9000);
                let params = Params::new(codec, 4, &[(SHUFFLE, 0)]).blocksize(blocksize);
                self.chunk(params, Part::Data(bytes));
            }
        }
        self.row("dictionaries");
        for codec in [LZ4, LZ4HC, ZSTD] {
            for blocksize in [512, 2048, 8192] {
                for level in [1, 5, 9] {
                    let mut params = Params::new(codec, 1, &[]).level(level).blocksize(blocksize);
                    params.dictionary = true;
                    self.chunk(params, Part::Data(records(100_000)));
                }
            }
        }
        self.row("variable-length blocks");
        for (codec, _) in CODECS {
            for typesize in [1, 4, 8] {
                for lens in [&[1][..], &[10, 1, 300], &[2000, 5, 700, 1, 1, 900]] {
                    let block = |table: &mut Self, len: &usize| table.data(len * typesize);
                    let blocks = lens.iter().map(|len| block(self, len)).collect();
                    let params = Params::new(codec, typesize, &[(SHUFFLE, 0)]);
                    self.chunk(params, Part::Blocks(blocks));
                }
            }
        }
        for (special, name) in [
            (Special::Zeros, "special: zeros"),
            (Special::Nan, "special: NaN"),
            (Special::Value, "special: repeated item"),
            (Special::Uninit, "special: uninitialized"),
        ] {
            self.row(name);
            for typesize in [1, 4, 8, 16, 255] {
                if special == Special::Nan && ![4, 8].contains(&typesize) {
                    continue;
                }
                for items in [1, 10, 3000] {
                    let value = data(Data::Random, typesize, self.rng.next());
                    let params = Params::new(ZSTD, typesize, &[(SHUFFLE, 0)]);
                    let nbytes = items * typesize;
                    self.chunk(params, Part::Special { special, nbytes, value });
                }
            }
        }
        self.row("chunks of Blosc1");
        for (codec, _) in CODECS {
            for filters in [&[][..], &[(SHUFFLE, 0)], &[(BITSHUFFLE, 0)]] {
                for (level, typesize) in [(0, 4), (1, 1), (5, 4), (9, 8), (5, 255)] {
                    let bytes = self.data(9000);
                    let mut params = Params::new(codec, typesize, filters).level(level);
                    params.blosc1 = true;
                    self.chunk(params, Part::Data(bytes));
                }
            }
        }
    }

    fn filters(&mut self) {
        type Filters = fn(usize) -> Vec<(u8, u8)>;
        let rows: [(&str, &[usize], Filters); 14] = [
            ("no filter", &[1, 2, 4, 7, 8, 300], |_| vec![]),
            ("shuffle", &[1, 2, 3, 4, 7, 8, 16, 100], |_| vec![(SHUFFLE, 0)]),
            ("shuffle of 3 bytes", &[1, 4, 6, 8, 300], |_| vec![(SHUFFLE, 3)]),
            ("bitshuffle", &[1, 2, 3, 4, 7, 8, 16, 100], |_| vec![(BITSHUFFLE, 0)]),
            ("delta", &[1, 2, 3, 4, 7, 8, 16], |_| vec![(DELTA, 0)]),
            ("delta, shuffle", &[1, 2, 4, 8, 16], |_| vec![(DELTA, 0), (SHUFFLE, 0)]),
            ("delta, bitshuffle", &[1, 2, 4, 8], |_| vec![(DELTA, 0), (BITSHUFFLE, 0)]),
            ("bytedelta", &[2, 4, 8, 100], |typesize| vec![(BYTEDELTA, typesize as u8)]),
            ("shuffle, bytedelta", &[2, 3, 4, 8, 100], |typesize| {
                vec![(SHUFFLE, 0), (BYTEDELTA, typesize as u8)]
            }),
            ("six filters", &[2, 4, 8], |typesize| {
                let bytedelta = (BYTEDELTA, typesize as u8);
                vec![
                    (SHUFFLE, 0),
                    (SHUFFLE, 2),
                    bytedelta,
                    (BITSHUFFLE, 0),
                    (SHUFFLE, 3),
                    bytedelta,
                ]
            }),
            ("truncated precision: bits kept", &[4, 8], |_| vec![(TRUNC_PREC, 10), (SHUFFLE, 0)]),
            ("truncated precision: bits cleared", &[4, 8], |_| {
                vec![(TRUNC_PREC, -7_i8 as u8), (BITSHUFFLE, 0)]
            }),
            ("truncated integers: bits kept", &[1, 2, 4, 8], |_| {
                vec![(INT_TRUNC, 5), (SHUFFLE, 0)]
            }),
            ("truncated integers: bits cleared", &[1, 2, 4, 8], |_| {
                vec![(INT_TRUNC, -3_i8 as u8), (SHUFFLE, 0)]
            }),
        ];
        for (name, typesizes, filters) in rows {
            self.row(name);
            for &typesize in typesizes {
                for (codec, _) in CODECS {
                    for blocks in [1, 20] {
                        let filters = filters(typesize);
                        let is_lossy = matches!(filters.first(), Some((TRUNC_PREC | INT_TRUNC, _)));
                        let blocksize = match (blocks, is_lossy) {
                            (1, _) => 0,
                            (_, true) => 1024,
                            _ => 64 * typesize,
                        };
                        let len = typesize * (6000 / typesize).max(5);
                        // Lossy filters lose nothing where the codec gains nothing.
                        let bytes = if is_lossy { self.runs(len) } else { self.data(len) };
                        let params = Params::new(codec, typesize, &filters).blocksize(blocksize);
                        self.chunk(params, Part::Data(bytes));
                    }
                }
            }
        }
    }

    fn super_chunks(&mut self) {
        for place in PLACES {
            self.row(place.name());
            for (codec, _) in CODECS {
                for typesize in [1, 4, 8, 255, 300] {
                    for count in [1, 3] {
                        let params = Params::new(codec, typesize, &[(SHUFFLE, 0)]);
                        let len = typesize * (3000 / typesize).max(1);
                        self.equal_chunks(params, place, len, count, 0);
                    }
                }
            }
        }
        self.row("no chunks");
        for place in PLACES {
            for typesize in [1, 8] {
                let params = Params::new(ZSTD, typesize, &[(SHUFFLE, 0)]);
                self.equal_chunks(params, place, 0, 0, 0);
            }
        }
        self.row("short last chunk");
        for place in PLACES {
            for (typesize, last) in [(1, 1), (4, 400), (8, 8), (7, 700)] {
                let params = Params::new(LZ4, typesize, &[(SHUFFLE, 0)]);
                self.equal_chunks(params, place, 140 * typesize, 4, last);
            }
        }
        self.row("chunks of one byte or item");
        for place in PLACES {
            for typesize in [1, 4] {
                let params = Params::new(BLOSCLZ, typesize, &[]);
                self.equal_chunks(params, place, typesize, 40, 0);
            }
        }
        self.row("thousands of chunks, an index of several blocks");
        for place in [Place::Frame, Place::File, Place::Offset] {
            let params = Params::new(LZ4, 4, &[(SHUFFLE, 0)]);
            self.equal_chunks(params, place, 8, 5000, 4);
        }
        self.row("levels 0 to 9");
        for level in 0..10 {
            for place in PLACES {
                let codec = CODECS[level as usize % CODECS.len()].0;
                let params = Params::new(codec, 4, &[(BITSHUFFLE, 0)]).level(level);
                self.equal_chunks(params, place, 4000, 2, 0);
            }
        }
        self.row("every pipeline of filters");
        let pipelines: [&[(u8, u8)]; 8] = [
            &[],
            &[(SHUFFLE, 3)],
            &[(DELTA, 0)],
            &[(DELTA, 0), (SHUFFLE, 0)],
            &[(SHUFFLE, 0), (BYTEDELTA, 4)],
            &[(BITSHUFFLE, 0), (SHUFFLE, 0), (BITSHUFFLE, 0)],
            &[(TRUNC_PREC, 9), (SHUFFLE, 0)],
            &[(INT_TRUNC, 6), (BITSHUFFLE, 0)],
        ];
        for filters in pipelines {
            for place in PLACES {
                let params = Params::new(ZSTD, 4, filters);
                let is_lossy = params.has(TRUNC_PREC) || params.has(INT_TRUNC);
                let chunk =
                    |table: &mut Self| if is_lossy { table.runs(4000) } else { table.data(4000) };
                let parts = (0..2).map(|_| Part::Data(chunk(self))).collect();
                self.add(params, Kind::Parts(parts), place);
            }
        }
        self.row("variable-length chunks");
        for place in PLACES {
            for (codec, _) in CODECS {
                let part = |table: &mut Self, len: usize| Part::Data(table.data(4 * len));
                let parts = [300, 1, 1000, 20, 1].map(|len| part(self, len)).to_vec();
                self.add(Params::new(codec, 4, &[(SHUFFLE, 0)]), Kind::Parts(parts), place);
            }
        }
        self.row("variable-length blocks");
        for place in PLACES {
            for (codec, _) in CODECS {
                let part = |table: &mut Self, lens: &[usize]| {
                    Part::Blocks(lens.iter().map(|len| table.data(4 * len)).collect())
                };
                let lens: [&[usize]; 3] = [&[300, 1, 50], &[7], &[1, 1, 1, 900]];
                let parts = lens.map(|lens| part(self, lens)).to_vec();
                self.add(Params::new(codec, 4, &[(SHUFFLE, 0)]), Kind::Parts(parts), place);
            }
        }
        self.row("dictionaries");
        for place in PLACES {
            for codec in [LZ4, LZ4HC, ZSTD] {
                let mut params = Params::new(codec, 1, &[]).blocksize(4096);
                params.dictionary = true;
                let parts = (0..2).map(|part| Part::Data(records(90_000 + 10_000 * part)));
                self.add(params, Kind::Parts(parts.collect()), place);
            }
        }
        for (special, name) in [
            (Special::Zeros, "special: zeros"),
            (Special::Nan, "special: NaN"),
            (Special::Value, "special: repeated item"),
            (Special::Uninit, "special: uninitialized"),
        ] {
            self.row(name);
            for place in PLACES {
                for (typesize, items, chunk) in [(4, 2300, 1000), (8, 1000, 1000), (8, 5, 2)] {
                    let value = match special {
                        // The number that Python's function receives for the item.
                        Special::Value if typesize == 4 => 7_i32.to_le_bytes().to_vec(),
                        _ => vec![0; typesize],
                    };
                    let value = match (special, typesize) {
                        (Special::Value, 8) => 2.5_f64.to_le_bytes().to_vec(),
                        _ => value,
                    };
                    let params = Params::new(ZSTD, typesize, &[(SHUFFLE, 0)]);
                    self.add(params, Kind::Fill(Fill { special, items, chunk, value }), place);
                }
            }
        }
        self.row("fixed metalayers");
        self.row("variable-length metalayers");
        let row = self.rows.len() - 1;
        for place in PLACES {
            for count in [1, 2, 15] {
                let params = Params::new(ZSTD, 4, &[(SHUFFLE, 0)]);
                let layers = layers(&mut self.rng, count, false);
                let object = self.equal_chunks(params.clone(), place, 400, 2, 0);
                (object.meta, object.row) = (layers, row - 1);
                let layers = self::layers(&mut self.rng, count + 1, true);
                self.equal_chunks(params, place, 400, 2, 0).vlmeta = layers;
            }
        }
        self.row("metalayers of several kilobytes, or without content in them");
        for place in PLACES {
            let params = Params::new(ZSTD, 1, &[(SHUFFLE, 0)]);
            let values: [Value; 4] =
                ["x".repeat(6000).into(), self.data(9000).into(), "".into(), Value::None];
            let named = values.into_iter().enumerate();
            let layers: Vec<Layer> =
                named.map(|(number, value)| (format!("layer {number}"), value)).collect();
            let object = self.equal_chunks(params, place, 400, 1, 0);
            (object.meta, object.vlmeta) = (layers.clone(), layers);
        }
        self.row("split modes");
        for (number, place) in PLACES.into_iter().enumerate() {
            for split in 1..=3 {
                let codec = CODECS[(number + usize::from(split)) % CODECS.len()].0;
                let params = Params::new(codec, 8, &[(SHUFFLE, 0)]).split(split);
                self.equal_chunks(params, place, 8000, 2, 0);
            }
        }
    }

    /// A super-chunk of chunks of `len` bytes, the last of `last` bytes if that is not 0.
    fn equal_chunks(
        &mut self,
        params: Params,
        place: Place,
        len: usize,
        count: usize,
        last: usize,
    ) -> &mut Object {
        let mut parts = Vec::new();
        for number in 0..count {
            let len = if number + 1 == count && last > 0 { last } else { len };
            parts.push(Part::Data(self.data(len)));
        }
        self.add(params, Kind::Parts(parts), place)
    }

    fn arrays(&mut self) {
        let pipelines: [&[(u8, u8)]; 5] = [
            &[(SHUFFLE, 0)],
            &[(BITSHUFFLE, 0)],
            &[],
            &[(DELTA, 0), (SHUFFLE, 0)],
            &[(SHUFFLE, 3), (BITSHUFFLE, 0)],
        ];
        let mut count = 0;
        for (name, dtypes) in DTYPES {
            self.row(format!("dtypes: {name}"));
            for &(dtype, typesize) in dtypes {
                for (step, place) in PLACES.into_iter().enumerate() {
                    // Each dtype meets each storage, codec and pipeline, and each codec each pipeline.
                    let turn = count / PLACES.len();
                    let codec = CODECS[(turn + step) % CODECS.len()].0;
                    let filters = pipelines[(2 * turn + step) % pipelines.len()];
                    let params = Params::new(codec, typesize, filters).level(count as u8 % 10);
                    let shapes = (&[11, 7][..], &[4, 5][..], &[2, 3][..]);
                    self.array(params, place, dtype, shapes);
                    count += 1;
                }
            }
        }
        for (name, shape, chunks, blocks) in SHAPES {
            self.row(format!("shapes: {name}"));
            for (number, (dtype, typesize)) in
                [("|u1", 1), ("<f4", 4), ("|S7", 7), ("|S255", 255), ("|S256", 256)]
                    .into_iter()
                    .enumerate()
            {
                // Of 16 dimensions, large items would be many megabytes.
                if name.ends_with("several chunks") && typesize > 7 {
                    continue;
                }
                let params = Params::new(LZ4, typesize, &[(SHUFFLE, 0)]);
                for place in [PLACES[number % 5], PLACES[(number + 2) % 5]] {
                    self.array(params.clone(), place, dtype, (shape, chunks, blocks));
                }
            }
        }
        for (codec, name) in CODECS {
            self.row(format!("{name}, levels and filters"));
            let shapes = (&[40, 30][..], &[16, 30][..], &[8, 7][..]);
            for level in 0..10 {
                let params = Params::new(codec, 4, &[(SHUFFLE, 0)]).level(level);
                self.array(params, PLACES[usize::from(level) % 5], "<i4", shapes);
            }
            for (number, filters) in [
                &[][..],
                &[(SHUFFLE, 3)],
                &[(BITSHUFFLE, 0)],
                &[(DELTA, 0)],
                &[(DELTA, 0), (SHUFFLE, 0)],
                &[(DELTA, 0), (BITSHUFFLE, 0)],
                &[(BYTEDELTA, 4)],
                &[(SHUFFLE, 0), (BYTEDELTA, 4)],
                &[(TRUNC_PREC, 10), (SHUFFLE, 0)],
            ]
            .into_iter()
            .enumerate()
            {
                let params = Params::new(codec, 4, filters);
                self.array(params, PLACES[number % 5], "<f4", shapes);
            }
        }
        self.row("dictionaries");
        for codec in [LZ4, LZ4HC, ZSTD] {
            for place in PLACES {
                let mut params = Params::new(codec, 1, &[]);
                params.dictionary = true;
                let array = Array {
                    dtype: "|u1".into(),
                    shape: vec![300, 400],
                    chunks: vec![200, 400],
                    blocks: vec![10, 400],
                    made: Made::Items(records(120_000)),
                };
                self.add(params, Kind::Array(array), place);
            }
        }
        self.row("NDLZ");
        for (side, place) in [4, 8].into_iter().flat_map(|side| PLACES.map(|place| (side, place))) {
            let mut params = Params::new(NDLZ, 1, &[]);
            params.codec_meta = side;
            for shapes in [
                (&[60, 50][..], &[40, 32][..], &[16, 16][..]),
                (&[17, 100][..], &[17, 64][..], &[17, 33][..]),
            ] {
                self.array(params.clone(), place, "|u1", shapes);
            }
        }
        for (filter, name) in [(NDCELL, "NDCELL"), (NDMEAN, "NDMEAN, of cells of one value")] {
            self.row(name);
            for place in PLACES {
                for (dtype, typesize) in [("<f4", 4), ("<f8", 8)] {
                    for codec in [LZ4, ZSTD] {
                        let params = Params::new(codec, typesize, &[(filter, 4)]);
                        self.cells(params, place, dtype);
                    }
                }
            }
        }
        for (special, name) in [
            (Special::Zeros, "special: zeros"),
            (Special::Nan, "special: NaN"),
            (Special::Value, "special: repeated item"),
            (Special::Uninit, "special: uninitialized"),
        ] {
            self.row(name);
            for (dtype, typesize) in
                [("|u1", 1), ("<i4", 4), ("<f4", 4), ("<f8", 8), ("<c16", 16), ("|S255", 255)]
            {
                if special == Special::Nan && !dtype.starts_with("<f") {
                    continue;
                }
                for place in PLACES {
                    let value = match dtype {
                        // NumPy's bytes end at the last byte that is not 0.
                        "|S255" => vec![65; 255],
                        _ => data(Data::Random, typesize, self.rng.next()),
                    };
                    let array = Array {
                        dtype: dtype.into(),
                        shape: vec![50, 40],
                        chunks: vec![16, 40],
                        blocks: vec![7, 9],
                        made: Made::Special(special, value),
                    };
                    let params = Params::new(ZSTD, typesize, &[(SHUFFLE, 0)]);
                    self.add(params, Kind::Array(array), place);
                }
            }
        }
        self.row("fixed and variable-length metalayers");
        for place in PLACES {
            for count in [1, 3, 14] {
                let params = Params::new(ZSTD, 4, &[(SHUFFLE, 0)]);
                let (meta, vlmeta) =
                    (layers(&mut self.rng, count, false), layers(&mut self.rng, count + 2, true));
                let object = self.array(params, place, "<i4", (&[20, 30], &[7, 30], &[7, 11]));
                (object.meta, object.vlmeta) = (meta, vlmeta);
            }
        }
        self.row("thousands of chunks");
        for place in [Place::Frame, Place::File, Place::Offset] {
            let params = Params::new(LZ4, 4, &[(SHUFFLE, 0)]);
            self.array(params, place, "<i4", (&[5000], &[2], &[2]));
        }
        self.row("files of NumPy (.npy)");
        for dtype in ["|b1", "|u1", "<i4", ">i4", "<f8", "<c16", "<U10", "|S10", "<M8[ns]"] {
            for shape in [&[][..], &[0], &[7], &[3, 5], &[2, 0, 4], &[2, 3, 4, 5]] {
                let typesize = DTYPES.iter().flat_map(|(_, dtypes)| dtypes.iter());
                let typesize = typesize.clone().find(|each| each.0 == dtype).unwrap().1;
                let made = Made::Items(self.items(dtype, typesize, shape));
                let array = Array {
                    dtype: dtype.into(),
                    shape: shape.to_vec(),
                    chunks: Vec::new(),
                    blocks: Vec::new(),
                    made,
                };
                self.add(Params::new(ZSTD, typesize, &[]), Kind::Npy(array), Place::File);
            }
        }
    }

    /// An array of shape, chunk shape and block shape.
    fn array(
        &mut self,
        params: Params,
        place: Place,
        dtype: &str,
        (shape, chunks, blocks): (&[u64], &[u64], &[u64]),
    ) -> &mut Object {
        let items = match params.has(TRUNC_PREC) {
            true => self.runs(shape.iter().product::<u64>() as usize * params.typesize),
            false => self.items(dtype, params.typesize, shape),
        };
        let array = Array {
            dtype: dtype.into(),
            shape: shape.to_vec(),
            chunks: chunks.to_vec(),
            blocks: blocks.to_vec(),
            made: Made::Items(items),
        };
        self.add(params, Kind::Array(array), place)
    }

    /// Bytes that are items of this dtype.
    fn items(&mut self, dtype: &str, typesize: usize, shape: &[u64]) -> Vec<u8> {
        let mut bytes = self.data(shape.iter().product::<u64>() as usize * typesize);
        match dtype.as_bytes() {
            [b'|', b'b', ..] => bytes.iter_mut().for_each(|byte| *byte &= 1),
            [order, b'U', ..] => {
                // Characters that exist.
                for character in bytes.chunks_exact_mut(4) {
                    let code = 32 + u32::from(character[0]) * 40;
                    character.copy_from_slice(&match order {
                        b'<' => code.to_le_bytes(),
                        _ => code.to_be_bytes(),
                    });
                }
            }
            _ => {}
        }
        bytes
    }

    /// An array of floats with one value in each cell of 4 items a side. All sizes are multiples of that.
    fn cells(&mut self, params: Params, place: Place, dtype: &str) {
        let [rows, columns] = [48, 32];
        let bytes = (0..rows * columns).flat_map(|item| {
            let value = (item / columns / 4 * (columns / 4) + item % columns / 4) % 50;
            match params.typesize {
                4 => (value as f32).to_le_bytes().to_vec(),
                _ => (value as f64).to_le_bytes().to_vec(),
            }
        });
        let array = Array {
            dtype: dtype.into(),
            shape: vec![rows, columns],
            chunks: vec![16, 32],
            blocks: vec![8, 16],
            made: Made::Items(bytes.collect()),
        };
        self.add(params, Kind::Array(array), place);
    }

    fn containers(&mut self) {
        let places = [Place::File, Place::Directory, Place::Frame];
        self.row("ObjectArray");
        for place in places {
            for values in [Vec::new(), vec![Value::None], values(), many_values(&mut self.rng)] {
                self.container(Container::Objects(values), place);
            }
        }
        self.row("BatchArray");
        for place in places {
            for per_block in [1, 3, 100] {
                let batches = vec![values(), vec![1.into()], many_values(&mut self.rng)];
                let per_block = Some(per_block);
                self.container(Container::Batches { batches, per_block }, place);
            }
        }
        self.row("ListArray");
        for place in places {
            let list = |values: Vec<Value>| Value::List(values);
            for (item, rows) in [
                ("int32", vec![list(vec![1.into(), (-5).into()]), list(vec![]), Value::None]),
                ("int64", vec![list(vec![i64::MIN.into(), Value::None]), Value::None]),
                ("float64", vec![list(vec![0.1.into(), f64::NEG_INFINITY.into()])]),
                ("bool", vec![list(vec![true.into(), false.into()]), list(vec![])]),
                ("vlstring", vec![list(vec!["a".into(), "é".repeat(50).into()]), Value::None]),
                ("bytes", vec![list(vec![Value::Bytes(b"a\0b".to_vec())])]),
            ] {
                for times in [1, 900] {
                    let rows = std::iter::repeat_n(rows.clone(), times).flatten().collect();
                    self.container(Container::Lists { item, rows }, place);
                }
            }
        }
        self.row("tensors (`save_tensor`)");
        for (dtype, typesize) in [("<i4", 4), ("<f4", 4), ("|u1", 1)] {
            for shape in [&[600][..], &[20, 30], &[5, 6, 7], &[1]] {
                let items = self.items(dtype, typesize, shape);
                let shape = shape.to_vec();
                self.container(Container::Tensor { dtype, shape, items }, Place::File);
            }
        }
        self.row("EmbedStore (.b2e)");
        for count in [0, 1, 40] {
            let nodes = self.nodes(count);
            self.container(Container::Embed(nodes), Place::File);
        }
        for (archive, ending) in [(false, ".b2d"), (true, ".b2z")] {
            self.row(format!("TreeStore ({ending})"));
            for count in [0, 1, 3, 40] {
                let nodes = self.nodes(count);
                let mut attributes = Vec::new();
                for (group, name, value) in [
                    ("/", "title", "é".into()),
                    ("/", "pair", Value::Tuple(vec![1.into(), Value::List(vec![2.5.into()])])),
                    ("/group 0", "number", 7.into()),
                ] {
                    if count > 0 {
                        attributes.push((group.to_owned(), (name.to_owned(), value)));
                    }
                }
                self.container(Container::Tree { nodes, attributes, archive }, Place::File);
            }
        }
        for (archive, ending) in [(false, ".b2d"), (true, ".b2z")] {
            self.row(format!("DictStore ({ending})"));
            for count in [0, 1, 40] {
                let nodes = self.nodes(count);
                self.container(Container::Dict { nodes, archive }, Place::File);
            }
        }
        for (archive, ending) in [(false, ".b2d"), (true, ".b2z")] {
            self.row(format!("CTable ({ending})"));
            for (rows, deleted) in [(0, vec![]), (1, vec![]), (300, vec![]), (300, vec![0, 7, 299])]
            {
                self.container(
                    Container::Table { columns: columns(rows), deleted, archive },
                    Place::File,
                );
            }
        }
    }

    fn container(&mut self, container: Container, place: Place) {
        let vlmeta = match container {
            Container::Objects(_) | Container::Batches { .. } | Container::Lists { .. } => {
                vec![("by".to_owned(), Value::Tuple(vec!["me".into(), 1.into()]))]
            }
            _ => Vec::new(),
        };
        self.add(Params::new(ZSTD, 1, &[]), Kind::Container(container), place).vlmeta = vlmeta;
    }

    /// Keys in groups, with nodes of all kinds.
    fn nodes(&mut self, count: usize) -> Vec<(String, Node)> {
        let node = |number: usize| match number % 4 {
            1 => Node::Bytes(self.rng.bytes(number * 13)),
            2 => Node::Objects(values()),
            _ => Node::Array((0..number as i32 * 7 + 1).collect()),
        };
        let nodes = (0..count).map(node);
        let keyed = nodes.enumerate().map(|(number, node)| {
            let key = match number {
                39 => "/group 1/deep/ü.x".to_owned(),
                number => format!("/group {}/n{number}", number % 3),
            };
            (key, node)
        });
        keyed.collect()
    }
}

/// Values of every kind.
fn values() -> Vec<Value> {
    vec![
        Value::None,
        true.into(),
        false.into(),
        0.into(),
        (-33).into(),
        127.into(),
        65_536.into(),
        u64::MAX.into(),
        i64::MIN.into(),
        1.5.into(),
        (-0.0).into(),
        f64::INFINITY.into(),
        "".into(),
        "é".repeat(40).into(),
        "text with many words, ".repeat(500).into(),
        Value::Bytes(Vec::new()),
        Value::Bytes(b"\0ab".to_vec()),
        Value::List(vec![]),
        Value::List((0..500).map(Value::from).collect()),
        Value::Tuple(vec![1.into(), Value::Tuple(vec![]), Value::List(vec![2.5.into()])]),
        Value::from([("a", 1.into()), ("b", Value::List(vec![Value::None]))]),
        Value::Complex { re: 1.0, im: -2.0 },
        Value::Set(vec![7.into()]),
    ]
}

fn many_values(rng: &mut Rng) -> Vec<Value> {
    (0..300).map(|_| value(rng, 2, true)).collect()
}

/// A random value. `extended` ones may be complex numbers, which fixed metalayers cannot hold.
fn value(rng: &mut Rng, depth: u32, extended: bool) -> Value {
    let several = |rng: &mut Rng| -> Vec<Value> {
        let count = *rng.pick(&[0, 1, 2, 3, 17]);
        (0..count).map(|_| value(rng, depth - 1, extended)).collect()
    };
    match rng.below(if depth == 0 { 6 } else { 9 }) {
        0 => *rng.pick(&[Value::None, true.into(), false.into()].map(Box::new)).clone(),
        1 => (rng.next() >> rng.below(64)).into(),
        2 => ((rng.next() as i64) >> rng.below(64)).into(),
        3 if extended && rng.below(4) == 0 => {
            Value::Complex { re: rng.below(100) as f64 / 8.0, im: -2.5 }
        }
        3 => ((rng.next() as i64 >> 11) as f64 / 1024.0).into(),
        4 => {
            let all: Vec<char> = "azé日𝄞 '\"\\{}".chars().collect();
            let len = *rng.pick(&[0, 3, 31, 32, 300]);
            (0..len).map(|_| *rng.pick(&all)).collect::<String>().into()
        }
        5 => {
            let len = rng.index(20);
            Value::Bytes(rng.bytes(len))
        }
        6 => Value::List(several(rng)),
        7 => Value::Tuple(several(rng)),
        _ => {
            let values = several(rng).into_iter().enumerate();
            values.map(|(number, value)| (format!("k{number}"), value)).collect()
        }
    }
}

/// Metalayers, one with a name that is not ASCII and one with the longest name.
fn layers(rng: &mut Rng, count: usize, extended: bool) -> Vec<Layer> {
    let name = |number| match number {
        0 => "größe".to_owned(),
        1 => "n".repeat(31),
        number => format!("layer {number}"),
    };
    (0..count).map(|number| (name(number), value(rng, 3, extended))).collect()
}

/// The columns of a table.
fn columns(rows: usize) -> Vec<Column> {
    let column = |name, kind, value: fn(i64) -> Value| Column {
        name,
        kind,
        values: (0..rows as i64).map(value).collect(),
    };
    fn or_null(row: i64, of: i64, value: impl Into<Value>) -> Value {
        if row % of == of - 1 { Value::None } else { value.into() }
    }
    vec![
        column("i8", "S.int8()", |row| (row % 256 - 128).into()),
        column("i32", "S.int32(nullable=True)", |row| or_null(row, 5, row * 1000)),
        column("i64", "S.int64()", |row| (row - (1 << 60)).into()),
        column("u8", "S.uint8()", |row| (row % 256).into()),
        column("u64", "S.uint64(nullable=True)", |row| or_null(row, 3, u64::MAX - row as u64)),
        column("f32", "S.float32()", |row| (row as f64 / 8.0).into()),
        column("f64", "S.float64(nullable=True)", |row| or_null(row, 7, row as f64 / 7.0)),
        column("c128", "S.complex128()", |row| Value::Complex { re: row as f64, im: -1.5 }),
        column("flag", "S.bool()", |row| (row % 3 == 0).into()),
        column("text", "S.string(max_length=9)", |row| "é".repeat(row as usize % 9).into()),
        column("raw", "S.bytes(max_length=9)", |row| Value::Bytes(vec![1 + row as u8 % 9; 3])),
        column("utf8", "S.utf8(nullable=True)", |row| or_null(row, 10, format!("ü{row}"))),
        column("vltext", "S.vlstring(nullable=True)", |row| {
            or_null(row, 11, "ñ".repeat(row as usize % 50))
        }),
        column("vlraw", "S.vlbytes(nullable=True)", |row| {
            or_null(row, 12, vec![0; row as usize % 60])
        }),
        column("word", "S.dictionary(nullable=True)", |row| {
            or_null(row, 13, format!("wörd {}", row * row % 37))
        }),
        column("numbers", "S.list(S.int64(), nullable=True)", |row| {
            or_null(row, 7, (0..row % 5).map(Value::from).collect::<Vec<_>>())
        }),
        column("thing", "S.object(nullable=True)", |row| {
            let values: Vec<Value> = vec![row.into(), "one".into(), 2.5.into()];
            or_null(row, 6, values)
        }),
    ]
}

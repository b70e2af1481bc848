//! One object of the table: what is written, and the facts that each reader has to find.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;
use std::path::{Path, PathBuf};

use blosc2::Value;
use blosc2_format::chunk::Special;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use crate::common::Model;
use crate::containers::Container;

/// A writer or a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// C through `blosc2`.
    Blosc2,
    /// `blosc2-format`.
    Format,
    Python,
    /// C through `blosc2-sys`.
    C,
}

pub(crate) const SIDES: [Side; 4] = [Side::Blosc2, Side::Format, Side::Python, Side::C];

impl Side {
    /// The letter in the report, and the folder of what it writes.
    pub(crate) fn letter(self) -> &'static str {
        match self {
            Self::Blosc2 => "B",
            Self::Format => "F",
            Self::Python => "P",
            Self::C => "C",
        }
    }
}

/// What a reader has found, or has to find.
pub(crate) type Facts = BTreeMap<String, String>;

/// A metalayer.
pub(crate) type Layer = (String, Value);

/// Parameters of compression, in the codes of C.
#[derive(Debug, Clone)]
pub(crate) struct Params {
    pub(crate) codec: u8,
    pub(crate) codec_meta: u8,
    pub(crate) level: u8,
    pub(crate) typesize: usize,
    /// 0 is automatic.
    pub(crate) blocksize: usize,
    /// Codes and parameters.
    pub(crate) filters: Vec<(u8, u8)>,
    /// `BLOSC_ALWAYS_SPLIT` to `BLOSC_FORWARD_COMPAT_SPLIT`.
    pub(crate) split: u8,
    pub(crate) dictionary: bool,
    pub(crate) blosc1: bool,
}

pub(crate) const BLOSCLZ: u8 = 0;
pub(crate) const LZ4: u8 = 1;
pub(crate) const LZ4HC: u8 = 2;
pub(crate) const ZLIB: u8 = 4;
pub(crate) const ZSTD: u8 = 5;
pub(crate) const NDLZ: u8 = 32;

pub(crate) const SHUFFLE: u8 = 1;
pub(crate) const BITSHUFFLE: u8 = 2;
pub(crate) const DELTA: u8 = 3;
pub(crate) const TRUNC_PREC: u8 = 4;
pub(crate) const NDCELL: u8 = 32;
pub(crate) const NDMEAN: u8 = 33;
pub(crate) const BYTEDELTA: u8 = 35;
pub(crate) const INT_TRUNC: u8 = 36;

impl Params {
    pub(crate) fn new(codec: u8, typesize: usize, filters: &[(u8, u8)]) -> Self {
        Self {
            codec,
            codec_meta: 0,
            level: 5,
            typesize,
            blocksize: 0,
            filters: filters.to_vec(),
            split: 4,
            dictionary: false,
            blosc1: false,
        }
    }

    pub(crate) fn level(mut self, level: u8) -> Self {
        self.level = level;
        self
    }

    pub(crate) fn blocksize(mut self, blocksize: usize) -> Self {
        self.blocksize = blocksize;
        self
    }

    pub(crate) fn split(mut self, split: u8) -> Self {
        self.split = split;
        self
    }

    pub(crate) fn has(&self, filter: u8) -> bool {
        self.filters.iter().any(|each| each.0 == filter)
    }

    /// The six slots of codes and parameters. The filters are in the last ones.
    pub(crate) fn slots(&self) -> ([u8; 6], [u8; 6]) {
        let (mut codes, mut metas) = ([0; 6], [0; 6]);
        let free = 6 - self.filters.len();
        for (slot, (code, meta)) in self.filters.iter().enumerate() {
            (codes[free + slot], metas[free + slot]) = (*code, *meta);
        }
        (codes, metas)
    }

    /// What the lossy filters leave of items. NDMEAN is used only where it loses nothing.
    fn left(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        for &(code, meta) in &self.filters {
            let bits = match (code, self.typesize) {
                (TRUNC_PREC, 4) => 23,
                (TRUNC_PREC, 8) => 52,
                (INT_TRUNC, typesize) => 8 * typesize as i32,
                _ => continue,
            };
            let cleared = match i32::from(meta as i8) {
                cleared @ ..0 => -cleared,
                kept => bits - kept,
            };
            for item in bytes.chunks_exact_mut(self.typesize) {
                for (place, byte) in item.iter_mut().enumerate() {
                    let below = (cleared - 8 * place as i32).clamp(0, 8);
                    *byte &= (0xff_u32 << below) as u8;
                }
            }
        }
        bytes
    }

    fn to_json(&self) -> Json {
        let (codes, metas) = self.slots();
        // Python takes the parameter as a signed number.
        let metas = metas.map(|meta| meta as i8);
        json!({
            "codec": self.codec, "codec_meta": self.codec_meta, "clevel": self.level,
            "typesize": self.typesize, "blocksize": self.blocksize, "filters": codes,
            "filters_meta": metas, "splitmode": self.split, "use_dict": self.dictionary,
            "nthreads": 1,
        })
    }
}

/// The data of one chunk.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Data(Vec<u8>),
    /// Variable-length blocks.
    Blocks(Vec<Vec<u8>>),
    Special {
        special: Special,
        nbytes: usize,
        /// The repeated item.
        value: Vec<u8>,
    },
}

impl Part {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Data(bytes) => bytes.clone(),
            Self::Blocks(blocks) => blocks.concat(),
            Self::Special { special, nbytes, value } => special_bytes(*special, *nbytes, value),
        }
    }

    fn to_json(&self, blob: &mut Vec<u8>) -> Json {
        match self {
            Self::Data(bytes) => json!({ "data": stored(bytes, blob) }),
            Self::Blocks(blocks) => {
                let blocks: Vec<Json> = blocks.iter().map(|block| stored(block, blob)).collect();
                json!({ "blocks": blocks })
            }
            Self::Special { .. } => json!({}),
        }
    }
}

/// The data of a special chunk. `value` is the repeated item; with NaN, an item has its size.
fn special_bytes(special: Special, nbytes: usize, value: &[u8]) -> Vec<u8> {
    match special {
        Special::Value => value.repeat(nbytes / value.len()),
        Special::Nan if value.len() == 4 => f32::NAN.to_le_bytes().repeat(nbytes / 4),
        Special::Nan => f64::NAN.to_le_bytes().repeat(nbytes / 8),
        Special::Zeros | Special::Uninit => vec![0; nbytes],
    }
}

/// Special chunks of one kind, which make up a super-chunk.
#[derive(Debug, Clone)]
pub(crate) struct Fill {
    pub(crate) special: Special,
    pub(crate) items: usize,
    /// The items of a chunk.
    pub(crate) chunk: usize,
    pub(crate) value: Vec<u8>,
}

/// The items of an array.
#[derive(Debug, Clone)]
pub(crate) enum Made {
    Items(Vec<u8>),
    /// By the function for arrays of one value; with `Special::Value`, this item is repeated.
    Special(Special, Vec<u8>),
}

#[derive(Debug, Clone)]
pub(crate) struct Array {
    pub(crate) dtype: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) chunks: Vec<u64>,
    pub(crate) blocks: Vec<u64>,
    pub(crate) made: Made,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Chunk(Part),
    Parts(Vec<Part>),
    Fill(Fill),
    Array(Array),
    /// A `.npy` file of NumPy.
    Npy(Array),
    Container(Container),
}

/// The storage of a super-chunk or an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Separate chunks in memory, exported as a frame.
    Memory,
    /// A frame in memory.
    Frame,
    /// A contiguous file.
    File,
    /// A directory: a sparse frame.
    Directory,
    /// A frame in a larger file.
    Offset,
}

pub(crate) const PLACES: [Place; 5] =
    [Place::Memory, Place::Frame, Place::File, Place::Directory, Place::Offset];

/// Other bytes in a file with a frame at an offset.
pub(crate) const BEFORE: [u8; 100] = [0xab; 100];

impl Place {
    /// Whether the file of the object is a frame that a program keeps in memory.
    pub(crate) fn in_memory(self) -> bool {
        matches!(self, Self::Memory | Self::Frame)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "separate chunks in memory",
            Self::Frame => "frame in memory",
            Self::File => "contiguous file",
            Self::Directory => "directory",
            Self::Offset => "frame at an offset of a file",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) number: usize,
    /// Its row in the table.
    pub(crate) row: usize,
    pub(crate) params: Params,
    pub(crate) kind: Kind,
    pub(crate) place: Place,
    pub(crate) meta: Vec<Layer>,
    pub(crate) vlmeta: Vec<Layer>,
}

impl Object {
    /// Where a side writes it.
    pub(crate) fn path(&self, folder: &Path, writer: Side) -> PathBuf {
        let ending = match &self.kind {
            Kind::Chunk(_) => "chunk",
            Kind::Parts(_) | Kind::Fill(_) => "b2frame",
            Kind::Array(_) => "b2nd",
            Kind::Npy(_) => "npy",
            Kind::Container(container) => container.ending(),
        };
        folder.join(writer.letter()).join(format!("{}.{ending}", self.number))
    }

    /// The parts of a box that is read of an array, if the array has items and axes.
    pub(crate) fn read_box(&self) -> Option<Vec<Range<u64>>> {
        let Kind::Array(array) = &self.kind else { return None };
        let has_box = !array.shape.is_empty() && !array.shape.contains(&0);
        let range = |&size: &u64| size / 4..(size / 2).max(size / 4 + 1);
        has_box.then(|| array.shape.iter().map(range).collect())
    }

    /// The facts that a reader has to find.
    pub(crate) fn facts(&self) -> Facts {
        let mut facts = Facts::new();
        let mut set = |name: &str, text: String| drop(facts.insert(name.into(), text));
        match &self.kind {
            Kind::Chunk(part) => {
                let bytes = part.bytes();
                set("nbytes", bytes.len().to_string());
                // Writers differ if there is no whole item.
                let typesize = self.params.typesize;
                let items = self.params.blocksize.min(bytes.len()) / typesize;
                if matches!(part, Part::Data(_)) && items > 0 {
                    set("blocksize", (items * typesize).to_string());
                }
                if !matches!(part, Part::Special { special: Special::Uninit, .. }) {
                    set("data", digest(&self.params.left(bytes)));
                }
                match part {
                    Part::Data(_) if self.params.dictionary => set("dictionary", "true".to_owned()),
                    Part::Data(_) => {}
                    Part::Blocks(blocks) => set("blocks", digests(blocks)),
                    Part::Special { special, .. } => set("special", special_name(Some(*special))),
                }
                return facts;
            }
            Kind::Parts(parts) => {
                let chunks: Vec<_> =
                    parts.iter().map(|part| self.params.left(part.bytes())).collect();
                set("nchunks", chunks.len().to_string());
                set("chunks", digests(&chunks));
            }
            Kind::Fill(fill) => {
                let typesize = self.params.typesize;
                let bytes = special_bytes(fill.special, fill.items * typesize, &fill.value);
                let chunks: Vec<&[u8]> = bytes.chunks(fill.chunk * typesize).collect();
                set("nchunks", chunks.len().to_string());
                set("special", special_name(Some(fill.special)));
                if fill.special != Special::Uninit {
                    set("chunks", digests(&chunks));
                }
            }
            Kind::Array(array) => {
                set("shape", list(&array.shape));
                set("chunk shape", list(&array.chunks));
                set("block shape", list(&array.blocks));
                set("dtype", array.dtype.clone());
                let bytes = self.params.left(array.bytes(self.params.typesize));
                if !matches!(array.made, Made::Special(Special::Uninit, _)) {
                    set("chunks", digests(&array.chunk_data(&bytes, self.params.typesize)));
                    if let Some(ranges) = self.read_box() {
                        let model = Model {
                            shape: array.shape.clone(),
                            typesize: self.params.typesize,
                            bytes: bytes.clone(),
                        };
                        set("box", digest(&model.read(&ranges)));
                    }
                    set("items", digest(&bytes));
                }
                match &array.made {
                    Made::Special(special, _) if !array.shape.contains(&0) => {
                        set("special", special_name(Some(*special)));
                    }
                    _ => {}
                }
            }
            Kind::Npy(array) => {
                set("shape", list(&array.shape));
                set("dtype", array.dtype.clone());
                set("items", digest(&array.bytes(self.params.typesize)));
                return facts;
            }
            Kind::Container(container) => {
                let mut facts = container.facts();
                if container.has_metalayers() {
                    layer_facts("vlmeta", &self.vlmeta, &mut facts);
                }
                return facts;
            }
        }
        set("typesize", self.params.typesize.to_string());
        set("codec", self.params.codec.to_string());
        set("level", self.params.level.to_string());
        set("filters", filters(self.params.filters.iter().copied()));
        set("codec parameter", self.params.codec_meta.to_string());
        set("split mode", self.params.split.to_string());
        set("dictionary", self.params.dictionary.to_string());
        layer_facts("meta", &self.meta, &mut facts);
        layer_facts("vlmeta", &self.vlmeta, &mut facts);
        facts
    }

    /// The object for Python, which finds the bytes in the blob.
    pub(crate) fn to_json(&self, blob: &mut Vec<u8>) -> Json {
        let mut described = json!({
            "params": self.params.to_json(), "place": format!("{:?}", self.place).to_lowercase(),
            "blosc1": self.params.blosc1, "before": BEFORE.len(),
            "meta": stored_layers(&self.meta, blob), "vlmeta": stored_layers(&self.vlmeta, blob),
        });
        let mut set = |name: &str, value: Json| described[name] = value;
        match &self.kind {
            Kind::Chunk(part) => {
                set("kind", "chunk".into());
                set("part", part.to_json(blob));
            }
            Kind::Parts(parts) => {
                set("kind", "parts".into());
                set("parts", parts.iter().map(|part| part.to_json(blob)).collect());
                let chunksize = parts.first().map_or(0, |part| part.bytes().len());
                set("chunksize", chunksize.into());
            }
            Kind::Fill(fill) => {
                set("kind", "fill".into());
                set("special", python_special(fill.special).into());
                set("nitems", fill.items.into());
                set("chunksize", (fill.chunk * self.params.typesize).into());
                set("value", stored(&fill.value, blob));
            }
            Kind::Array(array) | Kind::Npy(array) => {
                let is_npy = matches!(self.kind, Kind::Npy(_));
                set("kind", if is_npy { "npy" } else { "array" }.into());
                set("dtype", array.dtype.as_str().into());
                set("shape", json!(array.shape));
                set("chunks", json!(array.chunks));
                set("blocks", json!(array.blocks));
                let ranges = self.read_box();
                let ranges = ranges.map(|ranges| {
                    ranges.iter().map(|range| [range.start, range.end]).collect::<Vec<_>>()
                });
                set("box", json!(ranges));
                match &array.made {
                    Made::Items(bytes) => set("items", stored(bytes, blob)),
                    Made::Special(special, value) => {
                        set("made", python_function(*special).into());
                        set("value", stored(value, blob));
                    }
                }
            }
            Kind::Container(container) => {
                set("kind", container.name().into());
                set("content", container.to_json(blob));
            }
        }
        described
    }

    /// A description for messages.
    pub(crate) fn describe(&self) -> String {
        let kind = match &self.kind {
            Kind::Chunk(part) => format!("a chunk of {} bytes", part.bytes().len()),
            Kind::Parts(parts) => {
                let lens: Vec<usize> = parts.iter().map(|part| part.bytes().len()).collect();
                format!("chunks of {:?} bytes", &lens[..lens.len().min(9)])
            }
            Kind::Fill(fill) => {
                format!("{} items in chunks of {}, {:?}", fill.items, fill.chunk, fill.special)
            }
            Kind::Array(array) | Kind::Npy(array) => format!(
                "an array of {} with shape {:?}, chunks {:?}, blocks {:?}",
                array.dtype, array.shape, array.chunks, array.blocks
            ),
            Kind::Container(container) => container.name().to_owned(),
        };
        format!(
            "object {}: {kind}; {}; {} + {} metalayers; {:?}",
            self.number,
            self.place.name(),
            self.meta.len(),
            self.vlmeta.len(),
            self.params
        )
    }
}

impl Array {
    pub(crate) fn bytes(&self, typesize: usize) -> Vec<u8> {
        match &self.made {
            Made::Items(bytes) => bytes.clone(),
            Made::Special(special, value) => {
                let items = self.shape.iter().product::<u64>() as usize;
                special_bytes(*special, items * typesize, value)
            }
        }
    }

    /// The data of all chunks. Outside of the array, and of its chunks, there are zeros; a special chunk has its value
    /// there too.
    fn chunk_data(&self, bytes: &[u8], typesize: usize) -> Vec<Vec<u8>> {
        let padding = match &self.made {
            Made::Items(_) => vec![0; typesize],
            Made::Special(special, value) => special_bytes(*special, typesize, value),
        };
        let grid = |sizes: &[u64], parts: &[u64]| -> Vec<u64> {
            sizes.iter().zip(parts).map(|(size, part)| size.div_ceil(*part)).collect()
        };
        let blocks = grid(&self.chunks, &self.blocks);
        let data_of = |chunk: Vec<u64>| {
            let mut data = Vec::new();
            for block in indices(&blocks) {
                for item in indices(&self.blocks) {
                    let place = self.place(&chunk, &block, &item);
                    data.extend(
                        place.map_or(&padding[..], |at| &bytes[at * typesize..][..typesize]),
                    );
                }
            }
            data
        };
        indices(&grid(&self.shape, &self.chunks)).map(data_of).collect()
    }

    /// The place in the array of an item of a block of a chunk; `None` for padding.
    fn place(&self, chunk: &[u64], block: &[u64], item: &[u64]) -> Option<usize> {
        let mut place = 0;
        for axis in 0..self.shape.len() {
            let in_chunk = block[axis] * self.blocks[axis] + item[axis];
            let index = chunk[axis] * self.chunks[axis] + in_chunk;
            if in_chunk >= self.chunks[axis] || index >= self.shape[axis] {
                return None;
            }
            place = place * self.shape[axis] + index;
        }
        Some(place as usize)
    }
}

/// All indices of an array, the last axis first.
fn indices(shape: &[u64]) -> impl Iterator<Item = Vec<u64>> {
    (0..shape.iter().product::<u64>()).map(move |mut number| {
        let mut index = vec![0; shape.len()];
        for (place, size) in index.iter_mut().zip(shape).rev() {
            (*place, number) = (number % size, number / size);
        }
        index
    })
}

/// Bytes in the blob.
pub(crate) fn stored(bytes: &[u8], blob: &mut Vec<u8>) -> Json {
    let start = blob.len();
    blob.extend(bytes);
    json!([start, blob.len()])
}

pub(crate) fn stored_layers(layers: &[Layer], blob: &mut Vec<u8>) -> Json {
    let layer = |(name, value): &Layer| json!([name, stored(&value.to_msgpack().unwrap(), blob)]);
    layers.iter().map(layer).collect()
}

/// The facts about metalayers.
pub(crate) fn layer_facts(kind: &str, layers: &[Layer], facts: &mut Facts) {
    let packed = layers.iter().map(|(name, value)| (name.clone(), value.to_msgpack().unwrap()));
    found_layers(kind, packed, facts);
}

/// The facts about metalayers that were found, without the one of arrays.
pub(crate) fn found_layers(
    kind: &str,
    layers: impl IntoIterator<Item = (String, Vec<u8>)>,
    facts: &mut Facts,
) {
    let layers = layers.into_iter().filter(|(name, _)| kind != "meta" || name != "b2nd");
    let texts = layers.map(|(name, content)| format!("{name}={}", digest(&content)));
    facts.insert(kind.to_owned(), texts.collect::<Vec<_>>().join(", "));
}

/// The length and the start of the SHA-256 hash of bytes.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let start: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}:{start}", bytes.len())
}

pub(crate) fn digests(parts: &[impl AsRef<[u8]>]) -> String {
    // The hash of the hashes: some objects have thousands of chunks.
    let all: Vec<String> = parts.iter().map(|part| digest(part.as_ref())).collect();
    if all.len() > 9 { digest(all.join(",").as_bytes()) } else { all.join(",") }
}

/// Numbers as text.
pub(crate) fn list<T: Debug>(numbers: &[T]) -> String {
    format!("{numbers:?}")
}

/// Codes and parameters of filters as text, without empty slots.
pub(crate) fn filters(slots: impl IntoIterator<Item = (u8, u8)>) -> String {
    let slots = slots.into_iter().filter(|(code, _)| *code != 0);
    slots.map(|(code, meta)| format!("{code}:{meta}")).collect::<Vec<_>>().join(" ")
}

/// The name of the kind of a special chunk.
pub(crate) fn special_name(special: Option<impl Debug>) -> String {
    special.map_or("none".to_owned(), |special| format!("{special:?}"))
}

fn python_special(special: Special) -> &'static str {
    match special {
        Special::Zeros => "ZERO",
        Special::Nan => "NAN",
        Special::Value => "VALUE",
        Special::Uninit => "UNINIT",
    }
}

/// Python's function for arrays of one value.
fn python_function(special: Special) -> &'static str {
    match special {
        Special::Zeros => "zeros",
        Special::Nan => "nans",
        Special::Value => "full",
        Special::Uninit => "uninit",
    }
}

//! The operations that change files, with the files before them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use blosc2::repair::{repair, repair_to};
use blosc2::{
    Appender, CParams, Chunk, Codec, ErrorKind, NDArray, OpenOptions, Result, SChunk, SChunkWriter,
    SaveOptions, Selection, Special, Target,
};
use blosc2_store::{BatchArray, EmbedStore, ItemKind, ListArray, ObjectArray, TreeStore};

use crate::common::Rng;

/// How much a change survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// The default of changes.
    Plain,
    /// `OpenOptions::durable`, or an operation that is durable without an option.
    Durable,
    /// The default, and `sync` at the end of the operation.
    Synced,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) directory: bool,
    pub(crate) level: Level,
}

impl Setting {
    pub(crate) fn options(self) -> OpenOptions {
        self.container().cparams(params())
    }

    /// Options without parameters.
    fn container(self) -> OpenOptions {
        OpenOptions::new().durable(self.level == Level::Durable)
    }

    pub(crate) fn target(self, path: impl AsRef<Path>) -> Target {
        Target::from(path.as_ref()).directory(self.directory)
    }
}

/// What is read at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    SChunk,
    Array,
    /// A frame that may be damaged.
    Damaged,
    /// A frame after another one in its file.
    Appended,
    Tree,
    Embed,
}

/// The parts of a content, by name.
pub(crate) type Content = BTreeMap<String, Vec<u8>>;

/// What an operation changes.
pub(crate) enum Handle {
    SChunk(SChunk),
    Array(NDArray),
    Tree(TreeStore),
    Embed(EmbedStore),
    Objects(ObjectArray),
    Batches(BatchArray),
    Lists(ListArray),
    /// The operation opens the file itself.
    Path,
}

pub(crate) struct Operation {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The name of the file or folder.
    pub(crate) path: &'static str,
    /// Whether it is in a directory (a sparse frame).
    pub(crate) layouts: &'static [bool],
    pub(crate) levels: &'static [Level],
    /// Whether it opens again what it has written. If that fails, it is written nevertheless.
    pub(crate) opens: bool,
    /// Whether the content differs after it.
    pub(crate) changes: bool,
    pub(crate) prepare: fn(&Path, Setting),
    pub(crate) open: fn(&Path, Setting) -> Result<Handle>,
    #[expect(clippy::type_complexity, reason = "it is named here only")]
    pub(crate) run: Box<dyn Fn(&mut Handle, &Path, Setting) -> Result<()> + Send + Sync>,
}

const EACH_LEVEL: &[Level] = &[Level::Plain, Level::Durable, Level::Synced];
/// Operations that are durable without an option.
const DURABLE: &[Level] = &[Level::Durable];
const BOTH: &[bool] = &[false, true];
const FILE: &[bool] = &[false];

const ITEMS: usize = 300;

fn params() -> CParams {
    CParams::new().codec(Codec::BloscLz).typesize(4)
}

/// Items that compress well, or not at all.
fn items(seed: u64, tight: bool) -> Vec<u32> {
    let mut rng = Rng(seed);
    let max = if tight { 3 } else { u64::from(u32::MAX) };
    // The first item is not zero, so that no chunk is.
    (0..ITEMS).map(|at| rng.below(max) as u32 | u32::from(at == 0)).collect()
}

/// The content at a path; empty if nothing is there.
pub(crate) fn read(kind: Kind, path: &Path) -> Result<Content> {
    let damaged = || Ok(Content::from([("damaged".to_owned(), Vec::new())]));
    if !path.exists() {
        // A directory has no name while it is replaced.
        return if kind == Kind::Damaged { damaged() } else { Ok(Content::new()) };
    }
    match kind {
        Kind::SChunk => content(&Handle::SChunk(SChunk::open(path)?)),
        Kind::Array => content(&Handle::Array(NDArray::open(path)?)),
        Kind::Damaged => match SChunk::open(path) {
            Ok(schunk) => content(&Handle::SChunk(schunk)),
            Err(error) if error.kind() == ErrorKind::InvalidData => damaged(),
            Err(error) if error.kind() == ErrorKind::NotFound => damaged(),
            Err(error) => Err(error),
        },
        Kind::Appended => {
            let first = SChunk::open(path)?;
            let start = first.frame_len()?;
            let mut found = of_schunk(&first)?;
            // The caller of `append_to_file` does not know its offset before it is complete.
            let second = OpenOptions::new().open(Target::from(path).offset(start));
            if let Ok(second) = second.and_then(|second| of_schunk(&second)) {
                found.extend(
                    second.into_iter().map(|(name, part)| (format!("second {name}"), part)),
                );
            }
            Ok(found)
        }
        Kind::Tree => content(&Handle::Tree(TreeStore::open(path)?)),
        Kind::Embed => content(&Handle::Embed(EmbedStore::open(path)?)),
    }
}

/// The content as a handle returns it.
pub(crate) fn content(handle: &Handle) -> Result<Content> {
    match handle {
        Handle::SChunk(schunk) => of_schunk(schunk),
        Handle::Array(array) => {
            let mut found = of_schunk(array.schunk())?;
            found.insert("shape".into(), format!("{:?}", array.shape()).into());
            found.insert("items".into(), bytes(&array.read::<Vec<u32>>(..)?));
            Ok(found)
        }
        Handle::Objects(objects) => of_schunk(objects.schunk()),
        Handle::Batches(batches) => of_schunk(batches.schunk()),
        // It buffers rows.
        Handle::Lists(_) | Handle::Path => Ok(Content::new()),
        Handle::Tree(tree) => {
            let mut found = Content::from([("a store".to_owned(), Vec::new())]);
            for key in tree.keys() {
                for (name, part) in of_schunk(&tree.schunk(key)?)? {
                    found.insert(format!("{key} {name}"), part);
                }
            }
            for group in tree.groups().chain(["/"]) {
                for (name, value) in tree.attributes(group)? {
                    found.insert(format!("{group} @{name}"), format!("{value:?}").into());
                }
            }
            Ok(found)
        }
        Handle::Embed(embed) => {
            let mut found = Content::new();
            for key in embed.keys() {
                for (name, part) in of_schunk(&embed.frame(key)?)? {
                    found.insert(format!("{key} {name}"), part);
                }
            }
            Ok(found)
        }
    }
}

fn of_schunk(schunk: &SChunk) -> Result<Content> {
    let mut found = Content::new();
    for index in 0..schunk.nchunks() {
        let chunk = schunk.chunk(index)?;
        found.insert(format!("chunk {index}"), blosc2::decompress::<u8>(chunk.as_bytes())?);
    }
    for (kind, layers) in [("meta", schunk.meta()), ("vlmeta", schunk.vlmeta())] {
        for layer in layers.iter() {
            let (name, part) = layer?;
            found.insert(format!("{kind} {name}"), part);
        }
    }
    Ok(found)
}

fn bytes(items: &[u32]) -> Vec<u8> {
    items.iter().flat_map(|item| item.to_le_bytes()).collect()
}

/// A super-chunk of six chunks, after changes that left a gap.
fn make_schunk(path: &Path, setting: Setting) {
    let options = setting.options().create_new(true).meta("kind", b"a log");
    let mut schunk = options.open(setting.target(path)).unwrap();
    for (number, tight) in [true, false, true, false, true].into_iter().enumerate() {
        schunk.append(&items(number as u64, tight)).unwrap();
    }
    schunk.append(&Chunk::zeros::<u32>(ITEMS, params()).unwrap()).unwrap();
    schunk.replace(2, &items(20, false)).unwrap();
    schunk.vlmeta_mut().set("note", b"first").unwrap();
    schunk.vlmeta_mut().set("text", [7; 700]).unwrap();
}

/// An array of 3 x 3 chunks, with short ones at the end.
fn make_array(path: &Path, setting: Setting) {
    let builder = NDArray::builder().chunk_shape([8, 10]).block_shape([4, 10]).cparams(params());
    let builder = builder.target(setting.target(path));
    let mut rng = Rng(5);
    let items: Vec<u32> = (0..20 * 25).map(|_| rng.next() as u32).collect();
    let mut array = builder.from_slice(&items, [20, 25]).unwrap();
    array.vlmeta_mut().set("note", b"first").unwrap();
}

fn small(seed: u64) -> SChunk {
    let mut schunk = SChunk::in_memory::<u32>(params()).unwrap();
    schunk.append(&items(seed, false)).unwrap();
    schunk
}

fn small_array() -> NDArray {
    NDArray::from_slice(&items(40, true), [30, 10]).unwrap()
}

/// A store with entries at the root and in groups, and an embedded one.
fn make_tree(path: &Path) {
    let mut tree = TreeStore::create(path).unwrap();
    tree.insert("/array", small_array().schunk()).unwrap();
    tree.insert("/list", &small(1)).unwrap();
    tree.insert("/group/deep/one", &small(2)).unwrap();
    tree.insert("/group/two", &small(3)).unwrap();
    tree.set_attribute("/group", "unit", "m/s").unwrap();
    tree.finish().unwrap();
}

struct All(Vec<Operation>);

impl All {
    fn add(&mut self, operation: Operation) -> &mut Operation {
        self.0.push(operation);
        self.0.last_mut().unwrap()
    }

    fn schunk(&mut self, name: &str, run: fn(&mut SChunk) -> Result<()>) -> &mut Operation {
        self.add(Operation {
            name: format!("super-chunk: {name}"),
            kind: Kind::SChunk,
            path: "a.b2frame",
            layouts: BOTH,
            levels: EACH_LEVEL,
            opens: false,
            changes: true,
            prepare: |folder, setting| make_schunk(&folder.join("a.b2frame"), setting),
            open: |path, setting| setting.options().write(true).open(path).map(Handle::SChunk),
            run: Box::new(move |handle, _, setting| {
                let Handle::SChunk(schunk) = handle else { unreachable!() };
                run(schunk)?;
                if setting.level == Level::Synced { schunk.sync() } else { Ok(()) }
            }),
        })
    }

    fn array(&mut self, name: &str, run: fn(&mut NDArray) -> Result<()>) -> &mut Operation {
        self.add(Operation {
            name: format!("array: {name}"),
            kind: Kind::Array,
            path: "a.b2nd",
            layouts: BOTH,
            levels: EACH_LEVEL,
            opens: false,
            changes: true,
            prepare: |folder, setting| make_array(&folder.join("a.b2nd"), setting),
            open: |path, setting| {
                NDArray::open_with(path, &setting.options().write(true)).map(Handle::Array)
            },
            run: Box::new(move |handle, _, setting| {
                let Handle::Array(array) = handle else { unreachable!() };
                run(array)?;
                if setting.level == Level::Synced { array.sync() } else { Ok(()) }
            }),
        })
    }

    /// An operation that opens or creates a file by its path.
    fn whole(
        &mut self,
        name: &str,
        kind: Kind,
        path: &'static str,
        prepare: fn(&Path, Setting),
        run: fn(&Path, Setting) -> Result<()>,
    ) -> &mut Operation {
        self.add(Operation {
            name: name.to_owned(),
            kind,
            path,
            layouts: FILE,
            levels: DURABLE,
            opens: true,
            changes: true,
            prepare,
            open: |_, _| Ok(Handle::Path),
            run: Box::new(move |_, folder, setting| run(&folder.join(path), setting)),
        })
    }

    fn tree(&mut self, name: &str, run: fn(&mut TreeStore) -> Result<()>) -> &mut Operation {
        self.add(Operation {
            name: format!("tree store: {name}"),
            kind: Kind::Tree,
            path: "a.b2d",
            layouts: FILE,
            levels: DURABLE,
            opens: false,
            changes: true,
            prepare: |folder, _| make_tree(&folder.join("a.b2d")),
            open: |path, _| TreeStore::open_rw(path).map(Handle::Tree),
            run: Box::new(move |handle, _, _| {
                let Handle::Tree(tree) = handle else { unreachable!() };
                run(tree)
            }),
        })
    }
}

/// The levels of containers, which have no method to sync.
const CONTAINER_LEVELS: &[Level] = &[Level::Plain, Level::Durable];

/// All operations.
pub(crate) fn all() -> &'static [Operation] {
    static ALL: LazyLock<Vec<Operation>> = LazyLock::new(|| {
        let mut all = All(Vec::new());
        schunks(&mut all);
        gaps(&mut all);
        long_index(&mut all);
        arrays(&mut all);
        files(&mut all);
        stores(&mut all);
        all.0
    });
    &ALL
}

fn schunks(all: &mut All) {
    all.schunk("read", |schunk| of_schunk(schunk).map(drop)).changes = false;
    all.schunk("append", |schunk| schunk.append(&items(30, false)));
    all.schunk("append zeros", |schunk| schunk.append(&Chunk::zeros::<u32>(ITEMS, params())?));
    all.schunk("insert", |schunk| schunk.insert(1, &items(31, true)));
    all.schunk("update in place", |schunk| schunk.replace(1, &items(32, true)));
    all.schunk("update elsewhere", |schunk| schunk.replace(0, &items(33, false)));
    all.schunk("update with zeros", |schunk| {
        schunk.replace(3, &Chunk::zeros::<u32>(ITEMS, params())?)
    });
    all.schunk("delete the first", |schunk| schunk.remove(0));
    all.schunk("delete the last stored", |schunk| schunk.remove(2));
    all.schunk("reorder", |schunk| schunk.reorder(&[5, 0, 4, 1, 3, 2]));
    all.schunk("write items", |schunk| schunk.write(450, &items(34, false)));
    all.schunk("write items past the end", |schunk| schunk.write(1700, &items(35, false)));
    all.schunk("writer", |schunk| {
        let mut writer = SChunkWriter::new(schunk, ITEMS * 4)?;
        writer.write_all(&[7; 500])?;
        writer.finish().map(drop)
    });
    all.schunk("set a metalayer", |schunk| schunk.meta_mut().set("kind", b"texts"));
    all.schunk("add a variable-length metalayer", |schunk| {
        schunk.vlmeta_mut().set("new", bytes(&items(36, false)))
    });
    all.schunk("set a variable-length metalayer", |schunk| {
        schunk.vlmeta_mut().set("text", b"short")
    });
    all.schunk("remove a variable-length metalayer", |schunk| {
        schunk.vlmeta_mut().remove("note").map(drop)
    });
    all.schunk("transaction", |schunk| {
        schunk.transaction(|schunk| {
            schunk.append(&items(37, false))?;
            schunk.replace(0, &items(38, false))?;
            schunk.vlmeta_mut().set("note", [1; 300])?;
            schunk.remove(1)?;
            schunk.insert(2, &items(39, true))
        })
    });
    all.schunk("fill", |schunk| schunk.fill(Special::Zeros, 3000, ITEMS)).prepare =
        |folder, setting| {
            let options = setting.options().create_new(true);
            drop(options.open(setting.target(folder.join("a.b2frame"))).unwrap());
        };
    all.schunk("first append", |schunk| schunk.append(&items(41, false))).prepare =
        |folder, setting| {
            let options = setting.options().create_new(true).meta("kind", b"a log");
            drop(options.open(setting.target(folder.join("a.b2frame"))).unwrap());
        };
    let objects = all.schunk("append an object", |_| unreachable!());
    objects.levels = CONTAINER_LEVELS;
    objects.prepare = |folder, setting| {
        let options = setting.container().cparams(ObjectArray::default_cparams()).create_new(true);
        let mut array =
            ObjectArray::new_in(options.open(setting.target(folder.join("a.b2frame"))).unwrap())
                .unwrap();
        array.append("first").unwrap();
    };
    objects.open = |path, setting| {
        ObjectArray::from_schunk(setting.container().write(true).open(path)?).map(Handle::Objects)
    };
    objects.run = Box::new(|handle, _, _| {
        let Handle::Objects(objects) = handle else { unreachable!() };
        objects.append(&[1, 2, 3])
    });
    let batches = all.schunk("append a batch", |_| unreachable!());
    batches.levels = CONTAINER_LEVELS;
    batches.prepare = |folder, setting| {
        let schunk = setting.container().create_new(true);
        let schunk = schunk.open(setting.target(folder.join("a.b2frame"))).unwrap();
        let mut array = BatchArray::new_in(schunk, None).unwrap();
        array.append(&["a", "b"]).unwrap();
        array.append(&["c"]).unwrap();
    };
    batches.open = |path, setting| {
        BatchArray::from_schunk(setting.container().write(true).open(path)?).map(Handle::Batches)
    };
    batches.run = Box::new(|handle, _, _| {
        let Handle::Batches(batches) = handle else { unreachable!() };
        batches.append(&["d", "e", "f"])
    });
    let (prepare, open) = (batches.prepare, batches.open);
    let removed = all.schunk("remove a batch", |_| unreachable!());
    (removed.levels, removed.prepare, removed.open) = (CONTAINER_LEVELS, prepare, open);
    removed.run = Box::new(|handle, _, _| {
        let Handle::Batches(batches) = handle else { unreachable!() };
        batches.remove(0)
    });
    let lists = all.schunk("append to a list array", |_| unreachable!());
    lists.levels = CONTAINER_LEVELS;
    lists.layouts = FILE;
    lists.prepare = |folder, _| {
        let path = folder.join("a.b2frame");
        let mut lists = ListArray::create(path, ItemKind::Int32, true).unwrap();
        lists.append(Some(&[1, 2])).unwrap();
        lists.flush().unwrap();
    };
    lists.open = |path, setting| {
        ListArray::from_schunk(setting.container().write(true).open(path)?).map(Handle::Lists)
    };
    lists.run = Box::new(|handle, _, _| {
        let Handle::Lists(lists) = handle else { unreachable!() };
        lists.append(Some(&[3]))?;
        lists.append::<i32>(None)?;
        lists.flush()
    });
}

/// Chunks of 3,000 bytes that do not compress, so that a gap has space for each of them.
fn large(seed: u64) -> Vec<u32> {
    let mut rng = Rng(seed);
    (0..750).map(|_| rng.next() as u32).collect()
}

/// A super-chunk of 16 chunks with two gaps. It has more than 32 KiB, so that changes use the gaps.
fn make_gaps(path: &Path, setting: Setting) {
    let options = setting.options().create_new(true).chunksize(3000);
    let mut schunk = options.open(setting.target(path)).unwrap();
    (0..16).for_each(|number| schunk.append(&large(number)).unwrap());
    schunk.vlmeta_mut().set("note", b"first").unwrap();
    for number in [3, 8] {
        schunk.replace(number, &Chunk::zeros::<u32>(750, params()).unwrap()).unwrap();
    }
}

/// Changes that use gaps, or close them.
fn gaps(all: &mut All) {
    let mut add = |name: &str, run: fn(&mut SChunk) -> Result<()>| {
        let operation = all.schunk(name, run);
        operation.layouts = FILE;
        operation.prepare = |folder, setting| make_gaps(&folder.join("a.b2frame"), setting);
        operation.changes = name != "gaps: compact";
    };
    add("gaps: update into a gap", |schunk| schunk.replace(3, &large(20)));
    add("gaps: move a chunk to a gap", |schunk| {
        schunk.transaction(|schunk| {
            schunk.replace(5, &Chunk::zeros::<u32>(750, params())?)?;
            schunk.replace(8, &large(21))
        })
    });
    add("gaps: transaction", |schunk| {
        schunk.transaction(|schunk| {
            schunk.remove(0)?;
            schunk.append(&large(22))?;
            schunk.replace(2, &large(23))?;
            schunk.remove(2)?;
            schunk.insert(1, &large(24))
        })
    });
    // A chunk is moved after the change, in another commit.
    add("gaps: delete and move the last chunk", |schunk| {
        schunk.transaction(|schunk| (1..15).rev().try_for_each(|index| schunk.remove(index)))
    });
    add("gaps: compact", SChunk::compact);
}

/// A super-chunk whose index has several blocks, with unused bytes before it.
fn make_long_index(path: &Path, setting: Setting) {
    let options = setting.options().create_new(true).chunksize(40);
    let mut schunk = options.open(setting.target(path)).unwrap();
    let append = |schunk: &mut SChunk, number| schunk.append(&[number; 10]);
    schunk.transaction(|schunk| (0..2100u32).try_for_each(|each| append(schunk, each))).unwrap();
    append(&mut schunk, 2100).unwrap();
}

/// Changes of a frame with a long index.
fn long_index(all: &mut All) {
    let mut add = |name: &str, run: fn(&mut SChunk) -> Result<()>| {
        let operation = all.schunk(name, run);
        operation.layouts = FILE;
        operation.prepare = |folder, setting| make_long_index(&folder.join("a.b2frame"), setting);
        operation.changes = name != "long index: compact";
        // Each state has thousands of chunks to verify.
        operation.levels = &[Level::Durable];
    };
    add("long index: append", |schunk| schunk.append(&[1u32; 10]));
    add("long index: append more than fits", |schunk| {
        schunk.transaction(|schunk| (0..60u32).try_for_each(|number| schunk.append(&[number; 10])))
    });
    add("long index: set a metalayer", |schunk| schunk.vlmeta_mut().set("note", [3; 100]));
    add("long index: compact", SChunk::compact);
}

fn arrays(all: &mut All) {
    all.array("read", |array| array.read::<Vec<u32>>(..).map(drop)).changes = false;
    all.array("write", |array| array.write((5..15, 5..20), &items(50, false)[..150]));
    all.array("set an item", |array| array.write([3, 4], 9u32));
    all.array("fill", |array| array.write((..9, ..), 7u32));
    all.array("write points", |array| {
        array.write(Selection::points(&[[0, 0], [19, 24], [9, 9]]), &[1u32, 2, 3])
    });
    all.array("grow", |array| array.resize([30, 26]));
    all.array("shrink", |array| array.resize([8, 12]));
    all.array("append", |array| array.append(0, &items(51, false)[..250]));
    all.array("append columns", |array| array.append(1, &items(52, false)[..140]));
    all.array("insert", |array| array.insert(0, 3, &items(53, false)[..50]));
    all.array("delete", |array| array.delete(0, 2..7));
    all.array("set a variable-length metalayer", |array| array.vlmeta_mut().set("note", [3; 100]));
    all.array("appender", |array| {
        let mut appender = Appender::new(array, 0)?;
        appender.append(&items(54, false)[..50])?;
        appender.append(&items(55, false)[..25])?;
        appender.finish().map(drop)
    });
    all.array("transaction", |array| {
        array.transaction(|array| {
            array.write((..3, ..), 1u32)?;
            array.append(0, &items(56, false)[..50])?;
            array.vlmeta_mut().set("note", b"both")
        })
    });
}

/// Nothing exists.
fn nothing(_: &Path, _: Setting) {}

/// A file with some bytes in the place of a chunk.
fn make_damaged(folder: &Path, setting: Setting) {
    let path = folder.join("a.b2frame");
    make_schunk(&path, setting);
    let file = if setting.directory { path.join("chunks.b2frame") } else { path };
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 20]).unwrap();
}

/// What a program left that died in the middle of a change: with a journal.
fn make_unfinished(folder: &Path, setting: Setting) {
    use blosc2_format::frame::journal;

    let path = folder.join("a.b2frame");
    make_schunk(&path, setting);
    let mut bytes = fs::read(&path).unwrap();
    let len = bytes.len() as u64;
    let last = bytes.len() - 1500;
    let records = [(0, &bytes[..200]), (last as u64, &bytes[last..])];
    let journal = journal::encode(len, len, &records);
    bytes[60..150].fill(0x55);
    bytes[last..].fill(0x55);
    bytes.extend(journal);
    bytes[journal::MARK_AT as usize] = journal::UNFINISHED;
    fs::write(&path, bytes).unwrap();
}

fn files(all: &mut All) {
    all.whole("create a super-chunk", Kind::SChunk, "a.b2frame", nothing, |path, setting| {
        setting.options().create_new(true).meta("kind", b"log").open(setting.target(path)).map(drop)
    })
    .layouts = BOTH;
    all.whole("create an array", Kind::Array, "a.b2nd", nothing, |path, setting| {
        let builder = NDArray::builder().chunk_shape([8, 10]);
        let builder = builder.target(setting.target(path));
        builder.from_slice(&items(60, false)[..300], [10, 30]).map(drop)
    })
    .layouts = BOTH;
    all.whole("create an array of zeros", Kind::Array, "a.b2nd", nothing, |path, setting| {
        let builder = NDArray::builder().chunk_shape([8, 10]);
        let builder = builder.target(setting.target(path));
        builder.open_or_create(|builder| builder.zeros::<u32>([10, 30])).map(drop)
    })
    .layouts = BOTH;
    all.whole(
        "replace a file",
        Kind::SChunk,
        "a.b2frame",
        |folder, setting| make_schunk(&folder.join("a.b2frame"), setting),
        |path, setting| setting.options().replace(true).open(path).map(drop),
    );
    let other = |folder: &Path, setting: Setting| make_schunk(&folder.join("b.b2frame"), setting);
    all.whole("save", Kind::SChunk, "a.b2frame", other, |path, setting| {
        let other = SChunk::open(path.with_file_name("b.b2frame"))?;
        SaveOptions::new().save(&other, setting.target(path))
    })
    .layouts = BOTH;
    all.whole(
        "save over a file",
        Kind::SChunk,
        "a.b2frame",
        |folder, setting| {
            make_schunk(&folder.join("a.b2frame"), setting);
            small(70).save(folder.join("b.b2frame")).unwrap();
        },
        |path, _| {
            let other = SChunk::open(path.with_file_name("b.b2frame"))?;
            SaveOptions::new().replace(true).save(&other, path)
        },
    );
    all.whole(
        "append to a file",
        Kind::Appended,
        "a.b2frame",
        |folder, setting| make_schunk(&folder.join("a.b2frame"), setting),
        |path, _| SaveOptions::new().append(&small(71), path).map(drop),
    );
    all.whole("repair", Kind::Damaged, "a.b2frame", make_damaged, |path, _| {
        repair(path).map(drop)
    })
    .layouts = BOTH;
    all.whole("repair to a new file", Kind::SChunk, "b.b2frame", make_damaged, |path, _| {
        repair_to(path.with_file_name("a.b2frame"), path).map(drop)
    })
    .layouts = BOTH;
    // They give back the content that the unfinished change had before.
    all.whole("recover", Kind::SChunk, "a.b2frame", make_unfinished, |path, setting| {
        setting.options().write(true).recover(true).open(path).map(drop)
    })
    .changes = false;
    all.whole(
        "repair an unfinished change",
        Kind::SChunk,
        "a.b2frame",
        make_unfinished,
        |path, _| repair(path).map(drop),
    )
    .changes = false;
}

fn stores(all: &mut All) {
    all.tree("insert", |tree| tree.insert("/new", &small(80)));
    all.tree("insert in a new group", |tree| tree.insert("/some/where/new", &small(81)));
    all.tree("replace", |tree| tree.insert("/list", &small(82)));
    all.tree("replace by another kind", |tree| tree.insert("/array", &small(83)));
    all.tree("replace by an array", |tree| tree.insert("/list", small_array().schunk()));
    all.tree("create an array", |tree| {
        let make = |builder: blosc2::NDArrayBuilder| {
            let mut array = builder.chunk_shape([8, 10]).zeros::<u32>([10, 30])?;
            array.write(.., &items(84, false)[..300])?;
            Ok(array)
        };
        tree.create_array("/group/array", make).map(drop)
    })
    .opens = true;
    all.tree("remove", |tree| tree.remove("/list"));
    all.tree("remove the last of a group", |tree| tree.remove("/group/deep/one"));
    all.tree("set an attribute", |tree| tree.set_attribute("/group", "unit", "km/h"));
    all.tree("add an attribute", |tree| tree.set_attribute("/", "unit", "km/h"));
    all.tree("remove an attribute", |tree| tree.remove_attribute("/group", "unit").map(drop));
    all.whole("tree store: create a directory", Kind::Tree, "a.b2d", nothing, |path, _| {
        TreeStore::create(path).map(drop)
    });
    all.whole("tree store: create a zip file", Kind::Tree, "a.b2z", nothing, |path, _| {
        let mut tree = TreeStore::create(path)?;
        tree.insert("/one", &small(85))?;
        tree.finish()
    });
    all.whole(
        "tree store: change a zip file",
        Kind::Tree,
        "a.b2z",
        |folder, _| make_tree(&folder.join("a.b2z")),
        |path, _| {
            let mut tree = TreeStore::open_rw(path)?;
            tree.insert("/one", &small(86))?;
            tree.remove("/group")?;
            tree.finish()
        },
    );
    let folder = |folder: &Path, _: Setting| make_tree(&folder.join("b.b2d"));
    all.whole("tree store: pack", Kind::Tree, "a.b2z", folder, |path, _| {
        TreeStore::open(path.with_file_name("b.b2d"))?.pack(path)
    });
    all.whole(
        "tree store: unpack",
        Kind::Tree,
        "a.b2d",
        |folder, _| make_tree(&folder.join("b.b2z")),
        |path, _| TreeStore::open(path.with_file_name("b.b2z"))?.unpack(path),
    );
    all.whole("tree store: copy a directory", Kind::Tree, "a.b2d", folder, |path, _| {
        TreeStore::open(path.with_file_name("b.b2d"))?.unpack(path)
    });
    for (name, run) in [
        ("insert", (|store| store.insert("/new", &small(90))) as fn(&mut EmbedStore) -> Result<()>),
        ("replace", |store| store.insert("/one", &small(91))),
        ("remove", |store| store.remove("/one")),
    ] {
        all.add(Operation {
            name: format!("embedded store: {name}"),
            kind: Kind::Embed,
            path: "a.b2e",
            layouts: FILE,
            levels: CONTAINER_LEVELS,
            opens: false,
            changes: true,
            prepare: |folder, _| {
                let mut store = EmbedStore::create(folder.join("a.b2e")).unwrap();
                store.insert("/one", &small(1)).unwrap();
                store.insert("/two", small_array().schunk()).unwrap();
            },
            open: |path, setting| {
                let schunk = setting.container().write(true).open(path)?;
                EmbedStore::from_schunk(schunk).map(Handle::Embed)
            },
            run: Box::new(move |handle, _, _| {
                let Handle::Embed(store) = handle else { unreachable!() };
                run(store)
            }),
        });
    }
}

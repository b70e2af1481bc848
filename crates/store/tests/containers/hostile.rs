//! Small hostile metadata of containers: what it costs, and that it is refused.

use std::io::{Cursor, Write};
use std::time::Duration;

use blosc2::super_chunk::VariableBlocks;
use blosc2::{ErrorKind, OpenOptions, Result, SChunk, Value};
use blosc2_store::{BatchArray, ItemKind, ItemType, ListArray, Object, TreeStore};

use crate::common::measure::measure;

/// The maximum length of an input, and the maximum memory that opening and reading it takes, in bytes.
const INPUT: usize = 1 << 20;
const MOST_MEMORY: usize = 256 << 20;
/// The maximum CPU time: five times that of an optimised build.
const MOST_TIME: Duration = Duration::from_secs(10);

type Layers<'a> = &'a [(&'a str, Value)];

/// A super-chunk with these fixed-length and variable-length metalayers.
fn schunk(fixed: Layers<'_>, variable: Layers<'_>) -> SChunk {
    let mut schunk = OpenOptions::new().create_new(true).open(Vec::new()).unwrap();
    for (name, value) in fixed {
        schunk.meta_mut().with_reserved().set_value(name, value).unwrap();
    }
    for (name, value) in variable {
        schunk.vlmeta_mut().with_reserved().set_value(name, value).unwrap();
    }
    schunk
}

/// Opens a container in a file, and reads it; both are cheap.
#[track_caller]
fn cheap<T>(schunk: SChunk, read: impl FnOnce(Object) -> T) -> Result<T> {
    let bytes = schunk.into_cframe().unwrap();
    assert!(bytes.len() <= INPUT, "{} bytes", bytes.len());
    let open = || SChunk::open(bytes).and_then(Object::from_schunk).map(read);
    let (result, time, memory) = measure(open);
    assert!(time <= MOST_TIME && memory <= MOST_MEMORY, "{time:?}, {memory} bytes");
    result.expect("no panic")
}

#[track_caller]
fn refused(schunk: SChunk, kind: ErrorKind, text: &str) {
    let error = cheap(schunk, |object| object.kind()).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(text), "{error}");
    assert!(error.to_string().len() < 1000, "a message of {} bytes", error.to_string().len());
}

fn map<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    Value::from(pairs)
}

fn batch_tag() -> (&'static str, Value) {
    ("batcharray", map([("version", 1.into()), ("items_per_block", Value::None)]))
}

/// A list array of this item type, without rows.
fn lists_of(item: Value) -> SChunk {
    schunk(&[("listarray", map([("item", item)])), batch_tag()], &[])
}

fn read_lists(object: Object) -> (ItemType, u64) {
    let Object::ListArray(mut lists) = object else { panic!("{}", object.kind()) };
    let list = lists.list_type().clone();
    assert_eq!(list.metadata().get("item"), Some(&lists.item_type().metadata()));
    lists.refresh().unwrap();
    assert_eq!(lists.iter().take(10).filter(Result::is_err).count(), 0);
    (list, lists.len())
}

fn in_lists(item: Value) -> Value {
    map([("kind", "list".into()), ("item", item)])
}

fn in_structure(item: Value) -> Value {
    let Value::Map(mut pairs) = item else { panic!("a type is a map") };
    pairs.insert(0, ("name".into(), "a".into()));
    map([("kind", "struct".into()), ("fields", Value::List(vec![Value::Map(pairs)]))])
}

#[test]
fn deep_item_types_with_long_options_are_cheap() {
    let wide = Value::List(vec![Value::None; 500_000]);
    let long = Value::from("x".repeat(900_000));
    type Nest = fn(Value) -> Value;
    let types: [(Nest, usize, Value); 4] = [
        (in_lists, 120, long.clone()),
        (in_structure, 60, long),
        (in_lists, 120, wide.clone()),
        (in_structure, 60, wide),
    ];
    for (nest, levels, option) in types {
        let item = map([("kind", "int8".into()), ("later", option.clone())]);
        let item = (0..levels).fold(item, |item, _| nest(item));
        let (list, len) = cheap(lists_of(item), read_lists).unwrap();
        assert_eq!(len, 0);
        // The option is where it was.
        let mut inner = list.metadata();
        let mut depth = 0;
        while inner.get("later").is_none() {
            let Some(Value::Map(pairs)) =
                inner.get("item").or_else(|| inner.get("fields")?.as_list()?.first())
            else {
                panic!("no type inside a type at level {depth}");
            };
            (inner, depth) = (Value::Map(pairs.clone()), depth + 1);
        }
        assert_eq!((depth, inner.get("later")), (levels + 1, Some(&option)));
    }
}

#[test]
fn item_types_with_many_parts_are_cheap_or_refused() {
    let field = |name: String| map([("name", name.into()), ("kind", "".into())]);
    let structure = |names: &mut dyn Iterator<Item = String>| {
        let fields = names.map(field).collect();
        lists_of(map([("kind", "struct".into()), ("fields", Value::List(fields))]))
    };
    let (list, _) =
        cheap(structure(&mut (0..55_000).map(|number| format!("{number:x}"))), read_lists).unwrap();
    assert_eq!(
        list.metadata().get("item").unwrap().get("fields").unwrap().as_list().unwrap().len(),
        55_000
    );
    let twice = structure(&mut (0..55_000).map(|number| format!("{}", number % 54_999)));
    let (list, _) = cheap(twice, read_lists).unwrap();
    assert_eq!(
        list.metadata().get("item").unwrap().get("fields").unwrap().as_list().unwrap().len(),
        54_999
    );

    let with = |options: &mut dyn Iterator<Item = (Value, Value)>| {
        let kind = (Value::from("kind"), "int8".into());
        lists_of(Value::Map(options.chain([kind]).collect()))
    };
    let number = |number: usize| (Value::from(format!("{number:x}")), Value::None);
    assert!(cheap(with(&mut (0..65).map(number)), read_lists).is_ok());
    assert!(cheap(with(&mut (0..90_000).map(number)), read_lists).is_ok());
    // As in Python, the last of two entries counts.
    assert!(cheap(with(&mut (0..90_000).map(|at| number(at % 2))), read_lists).is_ok());
    let twice = with(&mut [("kind".into(), "int16".into())].into_iter());
    let (list, _) = cheap(twice, read_lists).unwrap();
    assert_eq!(list.kind().to_string(), "list[int8]");
    refused(
        with(&mut [(Value::Bytes(vec![5]), Value::None)].into_iter()),
        ErrorKind::InvalidData,
        "an option whose name is bytes",
    );
    let entries = [("name", "a"), ("kind", "int8"), ("name", "b")];
    let twice = Value::Map(entries.map(|(name, value)| (name.into(), value.into())).into());
    let fields = |field| map([("kind", "struct".into()), ("fields", Value::List(vec![field]))]);
    let (list, _) = cheap(lists_of(fields(twice)), read_lists).unwrap();
    let ItemKind::List(item) = list.kind() else { panic!("{}", list.kind()) };
    assert_eq!(item.kind().to_string(), "struct[b]");
    let nameless = map([("kind", "int8".into())]);
    refused(lists_of(fields(nameless)), ErrorKind::InvalidData, "a field without a name");
}

/// A list array of batches of 983,040 null rows each, without stored numbers of rows. A batch takes 100 bytes.
fn uncounted(batches: usize) -> SChunk {
    let mut lists = lists_of(map([("kind", "int8".into())]));
    let batch = [&b"\xdd\x00\x0f\x00\x00"[..], &vec![0xc0; 0xf_0000]].concat();
    (0..batches).for_each(|_| assert!(lists.append(VariableBlocks(&[&batch])).is_ok()));
    lists
}

#[test]
fn counting_the_rows_of_batches_is_cheap_or_refused() {
    let rows = |object: Object| {
        let Object::ListArray(lists) = object else { panic!("{}", object.kind()) };
        (lists.len(), lists.iter().take(3).map(Result::unwrap).collect::<Vec<_>>())
    };
    assert_eq!(cheap(uncounted(100), rows).unwrap(), (100 * 0xf_0000, vec![None; 3]));
    refused(uncounted(300), ErrorKind::TooLarge, "call BatchArray::recount");

    let bytes = uncounted(300).into_cframe().unwrap();
    let mut array =
        BatchArray::from_schunk(OpenOptions::new().write(true).open(bytes).unwrap()).unwrap();
    for error in
        [array.nitems().unwrap_err(), array.item(0).unwrap_err(), array.append(&[1]).unwrap_err()]
    {
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    }
    array.recount().unwrap();
    assert_eq!(array.nitems().unwrap(), 300 * 0xf_0000);
    let lists = ListArray::from_schunk(array.into_schunk()).unwrap();
    assert_eq!(lists.len(), 300 * 0xf_0000);
}

#[test]
fn rows_of_many_small_batches_are_counted() {
    let mut lists = lists_of(map([("kind", "int8".into())]));
    // Half a file of batches of one row, which all together cost more than a large batch.
    (0..10_000).for_each(|_| assert!(lists.append(VariableBlocks(&[b"\x91\x90"])).is_ok()));
    assert_eq!(cheap(lists, read_lists).unwrap().1, 10_000);
}

#[test]
fn blocks_that_claim_more_items_than_bytes_are_refused() {
    for block in [
        &b"\xdd\xff\xff\xff\xff\xc0"[..],
        b"\xdc\x00\x02\xc0",
        b"\x92\xc0",
        b"\xdd\x00",
        b"\x80",
        b"\xc1",
    ] {
        let mut lists = lists_of(map([("kind", "int8".into())]));
        lists.append(VariableBlocks(&[block])).unwrap();
        refused(lists, ErrorKind::InvalidData, "block 0 of batch 0 is not a list");
    }
}

#[test]
fn lengths_of_batches_are_cheap() {
    let lengths = [
        Value::List(vec![Value::None; 600_000]),
        Value::List(vec![1.into(); 600_000]),
        Value::List(vec![u64::MAX.into(); 80_000]),
        Value::List(vec![u64::MAX.into()]),
        Value::List(vec![(1u64 << 32).into()]),
    ];
    for lengths in lengths {
        let lengths = map([("batch_lengths", lengths)]);
        let mut batches = schunk(&[batch_tag()], &[("_batch_array_metadata", lengths)]);
        batches.append(VariableBlocks(&[b"\x92\x01\x02"])).unwrap();
        let read = |object: Object| {
            let Object::BatchArray(array) = object else { panic!("{}", object.kind()) };
            (array.batch_len(0).unwrap(), array.item(1), array.item(2), array.batch(0))
        };
        let (len, second, third, batch) = cheap(batches, read).unwrap();
        if len == 2 {
            assert_eq!(
                (second.unwrap(), third.unwrap_err().kind()),
                (2.into(), ErrorKind::OutOfBounds)
            );
        } else {
            for error in [third.unwrap_err(), batch.unwrap_err()] {
                assert_eq!(error.kind(), ErrorKind::InvalidData);
            }
        }
    }
}

#[test]
fn items_per_block_can_be_any_number() {
    for per_block in [1, 1 << 32, 1 << 63, u64::MAX] {
        let tag = map([("version", 1.into()), ("items_per_block", per_block.into())]);
        let mut batches = schunk(&[("batcharray", tag)], &[]);
        batches.append(VariableBlocks(&[b"\x91\x01", b"\x91\x02"])).unwrap();
        let read = |object: Object| {
            let Object::BatchArray(array) = object else { panic!("{}", object.kind()) };
            (array.nitems().unwrap(), array.item(1))
        };
        let (nitems, item) = cheap(batches, read).unwrap();
        assert_eq!(nitems, 2);
        match per_block {
            1 => assert_eq!(item.unwrap(), 2.into()),
            _ => assert_eq!(item.unwrap_err().kind(), ErrorKind::InvalidData),
        }
    }
}

#[test]
fn tensors_with_impossible_shapes_and_dtypes_are_refused() {
    let tensor = |shape: Value, dtype: Value| {
        schunk(&[], &[("__pack_tensor__", Value::Tuple(vec!["numpy".into(), shape, dtype]))])
    };
    let invalid = |shape: Value, dtype: Value, text: &str| {
        refused(tensor(shape, dtype), ErrorKind::InvalidData, text)
    };
    let shape = |side: u64, ndim: usize| Value::List(vec![side.into(); ndim]);
    for side in [0, 1, u64::MAX] {
        invalid(shape(side, 255), "<i4".into(), "255 dimensions, the maximum is 254");
        invalid(shape(side, 80_000), "<i4".into(), "80000 dimensions");
    }
    invalid(shape(u64::MAX, 2), "<i4".into(), "do not match its 0 bytes");
    invalid(shape(1 << 62, 1), "<i4".into(), "do not match its 0 bytes");
    for text in ["x", "(", "[", "[(", "i4,", "{'a':"] {
        invalid(shape(0, 1), text.repeat(900_000 / text.len()).into(), "of an unknown type");
    }
    let field = |name: String, dtype: &str| Value::Tuple(vec![name.into(), dtype.into()]);
    let fields = |dtype: &str, names: fn(usize) -> String| {
        (0..20_000).map(|number| field(names(number), dtype)).collect::<Vec<_>>()
    };
    let hex = |number| format!("{number:x}");
    let described = cheap(tensor(shape(0, 1), fields("|i1", hex).into()), |object| {
        let Object::Tensor(tensor) = object else { panic!("{}", object.kind()) };
        tensor.dtype().fields().unwrap().len()
    });
    assert_eq!(described.unwrap(), 20_000);
    invalid(
        shape(0, 1),
        fields("|i1", |_| "a".to_owned()).into(),
        "only one field with the name `a`",
    );
    invalid(shape(0, 1), fields("|V9223372036854775807", hex).into(), "of an unknown type");
    invalid(shape(1, 1), fields("|i1", hex).into(), "do not match its 0 bytes");
}

#[test]
fn descriptions_of_carriers_are_cheap() {
    let carrier = |description: Value| schunk(&[("b2o", Value::None)], &[("b2o", description)]);
    let read = |object: Object| {
        let Object::Carrier(carrier) = object else { panic!("{}", object.kind()) };
        (
            carrier.to_string().len(),
            carrier.operands().len(),
            carrier.source().map_or(0, |source| source.len()),
        )
    };
    let pairs = |count: usize| Value::Map(vec![("a".into(), "b".into()); count]);
    let (_, operands, _) =
        cheap(carrier(map([("kind", "lazyexpr".into()), ("operands", pairs(100_000))])), read)
            .unwrap();
    assert_eq!(operands, 100_000);
    let lines = [("kind", "lazyexpr".into()), ("expression", "\n".repeat(10_000_000).into())];
    assert!(cheap(carrier(map(lines)), read).unwrap().0 < 1000);
    let slashes = Value::from("/".repeat(5_000_000));
    let place = [("kind", "remote_array".into()), ("urlbase", slashes.clone()), ("path", slashes)];
    assert_eq!(cheap(carrier(map(place)), read).unwrap().2, 5_000_001);
    let deep = (0..120).fold(Value::None, |inner, _| map([("operands", inner)]));
    assert!(cheap(carrier(deep), read).is_ok());
    let deeper = (0..126).fold(Value::None, |inner, _| Value::Reference(Box::new(inner)));
    assert!(cheap(carrier(deeper), read).is_ok());
}

/// The embedded store of a tree with these entries, whose frames are `data`.
fn embedded(entries: impl Iterator<Item = (String, [u64; 2])>, data: &[u8]) -> SChunk {
    let mut schunk = schunk(&[("b2tree", map([("version", 1.into())]))], &[]);
    schunk.append(data).unwrap();
    let place =
        |[offset, length]: [u64; 2]| map([("offset", offset.into()), ("length", length.into())]);
    let entries = entries.map(|(key, at)| (Value::from(key), place(at)));
    let content = map([("embed_map", Value::Map(entries.collect()))]);
    schunk.vlmeta_mut().with_reserved().set_value("estore_metadata", &content).unwrap();
    schunk
}

/// Opens a zip file with these members beside the embedded store, and reads it; both are cheap.
#[track_caller]
fn cheap_tree<T>(
    index: SChunk,
    members: impl Iterator<Item = String>,
    read: impl FnOnce(TreeStore) -> T,
) -> Result<T> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for name in members {
        zip.start_file(name, options).unwrap();
    }
    zip.start_file("embed.b2e", options).unwrap();
    zip.write_all(&index.into_cframe().unwrap()).unwrap();
    let bytes = zip.finish().unwrap().into_inner();
    assert!(bytes.len() <= INPUT, "{} bytes", bytes.len());
    let (result, time, memory) = measure(|| TreeStore::open_source(bytes).map(read));
    assert!(time <= MOST_TIME && memory <= MOST_MEMORY, "{time:?}, {memory} bytes");
    result.expect("no panic")
}

#[test]
fn many_embedded_entries_are_found_quickly() {
    let entries = (0..100_000).map(|number| (format!("/{number:x}"), [0, 0]));
    let schunk = embedded(entries, &[0]);
    let missing = cheap(schunk, |object| {
        let Object::EmbedStore(store) = object else { panic!("{}", object.kind()) };
        assert!(!store.contains("/none"));
        store.keys().filter(|key| !store.contains(key)).count()
    });
    assert_eq!(missing.unwrap(), 0);
}

#[test]
fn walks_of_many_groups_are_cheap() {
    let members = || (0..8_000).map(|number| format!("{number:x}/a.b2nd"));
    let walk = |store: TreeStore| {
        let children = store.groups().map(|group| store.children(group).unwrap().len());
        (children.sum::<usize>(), store.children("/").unwrap().len())
    };
    let index = embedded([].into_iter(), &[0]);
    assert_eq!(cheap_tree(index, members(), walk).unwrap(), (8_000, 8_000));
}

#[test]
fn deep_keys_have_a_limited_number_of_groups() {
    let deep = "/a".repeat(250);
    let keys = |count| (0..count).map(|number| (format!("/{number:x}{deep}"), [0, 0]));
    let count = |store: TreeStore| store.groups().count();
    let few = cheap_tree(embedded(keys(4_000), &[0]), [].into_iter(), count);
    assert_eq!(few.unwrap(), 4_000 * 250);
    let many = cheap_tree(embedded(keys(20_000), &[0]), [].into_iter(), count).unwrap_err();
    assert_eq!(many.kind(), ErrorKind::TooLarge);
}

#[test]
fn tables_that_share_a_frame_are_not_copied_without_limit() {
    let zeros = vec![0u8; 16 << 20];
    let at = [0, zeros.len() as u64];
    let keys = |count| (0..count).map(|number| (format!("/{number:x}/_meta"), at));
    let count = |store: TreeStore| store.keys().count();
    let few = cheap_tree(embedded(keys(4), &zeros), [].into_iter(), count);
    assert_eq!(few.unwrap(), 4);
    let many = cheap_tree(embedded(keys(10_000), &zeros), [].into_iter(), count).unwrap_err();
    assert_eq!(many.kind(), ErrorKind::TooLarge);
}

#[test]
fn errors_about_keys_are_short() {
    let long = "x".repeat(1 << 20);
    let folder = tempfile::tempdir().unwrap();
    let mut store = TreeStore::create(folder.path().join("a.b2d")).unwrap();
    let error = store.insert(&format!("/{long}"), &schunk(&[], &[])).unwrap_err();
    assert!(error.to_string().len() < 1000, "a message of {} bytes", error.to_string().len());
    refused(embedded([(long, [5, 5])].into_iter(), &[0]), ErrorKind::InvalidData, "beyond its");
}

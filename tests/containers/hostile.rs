//! Small hostile metadata of containers.

use std::time::Duration;

use blosc2::{CParams, OpenOptions, SChunk, Value};
use blosc2_store::{EmbedStore, ListArray, Object};

use crate::common::measure::measure;

fn nils(count: usize) -> Value {
    Value::List(vec![Value::None; count])
}

fn map<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    Value::from(pairs)
}

fn frame(fixed: &[(&str, Vec<u8>)], variable: &[(&str, Vec<u8>)], chunks: &[Vec<u8>]) -> Vec<u8> {
    let mut schunk = OpenOptions::new().cparams(CParams::new().typesize(1)).in_memory().unwrap();
    for (name, content) in fixed {
        schunk.meta_mut().with_reserved().set(name, content).unwrap();
    }
    for (name, content) in variable {
        schunk.vlmeta_mut().with_reserved().set(name, content).unwrap();
    }
    for chunk in chunks {
        schunk.append_blocks(&[chunk]).unwrap();
    }
    schunk.into_cframe().unwrap()
}

fn tag() -> Vec<u8> {
    map([("version", 1.into()), ("items_per_block", Value::None)]).to_msgpack().unwrap()
}

fn list_frame(item: Value) -> Vec<u8> {
    let list = map([("version", 1.into()), ("item", item)]);
    frame(&[("listarray", list.to_msgpack().unwrap()), ("batcharray", tag())], &[], &[])
}

fn open(bytes: Vec<u8>) -> blosc2::Result<Object> {
    Object::from_schunk(SChunk::from_cframe(bytes)?)
}

fn cost(name: &str, bytes: Vec<u8>, walk: impl FnOnce(Object)) {
    let len = bytes.len();
    let mut outcome = String::new();
    let (result, time, memory) = measure(|| match open(bytes) {
        Ok(object) => {
            outcome = object.kind().to_owned();
            walk(object)
        }
        Err(error) => {
            outcome = error.to_string();
            outcome.truncate(200);
        }
    });
    println!(
        "{name:30} {len:8} bytes {time:>12.2?} {:6} MiB {} {outcome}",
        memory >> 20,
        result.is_ok()
    );
}

fn nested(levels: usize, inner: Value) -> Value {
    (0..levels).fold(inner, |item, _| map([("kind", "list".into()), ("item", item)]))
}

fn nested_structs(levels: usize, inner: Value) -> Value {
    (0..levels).fold(inner, |item, _| {
        let Value::Map(mut pairs) = item else { panic!() };
        pairs.insert(0, ("name".into(), "a".into()));
        map([("kind", "struct".into()), ("fields", Value::List(vec![Value::Map(pairs)]))])
    })
}

fn list(object: Object) {
    let Object::ListArray(mut list) = object else { panic!() };
    drop((list.item_type().metadata(), list.list_type().clone(), list.len(), list.is_nullable()));
    drop((list.get(0), list.iter().take(12).count()));
    drop(list.refresh());
}

#[test]
fn explore() {
    let leaf = |extra: Value| map([("kind", "int8".into()), ("x", extra)]);
    cost("lists over nils", list_frame(nested(30, leaf(nils(500_000)))), list);
    cost("lists over text", list_frame(nested(120, leaf("x".repeat(900_000).into()))), list);
    cost("structs over nils", list_frame(nested_structs(30, leaf(nils(500_000)))), list);
    let field = |name: String| map([("name", name.into()), ("kind", "".into())]);
    let fields = (0..60_000).map(|n| field(format!("{n:x}"))).collect();
    cost(
        "fields",
        list_frame(map([("kind", "struct".into()), ("fields", Value::List(fields))])),
        list,
    );
    let fields = (0..60_000).map(|_| field(String::new())).collect();
    cost(
        "same fields",
        list_frame(map([("kind", "struct".into()), ("fields", Value::List(fields))])),
        list,
    );
    let options = (0..200_000)
        .map(|_| ("".into(), Value::None))
        .chain([("kind".into(), "int8".into())])
        .collect();
    cost("options", list_frame(Value::Map(options)), |object| {
        let Object::ListArray(list) = object else { panic!() };
        let bytes = list.into_schunk().unwrap().into_cframe().unwrap();
        let mut list =
            ListArray::from_schunk(OpenOptions::new().write(true).from_cframe(bytes).unwrap())
                .unwrap();
        println!("{:?}", list.append(Some(&[1; 100])).map_err(|e| e.to_string()));
    });
    // Batches
    for lengths in [
        nils(600_000),
        Value::List(vec![1.into(); 600_000]),
        Value::List(vec![u64::MAX.into(); 80_000]),
    ] {
        let lengths = map([("batch_lengths", lengths)]).to_msgpack().unwrap();
        cost(
            "lengths",
            frame(
                &[("batcharray", tag())],
                &[("_batch_array_metadata", lengths)],
                &[vec![0x91, 0xc0]],
            ),
            |object| {
                let Object::BatchArray(array) = object else { panic!() };
                drop((array.nitems(), array.item(0), array.batch_len(0)));
            },
        );
    }
    let batch = [&b"\xdd\x00\x0f\x00\x00"[..], &vec![0xc0; 0xf0000]].concat();
    let bytes = frame(
        &[
            ("batcharray", tag()),
            ("listarray", map([("item", map([("kind", "int8".into())]))]).to_msgpack().unwrap()),
        ],
        &[],
        &vec![batch; 100],
    );
    cost("batches to count", bytes, list);
    // Tensors
    let tensor = |shape: Value, dtype: Value| {
        let value = Value::Tuple(vec!["numpy".into(), shape, dtype]).to_msgpack().unwrap();
        frame(&[], &[("__pack_tensor__", value)], &[])
    };
    cost("shape of ones", tensor(Value::List(vec![1.into(); 600_000]), "<i4".into()), drop);
    cost("shape of zeros", tensor(Value::List(vec![0.into(); 600_000]), "<i4".into()), |o| {
        drop(format!("{o:?}"))
    });
    cost("huge shape", tensor(Value::List(vec![u64::MAX.into(); 2]), "<i4".into()), drop);
    cost("no shape", tensor(Value::List(vec![0.into()]), "x".repeat(900_000).into()), drop);
    cost("brackets", tensor(Value::List(vec![0.into()]), "(".repeat(900_000).into()), drop);
    cost("square brackets", tensor(Value::List(vec![0.into()]), "[".repeat(900_000).into()), drop);
    cost("commas", tensor(Value::List(vec![0.into()]), "i4,".repeat(300_000).into()), drop);
    let fields: Vec<Value> =
        (0..60_000).map(|n| Value::Tuple(vec![format!("{n:x}").into(), "|i1".into()])).collect();
    cost("dtype fields", tensor(Value::List(vec![0.into()]), fields.into()), drop);
    let fields: Vec<Value> =
        (0..60_000).map(|_| Value::Tuple(vec!["a".into(), "|i1".into()])).collect();
    cost("same dtype fields", tensor(Value::List(vec![0.into()]), fields.into()), drop);
    let fields: Vec<Value> = (0..2_000)
        .map(|n| {
            Value::Tuple(vec![
                format!("{n:x}").into(),
                "|i1".into(),
                Value::Tuple(vec![1.into(); 200]),
            ])
        })
        .collect();
    cost("dtype subarrays", tensor(Value::List(vec![0.into()]), fields.into()), drop);
    let fields: Vec<Value> = (0..20_000)
        .map(|n| Value::Tuple(vec![format!("{n:x}").into(), "|V9223372036854775807".into()]))
        .collect();
    cost("dtype sizes", tensor(Value::List(vec![0.into()]), fields.into()), drop);
    let deep = (0..60).fold(Value::from("|i1"), |inner, _| {
        Value::List(vec![Value::Tuple(vec!["a".into(), inner.clone()])])
    });
    cost("dtype deep", tensor(Value::List(vec![0.into()]), deep), |o| drop(format!("{o:?}")));
    let wide = Value::List(
        (0..10_000)
            .map(|n| Value::Tuple(vec![format!("{n:x}").into(), "|i1".into()]))
            .collect::<Vec<_>>(),
    );
    let deep =
        (0..60).fold(wide, |inner, _| Value::List(vec![Value::Tuple(vec!["a".into(), inner])]));
    cost("dtype deep and wide", tensor(Value::List(vec![0.into()]), deep), |o| {
        drop(format!("{o:?}"))
    });
    // Carriers
    let carrier = |description: Value| {
        frame(&[("b2o", vec![0xc0])], &[("b2o", description.to_msgpack().unwrap())], &[])
    };
    let text = |o: Object| {
        let Object::Carrier(c) = o else { panic!() };
        drop((c.to_string(), c.operands(), c.source()))
    };
    let operands = Value::Map((0..100_000).map(|_| ("a".into(), "b".into())).collect());
    cost("operands", carrier(map([("kind", "lazyexpr".into()), ("operands", operands)])), text);
    let operands = Value::Map((0..600_000).map(|_| ("".into(), Value::None)).collect());
    cost("pairs", carrier(map([("kind", "lazyexpr".into()), ("operands", operands)])), text);
    cost(
        "lines",
        carrier(map([("kind", "lazyexpr".into()), ("expression", "\n".repeat(30_000_000).into())])),
        text,
    );
    cost(
        "bases",
        carrier(map([
            ("kind", "remote_array".into()),
            ("urlbase", "/".repeat(30_000_000).into()),
            ("path", "/".repeat(3_000_000).into()),
        ])),
        text,
    );
    // Embed stores
    let entry = map([("offset", 0.into()), ("length", 0.into())]);
    let entries =
        Value::Map((0..50_000).map(|n| (format!("/{n:x}").into(), entry.clone())).collect());
    let map_of = |entries| map([("embed_map", entries)]).to_msgpack().unwrap();
    let walk = |o: Object| {
        let Object::EmbedStore(s) = o else { panic!() };
        for key in s.keys() {
            drop(s.get(key));
        }
    };
    cost(
        "entries",
        frame(&[("b2embed", vec![0xc0])], &[("estore_metadata", map_of(entries))], &[]),
        walk,
    );
    let entry = map([("path", nils(1000))]);
    let entries = Value::Map((0..500).map(|n| (format!("/{n:x}").into(), entry.clone())).collect());
    cost(
        "references",
        frame(&[("b2embed", vec![0xc0])], &[("estore_metadata", map_of(entries))], &[]),
        walk,
    );
    drop(EmbedStore::in_memory());
}

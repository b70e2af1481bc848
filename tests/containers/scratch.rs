use blosc2::{CParams, Chunk, Dtype, NDArray, OpenOptions, SChunk, Special, Value};
use blosc2_format::file::{self, File};
use blosc2_format::{Limits, Options};
use blosc2_store::*;

fn show<T>(what: &str, result: Result<T, impl std::fmt::Display>) {
    match result {
        Ok(_) => println!("{what}: ok"),
        Err(e) => println!("{what}: ERROR {e}"),
    }
}

#[test]
fn a_values() {
    let f = tempfile::tempdir().unwrap();
    let many = Value::List(vec![Value::None; 20_000_000]);
    let p = f.path().join("o.b2frame");
    let mut a = ObjectArray::create(&p).unwrap();
    show("object append", a.append(&many));
    drop(a);
    show("object get", ObjectArray::open(&p).unwrap().get(0));
    let p = f.path().join("v.b2frame");
    let mut s = OpenOptions::new().create_new(true).open(&p).unwrap();
    show("vlmeta set", s.vlmeta_mut().set_value("a", &many));
    drop(s);
    show("vlmeta value", SChunk::open(&p).unwrap().vlmeta().value("a"));
    let p = f.path().join("b.b2frame");
    let mut b = BatchArray::create(&p).unwrap();
    let Value::List(items) = many else { panic!() };
    show("batch append", b.append(&items));
    drop(b);
    let b = BatchArray::open(&p).unwrap();
    show("batch item", b.item(19_999_999));
    show("batch batch", b.batch(0));
}

#[test]
fn b_chunks() {
    let f = tempfile::tempdir().unwrap();
    let p = f.path().join("c.b2frame");
    let mut s = OpenOptions::new().create_new(true).open(&p).unwrap();
    show("fill", s.fill(Special::Zeros, 1 << 24, 1));
    show("append one more", s.append(&[0u8]));
    drop(s);
    show("open", SChunk::open(&p));
    let p = f.path().join("n.b2nd");
    let made = NDArray::builder().chunks([1]).blocks([1]).file(&p).zeros::<u8>([(1 << 24) + 1]);
    show("array", made);
    show("open array", NDArray::open(&p));
    let p = f.path().join("m.b2nd");
    let mut a = NDArray::builder().chunks([1]).blocks([1]).file(&p).zeros::<u8>([1 << 24]).unwrap();
    show("resize", a.resize([(1 << 24) + 1]));
    drop(a);
    show("open array", NDArray::open(&p));
}

#[test]
fn c_tensor() {
    let t = Tensor::from_slice(&[1u8], &[1; 300]);
    let t = t.unwrap();
    show("tensor", Tensor::from_cframe(t.to_cframe().unwrap()));
}

#[test]
fn d_item_type() {
    let mut t = ItemType::from(ItemKind::Other("new".into()));
    for n in 0..70 {
        t = t.with(&format!("o{n}"), n);
    }
    let a = ListArray::in_memory(t, true);
    show("list create", a.as_ref().map(|_| ()).map_err(|e| e.to_string()));
    show("list read", ListArray::from_schunk(a.unwrap().into_schunk().unwrap()));
}

#[test]
fn e_schema() {
    let f = tempfile::tempdir().unwrap();
    let nest = |levels: usize, kind: bool| {
        (0..levels).fold(ItemType::from(ItemKind::Int8), |item, _| match kind {
            true => ItemKind::List(Box::new(item)).into(),
            false => ItemKind::Struct(vec![("a".to_owned(), item)]).into(),
        })
    };
    for kind in [true, false] {
        for levels in [10, 30, 31] {
            let schema = Schema::new().column("a", ColumnKind::List(nest(levels, kind)));
            let p = f.path().join(format!("{kind}{levels}.b2d"));
            show(&format!("create {kind} {levels}"), CTable::create(&p, &schema));
            show("open", CTable::open(&p));
        }
    }
    let deep = (0..126).fold(Value::None, |value, _| Value::List(vec![value]));
    let schema = Schema::new().column("a", ColumnSpec::from(ColumnKind::Object).with("default", deep));
    let p = f.path().join("deep.b2d");
    show("create deep", CTable::create(&p, &schema));
    show("open", CTable::open(&p));
    let schema = Schema::new().column("a", ColumnSpec::from(ColumnKind::VlString).with("default", "x".repeat(17 << 20)));
    let p = f.path().join("long.b2d");
    show("create long", CTable::create(&p, &schema));
    show("open", CTable::open(&p));
    let schema = Schema::new().column("a", ColumnSpec::from(ColumnKind::Object).with("default", Value::List(vec![Value::Int(1); 1_000_000])));
    let p = f.path().join("wide.b2d");
    show("create wide", CTable::create(&p, &schema));
    show("open", CTable::open(&p));
    let schema = Schema::new().column("a", ColumnKind::Int8).expected_rows(1 << 44);
    let p = f.path().join("rows.b2d");
    show("create rows", CTable::create(&p, &schema));
    show("open", CTable::open(&p));
    let mut table = CTable::create(f.path().join("t.b2d"), &Schema::new().column("a", ColumnKind::Int8)).unwrap();
    show("rename", table.rename_column("a", &"x".repeat(4000)));
    let t = std::time::Instant::now();
    let mut schema = Schema::new();
    for n in 0..2000 { schema = schema.column(format!("c{n}"), ColumnKind::Int8); }
    show("2000", CTable::in_memory(&schema));
    println!("{:?}", t.elapsed());
}

#[test]
fn f_dtype() {
    let f = tempfile::tempdir().unwrap();
    let mut text = "'<i4'".to_owned();
    let mut last = 0;
    for level in 0..40 {
        text = format!("[('f', {text})]");
        if Dtype::parse(&text).is_ok() { last = level + 1; } else { break }
    }
    println!("levels {last}");
    for levels in [last, 31, 32, 21, 20] {
        let mut text = "'<i4'".to_owned();
        for _ in 0..levels { text = format!("[('f', {text})]"); }
        let p = f.path().join(format!("d{levels}.b2nd"));
        show("create", NDArray::builder().file(&p).special(Special::Zeros, &[3u64][..], &text, 4));
        let a = NDArray::open(&p).unwrap();
        println!("dtype known {}", a.dtype().is_some());
        let (_, report) = file::check_path(&p, &Options::default()).unwrap();
        println!("{levels}: {:?}", report.findings);
        let v = Value::from_dtype(a.dtype().unwrap());
        show("descr", v.as_ref().map(|_| ()).map_err(|e| e.to_string()));
        if let Ok(v) = v {
            show("to_msgpack", v.to_msgpack());
            show("back", v.to_dtype());
            let arr = blosc2::ArrayValue::new(a.dtype().unwrap().clone(), vec![1], vec![0; 4]).unwrap();
            let bytes = Value::from(arr).to_msgpack();
            show("array value", bytes.as_ref().map(|_| ()).map_err(|e| e.to_string()));
            if let Ok(bytes) = bytes { show("array back", Value::from_msgpack(&bytes)); }
        }
    }
    // sub-arrays
    let mut text = "'<i4'".to_owned();
    for _ in 0..16 { text = format!("[('f', {text}, (1,))]"); }
    println!("sub {:?}", Dtype::parse(&text).is_ok());
    let p = f.path().join("sub.b2nd");
    show("create", NDArray::builder().file(&p).special(Special::Zeros, &[3u64][..], &text, 4));
    let (_, report) = file::check_path(&p, &Options::default()).unwrap();
    println!("{:?}", report.findings);
    // npy
    let name = "x".repeat((1 << 20) - 30);
    let text = format!("[('{name}', '<i4')]");
    println!("{} {:?}", text.len(), Dtype::parse(&text).is_ok());
}

#[test]
fn g_total() {
    let f = tempfile::tempdir().unwrap();
    let p = f.path().join("full.b2nd");
    let a = NDArray::builder().file(&p).chunks([1 << 30]).blocks([1 << 20]).full(7u8, [17u64 << 40]);
    show("full", a.as_ref().map(|_| ()).map_err(|e| e.to_string()));
    let (_, report) = file::check_path(&p, &Options { content: true, ..Options::default() }).unwrap();
    println!("{:?} {}", report.findings, report.is_complete());
}

#[test]
fn h_deep_keys() {
    let f = tempfile::tempdir().unwrap();
    let p = f.path().join("s.b2d");
    let mut store = TreeStore::create(&p).unwrap();
    let key = "/a".repeat(254);
    let schema = Schema::new().column("a.b", ColumnKind::Int8);
    show("create_table 254", store.create_table(&key, &schema));
    let key = "/b".repeat(256);
    show("insert 256", store.insert(&key, NDArray::from_slice(&[1u8], &[1]).unwrap().schunk()));
    drop(store);
    let store = TreeStore::open(&p).unwrap();
    show("get", store.get(&key));
    show("table", store.get(&"/a".repeat(254)));
    let group = "/b".repeat(255);
    let mut store = TreeStore::open_rw(&p).map(|s| { drop(store); s }).unwrap();
    show("attr", store.set_attribute(&group, "a", &1));
    show("attrs", store.attributes(&group));
}

#[test]
fn i_block() {
    let f = tempfile::tempdir().unwrap();
    let p = f.path().join("c.b2frame");
    let mut s = OpenOptions::new().create_new(true).cparams(CParams::default().blocksize(300 << 20)).open(&p).unwrap();
    let data: Vec<u8> = (0..300usize << 20).map(|n| (n % 7) as u8).collect();
    show("append", s.append(&data));
    println!("{:?}", s.chunk_info(0));
    drop(s);
    let s = SChunk::open(&p).unwrap();
    show("chunk", s.decompress_chunk::<u8>(0));
    show("items", s.items::<u8>(0..10));
    let mut out = vec![0u8; data.len()];
    show("into", s.decompress_chunk_into(0, &mut out));
}

#[test]
fn j_repair() {
    let f = tempfile::tempdir().unwrap();
    let p = f.path().join("c.b2frame");
    let mut s = OpenOptions::new().create_new(true).open(&p).unwrap();
    show("fill", s.fill(Special::Zeros, 1 << 24, 1));
    drop(s);
    println!("{}", std::fs::metadata(&p).unwrap().len());
    let bytes = std::fs::read(&p).unwrap();
    std::fs::write(&p, &bytes[..bytes.len() - 1]).unwrap();
    println!("{:?}", blosc2::repair::repair(&p).map_err(|e| e.to_string()).map(|o| format!("{o:?}")));
}

#[test]
fn k_nested_store() {
    let mut store = EmbedStore::in_memory().unwrap();
    for _ in 0..6 {
        let mut outer = EmbedStore::in_memory().unwrap();
        outer.insert("/in", store.schunk()).unwrap();
        store = outer;
    }
    let mut inner = store;
    for level in 0.. {
        match inner.get("/in") {
            Ok(Object::EmbedStore(next)) => inner = next,
            other => { println!("{level} {:?}", other.map(|_| ()).map_err(|e| e.to_string())); break }
        }
    }
}

#[test]
fn l_dictionary() {
    let f = tempfile::tempdir().unwrap();
    let p = f.path().join("d.b2d");
    let mut table = CTable::create(&p, &Schema::new().column("a", ColumnKind::Dictionary { ordered: false })).unwrap();
    for n in 0..12 {
        let texts = (0..100).map(|i| Some("x".repeat(1 << 20) + &format!("{n} {i}")));
        show("append", table.append([("a", Data::texts(texts))]));
    }
    table.finish().unwrap();
    drop(table);
    let t = CTable::open(&p).unwrap();
    show("read", t.texts("a", 0..1));
    show("values", t.values("a", 0..1));
}

#[test]
fn m_zip() {
    use std::io::{Cursor, Write};
    let n: usize = std::env::var("N").unwrap().parse().unwrap();
    let len: usize = std::env::var("LEN").unwrap().parse().unwrap();
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for i in 0..n {
        zip.start_file(format!("{i:0len$}.b2nd"), options).unwrap();
        zip.write_all(&[0; 100]).unwrap();
    }
    let bytes = zip.finish().unwrap().into_inner();
    println!("{} bytes", bytes.len());
    show("open", TreeStore::open_source(bytes));
}

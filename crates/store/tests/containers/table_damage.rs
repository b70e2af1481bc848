//! Changes of tables whose parts do not fit together: an error, before anything is changed; and changes of columns whose
//! names are nested.

use std::fs;
use std::path::{Path, PathBuf};

use blosc2::super_chunk::VariableBlocks;
use blosc2::{ErrorKind, NDArray, RawItems, SChunk, Value};
use blosc2_store::{BatchArray, CTable, Data, ItemKind, ItemType, Schema};
use blosc2_testing::{OTHER_ORDER, swapped};

/// A table in a directory with two columns and five rows. The first row is deleted.
struct Table {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Table {
    fn new(kind: impl Into<ItemType>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.b2d");
        let schema = Schema::new().column("id", ItemKind::Int64).column("text", kind);
        let mut table = CTable::create(&path, &schema).unwrap();
        let texts = Data::texts((0..5).map(|row| Some(format!("{row}"))));
        table.append([("id", Data::items(&[0i64, 1, 2, 3, 4])), ("text", texts)]).unwrap();
        table.delete_rows([0]).unwrap();
        table.finish().unwrap();
        Self { _folder: folder, path }
    }

    fn open(&self) -> CTable {
        CTable::open_rw(&self.path).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Calls a change, which fails with this kind of error, and leaves the other column as it was.
    #[track_caller]
    fn refuses(&self, kind: ErrorKind, change: impl FnOnce(&mut CTable) -> blosc2::Result<()>) {
        let mut table = self.open();
        let error = change(&mut table).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        drop(table);
        let table = CTable::open(&self.path).unwrap();
        assert_eq!(table.read::<i64>("id", ..).unwrap(), [1, 2, 3, 4]);
    }
}

fn replace(path: &Path, array: &NDArray) {
    fs::remove_file(path).unwrap();
    fs::write(path, array.schunk().to_cframe().unwrap()).unwrap();
}

#[test]
fn compact_changes_no_column_if_one_cannot_be_read() {
    let table = Table::new(ItemKind::Utf8);
    let mut offsets = NDArray::open_rw(table.file("_cols/text.b2nd")).unwrap();
    offsets.write(5..6, &[99i64]).unwrap();
    drop(offsets);
    table.refuses(ErrorKind::InvalidData, |table| table.compact());

    let table = Table::new(ItemKind::VlString);
    let mut batches = BatchArray::open_rw(table.file("_cols/text.b2b")).unwrap();
    let mut items = batches.batch(0).unwrap();
    items.truncate(3);
    batches.set(0, &items).unwrap();
    drop(batches);
    table.refuses(ErrorKind::InvalidData, |table| table.compact());
    table.refuses(ErrorKind::InvalidData, |table| table.delete_rows([0]).map(drop));
}

#[test]
fn ends_of_strings_outside_the_bytes_are_refused() {
    for end in [-1i64, 1 << 46] {
        let table = Table::new(ItemKind::Utf8);
        let mut offsets = NDArray::open_rw(table.file("_cols/text.b2nd")).unwrap();
        offsets.write(5..6, &[end]).unwrap();
        drop(offsets);
        let row = || [("id", Data::items(&[5i64])), ("text", Data::texts([Some("x")]))];
        table.refuses(ErrorKind::InvalidData, |table| table.append(row()));
    }
}

#[test]
fn items_that_differ_from_the_schema_are_not_changed() {
    let table = Table::new(ItemKind::String { max_length: 4 });
    let longer = Table::new(ItemKind::String { max_length: 9 });
    fs::copy(longer.file("_cols/text.b2nd"), table.file("_cols/text.b2nd")).unwrap();
    let texts = || Data::texts([Some("x"), Some("y")]);
    table.refuses(ErrorKind::Unsupported, |table| table.update("text", [0, 2], texts()));

    let table = Table::new(ItemKind::Utf8);
    let dtype = &format!("{OTHER_ORDER}i8");
    let mut ids = NDArray::builder().dtype(dtype, 8).full(RawItems(&[0; 8]), [5]).unwrap();
    let bytes: Vec<u8> = (0..5i64).flat_map(|id| swapped(id.to_ne_bytes())).collect();
    ids.write(.., RawItems(&bytes)).unwrap();
    replace(&table.file("_cols/id.b2nd"), &ids);
    let mut open = table.open();
    let error = open.update("id", [0], Data::items(&[7i64])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(open.values("id", ..).unwrap(), [1, 2, 3, 4].map(Value::from));
}

#[test]
fn codes_of_another_size_than_that_of_their_dtype_are_refused() {
    let table = Table::new(ItemKind::Dictionary { ordered: false });
    let codes = NDArray::from_slice(&[0i64, 1, 2, 3, 4], 5).unwrap();
    let mut frame = codes.schunk().to_cframe().unwrap();
    // The dtype in the metalayer of the array.
    let dtype = frame.windows(3).position(|text| text[1..] == *b"i8").unwrap();
    frame[dtype + 2] = b'4';
    fs::write(table.file("_cols/text.b2nd"), frame).unwrap();
    let cells = || Data::texts([Some("1")]);
    table.refuses(ErrorKind::InvalidData, |table| table.update("text", [0], cells()).map(drop));
}

#[test]
fn masks_of_nulls_that_lack_rows_are_refused() {
    let table = Table::new(ItemType::from(ItemKind::Utf8).nullable());
    let mask = NDArray::from_slice(&[true; 3], [3]).unwrap();
    fs::write(table.file("_cols/text.notnull.b2nd"), mask.schunk().to_cframe().unwrap()).unwrap();
    let texts = || Data::texts([Some("x"), None]);
    table.refuses(ErrorKind::InvalidData, |table| table.update("text", [0, 3], texts()));
    table.refuses(ErrorKind::InvalidData, |table| table.compact());
    // Other columns can be changed.
    let mut open = table.open();
    open.update("id", [3], Data::items(&[4i64])).unwrap();
    open.finish().unwrap();
    drop(open);
    let offsets = NDArray::open(table.file("_cols/text.b2nd")).unwrap();
    assert_eq!(offsets.read::<Vec<i64>>(..).unwrap(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn batches_are_changed_together_or_not_at_all() {
    let column = ItemType::from(ItemKind::VlString).with("batch_rows", 2);
    let table = Table::new(column);
    let file = table.file("_cols/text.b2b");
    let old = |batch| BatchArray::open(&file).unwrap().batch(batch).unwrap();
    assert_eq!(old(0), ["0", "1"].map(Value::from));
    let mut schunk = SChunk::open_rw(&file).unwrap();
    let one = Value::List(vec!["2".into()]).to_msgpack().unwrap();
    schunk.replace(1, VariableBlocks(&[&one])).unwrap();
    drop(schunk);
    let texts = || Data::texts([Some("x"), Some("y")]);
    table.refuses(ErrorKind::InvalidData, |table| table.update("text", [0, 1], texts()));
    assert_eq!(old(0), ["0", "1"].map(Value::from));
    let mut open = table.open();
    open.update("text", [0, 3], texts()).unwrap();
    assert_eq!((old(0), old(2)), (vec!["0".into(), "x".into()], vec!["y".into()]));
}

#[test]
fn new_columns_of_masks_with_very_many_rows_are_refused() {
    let mask = || NDArray::builder().chunk_shape([1 << 26]).block_shape([1 << 20]);
    let rows: u64 = 1 << 36;

    let table = Table::new(ItemKind::Utf8);
    replace(&table.file("_valid_rows.b2nd"), &mask().full(true, [rows]).unwrap());
    let with_default = ItemType::from(ItemKind::Int8).with("default", 1);
    let error = table.open().add_column("new", with_default, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");

    let mut last = mask().zeros::<bool>([rows]).unwrap();
    last.write([rows - 1], true).unwrap();
    replace(&table.file("_valid_rows.b2nd"), &last);
    let one = Some(Data::texts([Some("x")]));
    let error = table.open().add_column("new", ItemKind::VlString, one).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
}

#[test]
fn columns_below_another_column_stay() {
    let folder = tempfile::tempdir().unwrap();
    let schema = || {
        let column = || ItemKind::Int64;
        Schema::new().column("a", column()).column("a.b", column()).column("z", column())
    };
    let fill = |table: &mut CTable| {
        let one = |number: &'static [i64]| Data::items(number);
        table.append([("a", one(&[1])), ("a.b", one(&[2])), ("z", one(&[3]))]).unwrap();
    };
    let check = |table: &CTable, columns: [(&str, i64); 2]| {
        for (name, number) in columns {
            assert_eq!(table.read::<i64>(name, ..).unwrap(), [number], "{name}");
        }
    };
    for ending in ["b2d", "b2z"] {
        let path = folder.path().join("drop").with_extension(ending);
        let mut table = CTable::create(&path, &schema()).unwrap();
        fill(&mut table);
        table.drop_column("a").unwrap();
        table.finish().unwrap();
        check(&table, [("a.b", 2), ("z", 3)]);
        table.rename_column("z", "z.y").unwrap();
        check(&table, [("a.b", 2), ("z.y", 3)]);
        table.rename_column("a.b", "a").unwrap();
        table.finish().unwrap();
        drop(table);
        check(&CTable::open(&path).unwrap(), [("a", 2), ("z.y", 3)]);
    }
    let mut table = CTable::in_memory(&schema()).unwrap();
    fill(&mut table);
    table.drop_column("a").unwrap();
    table.rename_column("z", "z.y").unwrap();
    check(&CTable::from_cframe(table.to_cframe().unwrap()).unwrap(), [("a.b", 2), ("z.y", 3)]);
}

#[test]
fn numbers_that_do_not_fit_a_cell_are_refused() {
    let mut table = CTable::in_memory(&Schema::new().column("a", ItemKind::Float64)).unwrap();
    table.append([("a", Data::items(&[0.5, f64::INFINITY, 1e300]))]).unwrap();
    assert_eq!(table.cells::<f32>("a", ..2).unwrap(), [0.5, f32::INFINITY]);
    assert_eq!(table.cells::<f32>("a", ..).unwrap_err().kind(), ErrorKind::TypeMismatch);
}

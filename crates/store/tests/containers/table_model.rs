//! Random tables, and a model of their rows.

use crate::common::Rng;
use blosc2::{ArrayValue, Dtype, Value};
use blosc2_store::{CTable, Column, Data, ItemKind, ItemType, Schema, TableAppender, TimeUnit};

/// A column of a random table: how its cells are made.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) name: String,
    pub(crate) spec: ItemType,
}

/// A random table and its expected rows.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) columns: Vec<Made>,
    pub(crate) rows: Vec<Vec<Value>>,
    next: usize,
}

fn one<T: Copy>(rng: &mut Rng, items: &[T]) -> T {
    items[rng.below(items.len() as u64) as usize]
}

fn kind(rng: &mut Rng) -> ItemKind {
    use ItemKind::*;
    match rng.below(23) {
        0 => Int8,
        1 => Int16,
        2 => Int32,
        3 => Int64,
        4 => UInt8,
        5 => UInt16,
        6 => UInt32,
        7 => UInt64,
        8 => Float32,
        9 => Float64,
        10 => Complex64,
        11 => Complex128,
        12 => Bool,
        13 => Timestamp {
            unit: one(
                rng,
                &[
                    TimeUnit::Seconds,
                    TimeUnit::Milliseconds,
                    TimeUnit::Microseconds,
                    TimeUnit::Nanoseconds,
                ],
            ),
            timezone: Some("UTC".to_owned()).filter(|_| rng.below(2) == 0),
        },
        14 => String { max_length: 1 + rng.below(12) },
        15 => Bytes { max_length: 1 + rng.below(12) },
        16 => Utf8,
        17 => VlString,
        18 => VlBytes,
        19 => Dictionary { ordered: rng.below(2) == 0 },
        20 => {
            let inner = ItemKind::List(ItemKind::Float64.into());
            let fields = vec![
                ("x".to_owned(), ItemKind::Int32.into()),
                ("name".to_owned(), ItemKind::VlString.into()),
            ];
            let structure = ItemKind::Struct(fields);
            let items = [ItemKind::Int64, ItemKind::VlString, ItemKind::Bool, inner, structure];
            List(items[rng.below(5) as usize].clone().into())
        }
        21 => match rng.below(2) {
            0 => Object,
            _ => Struct(vec![
                ("x".to_owned(), ItemKind::Int32.into()),
                ("tags".to_owned(), ItemKind::List(ItemKind::VlString.into()).into()),
            ]),
        },
        _ => {
            let dtype = one(rng, &["<f4", "<i2", "|b1", "<f8", "|u1"]);
            let shape = [vec![2], vec![3, 2], vec![1]][rng.below(3) as usize].clone();
            NDArray { shape, dtype: Dtype::parse(dtype).unwrap() }
        }
    }
}

/// The value that represents null in columns of this kind; `None` if they have no such value.
fn sentinel(kind: &ItemKind) -> Option<Value> {
    use ItemKind::*;
    Some(match kind {
        Int8 => i64::from(i8::MIN).into(),
        Int16 => i64::from(i16::MIN).into(),
        Int32 => i32::MIN.into(),
        Int64 | Timestamp { .. } => i64::MIN.into(),
        UInt8 => u64::from(u8::MAX).into(),
        UInt16 => u64::from(u16::MAX).into(),
        UInt32 => u32::MAX.into(),
        UInt64 => u64::MAX.into(),
        Float32 | Float64 => f64::NAN.into(),
        Bool => 255.into(),
        String { .. } => "N".into(),
        Bytes { .. } => Value::Bytes(vec![255]),
        Utf8 => "NULL".into(),
        NDArray { dtype, .. } => match dtype.to_string().as_str() {
            "<i2" => (-1).into(),
            "<f4" | "<f8" => f64::NAN.into(),
            "|b1" | "|u1" => 255.into(),
            _ => return None,
        },
        _ => return None,
    })
}

pub(crate) fn column(rng: &mut Rng, name: String) -> Made {
    let kind = kind(rng);
    let mut spec = ItemType::from(kind.clone());
    match (rng.below(4), sentinel(&kind)) {
        (0, Some(value)) => spec = spec.with("null_value", value),
        (0 | 1, _) => spec = spec.nullable(),
        _ => {}
    }
    if matches!(kind, ItemKind::List(_)) && rng.below(3) == 0 {
        spec = spec.with("storage", "vl");
    }
    if matches!(kind, ItemKind::VlString | ItemKind::List(_)) && rng.below(2) == 0 {
        spec = spec.with("batch_rows", 1 + rng.below(50));
    }
    if matches!(kind, ItemKind::Int16 | ItemKind::Float64) && spec.get("null_value").is_none() {
        spec = spec.with("ge", -100).with("lt", 1000);
    }
    let mut made = Made { name, spec };
    let has_default = !matches!(
        kind,
        ItemKind::NDArray { .. } | ItemKind::Object | ItemKind::Struct(_) | ItemKind::List(_)
    );
    if has_default && rng.below(3) == 0 {
        let value = made.cell(rng);
        made.spec = made.spec.with("default", value);
    }
    made
}

impl Made {
    pub(crate) fn is_nullable(&self) -> bool {
        self.spec.get("nullable") == Some(&true.into())
    }

    /// The value of rows without data; `None` if there is none.
    fn default(&self) -> Option<Value> {
        match self.spec.get("default") {
            Some(value) if *value != Value::None || self.is_nullable() => Some(value.clone()),
            _ => self.is_nullable().then_some(Value::None),
        }
    }

    pub(crate) fn cell(&self, rng: &mut Rng) -> Value {
        use ItemKind::*;
        if self.is_nullable() && rng.below(4) == 0 {
            return Value::None;
        }
        let text = |rng: &mut Rng, len: u64| -> std::string::String {
            let len = rng.below(len + 1);
            (0..len).map(|_| one(rng, &['a', 'é', '𝄞', 'z', ' '])).collect()
        };
        let limited = self.spec.get("ge").is_some();
        // The bounds of tables that Python made.
        if self.spec.get("le").is_some() {
            return rng.below(101).into();
        }
        match self.spec.kind() {
            Int8 => (rng.below(255) as i64 - 127).into(),
            Int16 if limited => (rng.below(1100) as i64 - 100).into(),
            Int16 => (rng.below(65535) as i64 - 32767).into(),
            Int32 => (rng.below(1 << 32) as i64 - (1 << 31) + 1).min(i32::MAX.into()).into(),
            Int64 | Timestamp { .. } => one(rng, &[0i64, -1, 1_700_000_000, i64::MAX / 3]).into(),
            UInt8 => rng.below(255).into(),
            UInt16 => rng.below(65535).into(),
            UInt32 => rng.below(u32::MAX.into()).into(),
            UInt64 => one(rng, &[0u64, 7, u64::MAX - 1]).into(),
            Float32 => Value::Float((rng.below(1000) as f32 / 7.0).into()),
            Float64 if limited => Value::Float(rng.below(1000) as f64 / 3.0),
            Float64 => Value::Float(one(rng, &[0.0, -0.0, 1.5, f64::INFINITY, 1e300, -1.0 / 3.0])),
            Complex64 => Value::Complex { re: rng.below(9) as f64, im: 0.5 },
            Complex128 => Value::Complex { re: rng.below(9) as f64 / 3.0, im: f64::INFINITY },
            Bool => (rng.below(2) == 0).into(),
            String { max_length } => text(rng, *max_length).into(),
            Bytes { max_length } => {
                let len = rng.below(*max_length + 1);
                Value::Bytes((0..len).map(|_| 1 + rng.below(250) as u8).collect())
            }
            Utf8 | VlString => text(rng, 20).into(),
            VlBytes => Value::Bytes((0..rng.below(30)).map(|n| n as u8).collect()),
            Dictionary { .. } => format!("wörd {}", rng.below(6)).into(),
            List(item) => {
                let len = rng.below(4);
                Value::List((0..len).map(|_| self::item(rng, item.kind())).collect())
            }
            Struct(fields) => structure(rng, fields),
            Object => match rng.below(5) {
                0 => 7.into(),
                1 => "text".into(),
                2 => Value::List(vec![1.into(), Value::None]),
                3 => Value::from([("é", 2.5.into())]),
                _ => Value::Bytes(vec![0, 1]),
            },
            NDArray { shape, dtype } => {
                let count = shape.iter().product::<u64>();
                let is_widened =
                    dtype.to_string() == "|b1" && self.spec.get("null_value").is_some();
                let mut data = Vec::new();
                for _ in 0..count {
                    match dtype.to_string().as_str() {
                        "<f4" => data.extend((rng.below(100) as f32).to_le_bytes()),
                        "<f8" => data.extend((rng.below(100) as f64).to_le_bytes()),
                        "<i2" => data.extend((rng.below(100) as i16).to_le_bytes()),
                        "|b1" => data.push(rng.below(2) as u8),
                        _ => data.push(rng.below(200) as u8),
                    }
                }
                let stored = if is_widened { Dtype::parse("|u1").unwrap() } else { dtype.clone() };
                Value::Array(ArrayValue::new(stored, shape.clone(), data).unwrap())
            }
            other => panic!("{other}"),
        }
    }
}

fn item(rng: &mut Rng, kind: &ItemKind) -> Value {
    match kind {
        ItemKind::Int64 => (rng.below(1000) as i64 - 500).into(),
        ItemKind::Int32 => (rng.below(1000) as i64 - 500).into(),
        ItemKind::Float64 => (rng.below(1000) as f64 / 8.0).into(),
        ItemKind::VlString => one(rng, &["", "a", "ñ", "longer text"]).into(),
        ItemKind::Bool => (rng.below(2) == 0).into(),
        ItemKind::List(item) => {
            let len = rng.below(3);
            Value::List((0..len).map(|_| self::item(rng, item.kind())).collect())
        }
        ItemKind::Struct(fields) => structure(rng, fields),
        other => panic!("{other:?}"),
    }
}

fn structure(rng: &mut Rng, fields: &[(String, blosc2_store::ItemType)]) -> Value {
    let pairs = fields.iter().map(|(name, field)| (name.as_str().into(), item(rng, field.kind())));
    Value::Map(pairs.collect())
}

impl Model {
    /// A random schema.
    pub(crate) fn new(rng: &mut Rng) -> (Self, Schema) {
        let count = 1 + rng.below(6);
        let columns: Vec<Made> = (0..count)
            .map(|number| {
                let name = match rng.below(6) {
                    0 => format!("group.c{number}"),
                    1 => format!(r"é\.{number}"),
                    _ => format!("c{number}"),
                };
                column(rng, name)
            })
            .collect();
        let schema = columns
            .iter()
            .fold(Schema::new(), |schema, made| schema.column(&made.name, made.spec.clone()));
        let schema =
            schema.expected_rows(one(rng, &[1, 20, 100, 1000, 1000, 5000, 1 << 14, 1 << 20]));
        (Self { columns, rows: Vec::new(), next: 100 }, schema)
    }

    /// The model of a table that another program has written, from its rows.
    pub(crate) fn of(table: &CTable) -> Self {
        let columns = table.columns().iter().map(|column| {
            let mut spec = column.spec().clone();
            if !column.is_nullable() {
                spec = spec.with("nullable", false);
            }
            Made { name: column.name().to_owned(), spec }
        });
        let columns: Vec<Made> = columns.collect();
        let mut rows = vec![Vec::new(); table.nrows() as usize];
        for made in &columns {
            for (row, value) in rows.iter_mut().zip(table.values(&made.name, ..).unwrap()) {
                row.push(value);
            }
        }
        Self { columns, rows, next: 200 }
    }

    fn cells(&self, rng: &mut Rng, column: usize, count: usize) -> Vec<Value> {
        (0..count).map(|_| self.columns[column].cell(rng)).collect()
    }

    /// Makes a random change.
    pub(crate) fn change(&mut self, table: &mut CTable, rng: &mut Rng) {
        let rows = self.rows.len() as u64;
        match rng.below(14) {
            0..=4 => self.append(table, rng),
            5 | 6 if rows > 0 => {
                let column = rng.below(self.columns.len() as u64) as usize;
                let name = self.columns[column].name.clone();
                match rng.below(3) {
                    0 => {
                        let at: Vec<u64> = (0..1 + rng.below(5)).map(|_| rng.below(rows)).collect();
                        let cells = self.cells(rng, column, at.len());
                        table.update(&name, &at[..], Data::values(&cells)).unwrap();
                        for (row, cell) in at.iter().zip(cells) {
                            self.rows[*row as usize][column] = cell;
                        }
                    }
                    1 => {
                        let mask: Vec<bool> = (0..rows).map(|_| rng.below(3) == 0).collect();
                        let count = mask.iter().filter(|is| **is).count();
                        let cells = self.cells(rng, column, count);
                        table.update(&name, &mask[..], Data::values(&cells)).unwrap();
                        let places = (0..mask.len()).filter(|row| mask[*row]);
                        for (row, cell) in places.zip(cells) {
                            self.rows[row][column] = cell;
                        }
                    }
                    _ => {
                        let (one, other) = (rng.below(rows + 1), rng.below(rows + 1));
                        let range = one.min(other)..one.max(other);
                        let cells = self.cells(rng, column, (range.end - range.start) as usize);
                        table.update(&name, range.clone(), Data::values(&cells)).unwrap();
                        for (row, cell) in range.zip(cells) {
                            self.rows[row as usize][column] = cell;
                        }
                    }
                }
            }
            7 | 8 if rows > 0 => {
                let last = rng.below(3) == 0;
                let dead: Vec<bool> = (0..rows)
                    .map(|row| if last { row + 3 > rows } else { rng.below(4) == 0 })
                    .collect();
                let count = dead.iter().filter(|is| **is).count() as u64;
                assert_eq!(table.delete_rows(&dead[..]).unwrap(), count);
                let mut dead = dead.into_iter();
                self.rows.retain(|_| !dead.next().unwrap());
            }
            9 => table.compact().unwrap(),
            10 if self.columns.len() < 10 => {
                self.next += 1;
                let made = column(rng, format!("new{}", self.next));
                let cells: Vec<Value> = (0..rows).map(|_| made.cell(rng)).collect();
                let (data, cells) = match made.default() {
                    Some(default) if rng.below(2) == 0 => (None, vec![default; cells.len()]),
                    _ => (Some(Data::values(&cells)), cells.clone()),
                };
                table.add_column(&made.name, made.spec.clone(), data).unwrap();
                self.columns.push(made);
                for (row, cell) in self.rows.iter_mut().zip(cells) {
                    row.push(cell);
                }
            }
            11 => {
                self.next += 1;
                let new_name = format!("named{}", self.next);
                let column = rng.below(self.columns.len() as u64) as usize;
                table.rename_column(&self.columns[column].name, &new_name).unwrap();
                self.columns[column].name = new_name;
            }
            12 if self.columns.len() > 1 && rng.below(2) == 0 => {
                let column = rng.below(self.columns.len() as u64) as usize;
                table.drop_column(&self.columns.remove(column).name).unwrap();
                for row in &mut self.rows {
                    row.remove(column);
                }
            }
            _ => table.finish().unwrap(),
        }
    }

    pub(crate) fn append(&mut self, table: &mut CTable, rng: &mut Rng) {
        let data = self.new_rows(rng);
        table.append(data.iter().map(|(name, cells)| (name, Data::values(cells)))).unwrap();
    }

    pub(crate) fn append_to(&mut self, rows: &mut TableAppender, rng: &mut Rng) {
        let data = self.new_rows(rng);
        rows.append(data.iter().map(|(name, cells)| (name, Data::values(cells)))).unwrap();
    }

    /// Adds random rows. Returns their cells, without those of some columns with a default.
    fn new_rows(&mut self, rng: &mut Rng) -> Vec<(String, Vec<Value>)> {
        let count = one(rng, &[1, 2, 7, 30, 100]);
        let mut data = Vec::new();
        let mut rows = vec![Vec::new(); count];
        for column in 0..self.columns.len() {
            let is_left_out = data.len() + 1 < self.columns.len() && rng.below(4) == 0;
            let cells =
                match self.columns[column].default().filter(|_| is_left_out && !data.is_empty()) {
                    Some(default) => vec![default; count],
                    None => {
                        let cells = self.cells(rng, column, count);
                        data.push((self.columns[column].name.clone(), cells.clone()));
                        cells
                    }
                };
            for (row, cell) in rows.iter_mut().zip(cells) {
                row.push(cell);
            }
        }
        self.rows.extend(rows);
        data
    }

    /// Checks all rows of a table.
    pub(crate) fn check(&self, table: &CTable, what: &str) {
        assert_eq!(table.nrows(), self.rows.len() as u64, "{what}");
        let names: Vec<&str> = table.columns().iter().map(Column::name).collect();
        let expected: Vec<&str> = self.columns.iter().map(|made| made.name.as_str()).collect();
        assert_eq!(names, expected, "{what}");
        for (column, made) in self.columns.iter().enumerate() {
            let found = table.values(&made.name, ..).unwrap();
            for (row, (found, expected)) in found.iter().zip(&self.rows).enumerate() {
                let expected = &expected[column];
                let same = format!("{found:?}") == format!("{expected:?}");
                assert!(same, "{what}, {made:?}, row {row}: {found:?}, expected {expected:?}");
            }
        }
    }
}

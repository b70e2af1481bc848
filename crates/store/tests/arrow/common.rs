//! Helpers: Python, and types without the details in which libraries differ.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, make_array};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};

/// Runs a Python script in a folder.
pub(crate) fn run_python(script: &str, folder: &Path) {
    let python = std::env::var_os("BLOSC2_TEST_PYTHON").expect(
        "BLOSC2_TEST_PYTHON is the path of a Python with blosc2 and pyarrow; \
         `cargo xtask integrations arrow` sets it",
    );
    let file = folder.join("script_of_this_test.py");
    std::fs::write(&file, script).unwrap();
    let output = Command::new(python).arg("-I").arg(&file).current_dir(folder).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(
        output.status.success(),
        "Python failed ({}):\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The type without metadata, with nullable items of lists and fields of structures.
pub(crate) fn normal_type(data_type: &DataType) -> DataType {
    let item = |field: &Field| Field::new(field.name(), normal_type(field.data_type()), true);
    match data_type {
        DataType::List(field) => DataType::List(Arc::new(item(field))),
        DataType::FixedSizeList(field, size) => {
            DataType::FixedSizeList(Arc::new(item(field)), *size)
        }
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| item(field)).collect())
        }
        other => other.clone(),
    }
}

/// The same items, with the type of [`normal_type`].
pub(crate) fn normal(array: &ArrayRef) -> ArrayRef {
    fn of(data: ArrayData) -> ArrayData {
        let data_type = normal_type(data.data_type());
        let children = data.child_data().iter().cloned().map(of).collect();
        data.into_builder().data_type(data_type).child_data(children).build().unwrap()
    }
    make_array(of(array.to_data()))
}

/// Asserts that batches have the same columns.
#[track_caller]
pub(crate) fn assert_same(found: &RecordBatch, expected: &RecordBatch, what: &str) {
    assert_eq!(found.num_rows(), expected.num_rows(), "{what}");
    assert_eq!(found.num_columns(), expected.num_columns(), "{what}");
    for (field, expected_field) in found.schema().fields().iter().zip(expected.schema().fields()) {
        let name = field.name();
        assert_eq!(name, expected_field.name(), "{what}");
        let types = [field, expected_field].map(|field| normal_type(field.data_type()));
        assert_eq!(types[0], types[1], "{what}: the type of {name}");
        let [found, expected] = [found, expected].map(|batch| normal(&batch[name.as_str()]));
        assert_eq!(&found, &expected, "{what}: {name}");
    }
}

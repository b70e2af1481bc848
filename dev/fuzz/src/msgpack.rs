//! Values in msgpack.

use blosc2::Value;

/// Parses a value, and writes it again.
pub fn msgpack(input: &[u8]) {
    let Ok(value) = Value::from_msgpack(input) else { return };
    drop((format!("{value:?}"), value.to_dtype(), value.as_list().map(<[_]>::len)));
    // Some values can only be read.
    if let Ok(bytes) = value.to_msgpack() {
        let again = Value::from_msgpack(&bytes).expect("it was written here");
        assert_eq!(again.to_msgpack().expect("it was written before"), bytes);
    }
    drop(value.into_type::<Vec<(String, f64)>>());
}

//! Metalayers: named metadata in the same file as the data.

use std::collections::BTreeMap;

use blosc2::{CParams, OpenOptions, SChunk};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("temperatures.b2frame");

    // The length of a fixed-length metalayer cannot change. A file accepts new ones only before the first chunk.
    let options = OpenOptions::new().create_new(true).cparams(CParams::default()).typesize(4);
    let mut file = options.meta("version", &[1, 0]).open(&path)?;
    file.append(&[20.5f32, 21.0, 19.75])?;
    file.meta_mut().set("version", &[1, 1])?;

    // Variable-length metalayers can be added and removed at any time. The value can be bytes:
    file.vlmeta_mut().set("checksum", b"\x3e\x01\xf0\x9c")?;
    // The value can also be any value that Python reads: schunk.vlmeta["station"]["lat"].
    let station = BTreeMap::from([("lat", 46.55), ("lon", 7.98)]);
    file.vlmeta_mut().set_value("station", &station)?;
    file.vlmeta_mut().set_value("units", "°C")?;
    file.vlmeta_mut().remove("checksum")?;
    drop(file);

    let file = SChunk::open(&path)?;
    assert_eq!(file.meta().get("version")?.as_deref(), Some(&[1, 1][..]));
    assert_eq!(file.vlmeta().names(), ["station", "units"]);
    assert_eq!(file.vlmeta().get_value::<String>("units")?.as_deref(), Some("°C"));
    let station: Option<BTreeMap<String, f64>> = file.vlmeta().get_value("station")?;
    assert_eq!(station.and_then(|station| station.get("lat").copied()), Some(46.55));

    // Names that identify the kind of a file are reserved, so this call fails.
    let mut file = SChunk::open_rw(&path)?;
    let error = file.meta_mut().set("b2nd", b"").unwrap_err();
    println!("{error}");
    Ok(())
}

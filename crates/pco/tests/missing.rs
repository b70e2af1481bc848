//! What readers without the codec report. This program never registers it.
#![allow(missing_docs)]

use std::process::Command;

use blosc2::{ErrorKind, NDArray, RawItems};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ramps.b2nd");

#[test]
fn the_error_names_the_code() {
    let array = NDArray::open(PATH).unwrap();
    let error = array.read::<RawItems>(..).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(text.contains("212") && text.contains("not registered in this program"), "{text}");
    assert_eq!(array.info().chunk_shape, [20_000]);
}

#[test]
fn python_opens_the_file_and_cannot_read_it() {
    let python = std::env::var_os("BLOSC2_TEST_PYTHON")
        .expect("BLOSC2_TEST_PYTHON has to be the path of a Python with the package blosc2");
    let script = "import blosc2, sys\n\
        array = blosc2.open(sys.argv[1], mode='r')\n\
        print(array.shape, array.dtype, array.cparams.codec)\n\
        print(array[:])\n";
    let output = Command::new(python).args(["-c", script, PATH]).output().unwrap();
    let (printed, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(printed.trim(), "(20000,) int16 212", "{errors}");
    assert!(!output.status.success());
    assert!(errors.contains("RuntimeError"), "{errors}");
}

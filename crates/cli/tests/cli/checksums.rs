//! `blosc2 checksums`.

use blosc2::{CParams, NDArray};

use crate::common::Folder;

#[test]
fn checksums_are_added_checked_accepted_and_removed() {
    let folder = Folder::new();
    let items: Vec<u16> = (0..1000).collect();
    let array = NDArray::builder().cparams(CParams::new().level(0));
    array.target(folder.path("a.b2nd")).from_slice(&items, [1000]).unwrap();
    let before = folder.read("a.b2nd");
    assert_eq!(folder.info("a.b2nd")["checksums"], false);
    assert_eq!(
        folder.good(&["checksums", "a.b2nd"]),
        b"a.b2nd: the checksums are set; number of chunks: 1\n"
    );
    assert_eq!(folder.info("a.b2nd")["checksums"], true);
    folder.good(&["check", "a.b2nd"]);
    let content = folder.read("a.b2nd");
    let correct = b"a.b2nd: the checksums are correct; number of chunks: 1\n";
    assert_eq!(folder.good(&["checksums", "a.b2nd", "--verify"]), correct);
    assert!(folder.read("a.b2nd") == content);
    let piped = folder.piped(&["checksums", "-", "--verify"], &content);
    assert!(piped.status.success(), "{piped:?}");

    let mut bytes = folder.read("a.b2nd");
    bytes[1000] ^= 1;
    folder.write("a.b2nd", &bytes);
    let line = folder.bad(1, &["cat", "a.b2nd"]);
    assert!(line.contains("checksum of a chunk"), "{line}");
    folder.bad(1, &["check", "a.b2nd"]);
    let line = folder.bad(1, &["checksums", "--verify", "a.b2nd"]);
    assert!(line.contains("checksum of a chunk (a.b2nd)"), "{line}");

    folder.good(&["checksums", "a.b2nd"]);
    folder.good(&["check", "a.b2nd"]);
    folder.good(&["checksums", "--remove", "a.b2nd"]);
    bytes = folder.read("a.b2nd");
    bytes[1000] ^= 1;
    assert!(bytes == before);
    let line = folder.bad(1, &["checksums", "--verify", "a.b2nd"]);
    assert!(line.contains("found no checksums"), "{line}");
    folder.bad(2, &["checksums", "--verify", "--remove", "a.b2nd"]);
    let line = folder.bad(2, &["checksums", "-"]);
    assert!(line.contains("stdin cannot be changed"), "{line}");
}

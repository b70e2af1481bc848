//! A tree of arrays and objects in one zip file, as Python's `TreeStore` writes it.

use blosc2::{NDArray, Value};
use blosc2_store::{Object, ObjectArray, TreeStore};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("runs.b2z");

    let mut tree = TreeStore::create(&path)?;
    tree.insert("/first/speed", NDArray::from_slice(&[1.5f32, 2.5], [2])?.schunk())?;
    let mut image = tree.create_array("/first/image", |make| make.zeros::<u8>(&[480, 640]))?;
    image.write([0..10, 0..640], 255u8)?;
    drop(image);
    let mut notes = ObjectArray::in_memory()?;
    notes.append("a text")?;
    notes.append(&Value::Tuple(vec![1.into(), Value::Complex { re: 0.0, im: 1.0 }]))?;
    tree.insert("/notes", notes.schunk())?;
    tree.set_attribute("/first", "author", "me")?;
    tree.finish()?; // Without it, there is no file.

    // Opening reads the list of keys; `get` opens one entry.
    let tree = TreeStore::open(&path)?;
    for key in tree.keys() {
        match tree.get(key)? {
            Object::NDArray(array) => {
                println!("{key}: {:?}, {:?}", array.shape(), array.dtype_str())
            }
            Object::ObjectArray(array) => println!("{key}: {} values", array.len()),
            other => println!("{key}: a {}", other.kind()),
        }
    }
    assert_eq!(tree.array("/first/image")?.read::<Vec<u8>>([9..11, 5..6])?, [255, 0]);
    assert_eq!(tree.attributes("/first")?, [("author".to_owned(), "me".into())]);
    Ok(())
}

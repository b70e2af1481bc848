//! What the programs share.

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::data::{Plan, hash};
use crate::protocol::{Peer, Task};

/// What a library gets: the plan, the items, and the folder for files.
pub(crate) struct Input {
    pub(crate) plan: Plan,
    pub(crate) items: Vec<f32>,
    pub(crate) folder: PathBuf,
}

/// Runs the tasks of stdin with a library.
pub(crate) fn serve<P: Peer>(library: impl FnOnce(Input) -> P) {
    let mut args = env::args().skip(1);
    let folder = args.next().expect("the first argument is a folder").into();
    let plan = Plan::from_args(args);
    let items = plan.items();
    println!("{}", hash(&items));
    let mut library = library(Input { plan, items, folder });
    for line in io::stdin().lines() {
        let line = line.expect("stdin is readable");
        let task = Task::parse(&line).unwrap_or_else(|| panic!("`{line}` is not a task"));
        match library.run(&task) {
            Some(outcome) => println!("{outcome}"),
            None => println!(),
        }
        io::stdout().flush().expect("stdout is writable");
    }
}

/// The items that these bytes are.
pub(crate) fn items(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks_exact(4)
        .map(|item| f32::from_le_bytes(item.try_into().expect("4 bytes")))
        .collect()
}

/// The hash of items from their bytes.
pub(crate) fn hash_bytes(bytes: &[u8]) -> String {
    let mut hash = crate::data::Hash::default();
    hash.add_bytes(bytes);
    hash.finish()
}

//! Writes the seeds of a target: `seeds TARGET ROOT C_SOURCES FOLDER [ORIGIN]`.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [target, root, c_sources, folder, origin @ ..] = &args[..] else {
        return Err(io::Error::other("expected TARGET ROOT C_SOURCES FOLDER [ORIGIN]"));
    };
    let (root, c_sources, folder) = (Path::new(root), Path::new(c_sources), Path::new(folder));
    fs::create_dir_all(folder)?;
    let mut seeds = blosc2_fuzzing::seeds::seeds(target, root, c_sources)?;
    seeds.retain(|(name, _)| origin.iter().all(|origin| name.starts_with(origin)));
    for (name, bytes) in &seeds {
        fs::write(folder.join(name.replace('/', "_")), bytes)?;
    }
    println!("{target}: {} seeds in {}", seeds.len(), folder.display());
    Ok(())
}

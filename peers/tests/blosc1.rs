//! The C library of Blosc 1, called through the program `blosc1`. HDF5 and Zarr use its chunks.

mod cases;

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use cases::{Case, blosc1_cases, it_reads_ours, its_chunks_are_read};

/// The program, which answers requests.
struct Blosc1(Child);

impl Blosc1 {
    fn start() -> Self {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["run", "--quiet", "--features", "blosc1", "--bin", "blosc1"]);
        // Its codecs are built for it alone, and no test takes long.
        for codec in ["lz4-sys", "zstd-sys"] {
            cargo.args(["--config", &format!("profile.dev.package.{codec}.opt-level=0")]);
        }
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        Self(cargo.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    fn ask(&mut self, numbers: [u64; 5], bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut input = self.0.stdin.as_ref().unwrap();
        for number in numbers.into_iter().chain([bytes.len() as u64]) {
            input.write_all(&number.to_le_bytes()).unwrap();
        }
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
        let (output, mut number) = (self.0.stdout.as_mut().unwrap(), [0; 8]);
        output.read_exact(&mut number).unwrap();
        let number = i64::from_le_bytes(number);
        let mut answer = vec![0; usize::try_from(number).map_err(|_| format!("code {number}"))?];
        output.read_exact(&mut answer).unwrap();
        Ok(answer)
    }

    fn compress(&mut self, case: &Case, data: &[u8]) -> Result<Vec<u8>, String> {
        let shuffle = case.filters.first().map_or(0, |filter| u64::from(filter.code()));
        let (typesize, codec) = (case.typesize as u64, u64::from(case.codec.code()));
        self.ask([0, case.level.into(), shuffle, typesize, codec], data)
    }

    fn decompress(&mut self, chunk: &[u8]) -> Result<Vec<u8>, String> {
        self.ask([1, 0, 0, 0, 0], chunk)
    }
}

impl Drop for Blosc1 {
    fn drop(&mut self) {
        drop(self.0.stdin.take()); // The program exits when its standard input ends.
        self.0.wait().unwrap();
    }
}

#[test]
fn its_chunks_are_read_here() {
    let mut blosc1 = Blosc1::start();
    its_chunks_are_read(&blosc1_cases(), |case, data| {
        let chunk = blosc1.compress(case, data)?;
        match blosc1.decompress(&chunk)? == data {
            true => Ok(chunk),
            false => Err("it does not read its own".to_owned()),
        }
    });
}

#[test]
fn it_reads_our_chunks() {
    let mut blosc1 = Blosc1::start();
    it_reads_ours(&blosc1_cases(), |_| false, |chunk| blosc1.decompress(chunk));
}

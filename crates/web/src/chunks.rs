//! The map of the chunks: how many bytes each one takes.

use blosc2_format::Error;
use blosc2_format::chunk::Special;
use blosc2_format::file::Place;
use serde_json::{Value, json};

use crate::data::Data;
use crate::facts;

/// The number of chunks whose index entries are read in one step.
const STEP: u64 = 4096;

/// The stored sizes of the chunks, which are computed from the index alone: a chunk ends where the next one in the file
/// starts.
#[derive(Debug)]
pub struct ChunkMap {
    nchunks: u64,
    /// The position of each chunk; `None` for special values that only the index states.
    places: Vec<Option<u64>>,
}

impl ChunkMap {
    /// Starts the map of the chunks of `data`.
    pub fn new(data: &Data) -> Self {
        Self { nchunks: data.geometry().nchunks(), places: Vec::new() }
    }

    /// Reads more of the index. Returns whether there is more.
    ///
    /// # Errors
    /// Fails with the errors of [`File::chunk_place`](blosc2_format::file::File::chunk_place).
    pub fn step(&mut self, data: &mut Data) -> Result<bool, Error> {
        let start = self.places.len() as u64;
        let end = self.nchunks.min(start + STEP);
        for chunk in start..end {
            self.places.push(match data.file().chunk_place(chunk)? {
                Some(Place::At(place)) => Some(place),
                _ => None,
            });
        }
        Ok(end < self.nchunks)
    }

    /// Returns the part of the index that was read, from 0 to 1.
    pub fn progress(&self) -> f64 {
        if self.nchunks == 0 { 1.0 } else { self.places.len() as f64 / self.nchunks as f64 }
    }

    /// Returns the stored size of each chunk, in bytes; 0 for special values that only the index states.
    pub fn sizes(&self, data: &mut Data) -> Vec<f64> {
        let mut sorted: Vec<u64> = self.places.iter().copied().flatten().collect();
        sorted.extend(data.file().chunks_end());
        sorted.sort_unstable();
        let size = |place: Option<u64>| {
            let place = place?;
            let next = sorted.partition_point(|&other| other <= place);
            Some(sorted.get(next)?.saturating_sub(place) as f64)
        };
        self.places.iter().map(|&place| size(place).unwrap_or(0.0)).collect()
    }
}

/// Returns the facts about the chunk at index `chunk`.
///
/// # Errors
/// Fails with the errors of [`File::chunk_header`](blosc2_format::file::File::chunk_header).
pub fn facts(data: &mut Data, chunk: u64) -> Result<Value, Error> {
    let geometry = data.geometry();
    let items: Vec<[u64; 2]> =
        geometry.chunk_items(chunk)?.into_iter().map(|range| [range.start, range.end]).collect();
    let nbytes = geometry.chunk_len();
    let place = data.file().chunk_place(chunk)?;
    let header = match place {
        Some(Place::Index(_)) => None,
        _ => data.file().chunk_header(chunk)?,
    };
    let more = match (place, header) {
        (Some(Place::Index(special)), _) => json!({ "cbytes": 0, "data": name(special) }),
        (_, Some(header)) => json!({
            "place": match place {
                Some(Place::At(at)) => Some(at),
                _ => None,
            },
            "nbytes": header.nbytes,
            "cbytes": header.cbytes,
            "ratio": f64::from(header.nbytes) / f64::from(header.cbytes.max(1)),
            "blocksize": header.block_len(),
            "data": match header.special {
                Some(special) => name(special),
                None if header.is_stored() => "stored",
                None => "compressed",
            },
            "codec": facts::codec(header.codec()),
            "filters": facts::filters(&header.filters, &header.filters_meta),
        }),
        (_, None) => json!({}),
    };
    let mut facts = json!({ "chunk": chunk, "items": items, "nbytes": nbytes });
    if let (Value::Object(facts), Value::Object(more)) = (&mut facts, more) {
        facts.extend(more);
    }
    Ok(facts)
}

fn name(special: Special) -> &'static str {
    match special {
        Special::Zeros => "zeros",
        Special::Nan => "nan",
        Special::Value => "repeated",
        Special::Uninit => "uninit",
    }
}

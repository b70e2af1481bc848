//! A sample of the data of a file, in chunks as the file has them.

use anyhow::{Result, bail};
use blosc2::CParams;
use indicatif::ProgressBar;

use crate::data;
use crate::file::{Content, Source};
use crate::rust;
use crate::slice::{Pick, Slices};
use crate::stream;

/// A part of the data of a file.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Decompressed chunks, or their beginnings: whole items, and whole blocks if there is at least one.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// The compression parameters of the file, with its typesize and block size.
    pub(crate) params: CParams,
    /// Bytes of all chunks of the file, or of the slice.
    pub(crate) nbytes: u64,
}

impl Sample {
    /// Reads chunks of at most `size` bytes in total that are spread evenly over the file; with `slices`, the first
    /// `size` bytes of the slice.
    pub(crate) fn read(source: Source<'_>, slices: Option<&Slices>, size: u64) -> Result<Self> {
        let mut sample = match rust::needed(source) {
            None => {
                let content = Content::open_data(source)?;
                let schunk = content.schunk();
                let mut params = schunk.info().cparams.typesize(schunk.typesize());
                if let Some(size) = schunk.info().blocksize {
                    params = params.blocksize(size);
                }
                let mut sample = Self { chunks: Vec::new(), params, nbytes: schunk.nbytes() };
                match slices {
                    Some(slices) => sample.read_slice(source, slices, schunk.chunksize(), size)?,
                    None => sample.read_chunks(schunk.nchunks() as u64, size, |index| {
                        Ok(schunk.decompress_chunk(index as usize)?)
                    })?,
                }
                sample
            }
            Some(_) => {
                let mut file = rust::open_data(source)?;
                let info = file.info().clone();
                let mut params = rust::params(&info);
                let block = file.geometry().map(|geometry| geometry.block_len());
                if let Some(size) = block.or(info.blocksize.map(|size| size as usize)) {
                    params = params.blocksize(size);
                }
                let mut sample = Self { chunks: Vec::new(), params, nbytes: info.nbytes };
                let chunksize = info.chunksize.unwrap_or(0) as usize;
                match slices {
                    Some(slices) => sample.read_slice(source, slices, chunksize, size)?,
                    None => sample.read_chunks(info.nchunks, size, |index| {
                        let mut data = Vec::new();
                        let decoded = file.decode_chunk(index, &mut data);
                        decoded.map_err(|error| source.unread(&error))?;
                        Ok(data)
                    })?,
                }
                sample
            }
        };
        sample.chunks.retain(|chunk| !chunk.is_empty());
        if sample.chunks.is_empty() {
            bail!("cannot compare parameters ({}): there are no items", source.path.display());
        }
        Ok(sample)
    }

    fn read_chunks(
        &mut self,
        count: u64,
        size: u64,
        mut chunk: impl FnMut(u64) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let wanted = match self.nbytes <= size {
            true => count,
            false => (size.saturating_mul(count) / self.nbytes).max(1).min(count),
        };
        let mut left = size.max(self.typesize() as u64);
        for index in spread(count, wanted) {
            let mut data = chunk(index)?;
            data.truncate(self.whole(data.len(), usize::try_from(left)?));
            left -= data.len() as u64;
            self.chunks.push(data);
        }
        Ok(())
    }

    fn read_slice(
        &mut self,
        source: Source<'_>,
        slices: &Slices,
        chunksize: usize,
        size: u64,
    ) -> Result<()> {
        let items = data::open(source)?;
        let typesize = items.typesize() as u64;
        let mut picks = slices.resolve_in(source.path, &items.shape())?;
        let len =
            |picks: &[Pick]| picks.iter().map(Pick::count).fold(typesize, u64::saturating_mul);
        self.nbytes = len(&picks);
        // The first items in C order, as whole parts of the first axes.
        for axis in 0..picks.len() {
            let row = len(&picks[axis + 1..]);
            picks[axis] = picks[axis].part(0, picks[axis].count().min((size / row.max(1)).max(1)));
        }
        let mut bytes = Vec::new();
        stream::write(&*items, &picks, &mut bytes, &ProgressBar::hidden())?;
        let chunksize = if chunksize == 0 { bytes.len() } else { chunksize };
        for chunk in bytes.chunks(chunksize.max(1)) {
            self.chunks.push(chunk[..self.whole(chunk.len(), chunk.len())].to_vec());
        }
        Ok(())
    }

    pub(crate) fn typesize(&self) -> usize {
        self.params.typesize.unwrap_or(1).max(1)
    }

    /// Bytes of the sample.
    pub(crate) fn len(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.len() as u64).sum()
    }

    /// The bytes to use of a chunk of `len` bytes, at most `most`: whole items, and whole blocks if it is cut off after
    /// at least one block.
    pub(crate) fn whole(&self, len: usize, most: usize) -> usize {
        let block = self.params.blocksize.unwrap_or(1).next_multiple_of(self.typesize());
        let unit = if len > most && most >= block { block } else { self.typesize() };
        let len = len.min(most);
        len - len % unit
    }

    /// Keeps at most `size` bytes, but at least one item, in chunks that are spread evenly.
    pub(crate) fn reduce(&mut self, size: u64) {
        let (count, len) = (self.chunks.len() as u64, self.len());
        if size >= len {
            return;
        }
        let wanted = (size.saturating_mul(count) / len.max(1)).max(1).min(count);
        let mut left = size.max(self.typesize() as u64) as usize;
        let mut kept = Vec::new();
        for index in spread(count, wanted) {
            let mut chunk = std::mem::take(&mut self.chunks[index as usize]);
            chunk.truncate(self.whole(chunk.len(), left));
            left -= chunk.len();
            kept.push(chunk);
        }
        kept.retain(|chunk| !chunk.is_empty());
        self.chunks = kept;
    }
}

/// `wanted` of `count` indices, spread evenly.
fn spread(count: u64, wanted: u64) -> impl Iterator<Item = u64> {
    let at = move |k: u64| (u128::from(k) * u128::from(count) / u128::from(wanted)) as u64;
    (0..wanted).map(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(lens: &[usize], typesize: usize, blocksize: usize) -> Sample {
        let chunks: Vec<Vec<u8>> = lens.iter().map(|&len| vec![len as u8; len]).collect();
        let nbytes = lens.iter().sum::<usize>() as u64;
        Sample { chunks, params: CParams::new().typesize(typesize).blocksize(blocksize), nbytes }
    }

    #[test]
    fn chunks_are_spread() {
        assert_eq!(spread(10, 3).collect::<Vec<_>>(), [0, 3, 6]);
        assert_eq!(spread(4, 4).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(spread(u64::MAX, 2).nth(1), Some(u64::MAX / 2));
        assert_eq!(spread(0, 0).count(), 0);
    }

    #[test]
    fn samples_are_reduced_to_whole_blocks_and_items() {
        for (size, expected) in [
            (1000, vec![100, 100, 100, 60]),
            (250, vec![100, 100]),
            (150, vec![100]),
            (90, vec![80]),
            (30, vec![28]),
            (1, vec![4]),
        ] {
            let mut sample = sample(&[100, 100, 100, 60], 4, 40);
            sample.reduce(size);
            let lens: Vec<usize> = sample.chunks.iter().map(Vec::len).collect();
            assert_eq!(lens, expected, "{size}");
        }
    }

    #[test]
    fn chunks_of_a_file_are_selected() {
        let mut all = sample(&[], 4, 40);
        all.nbytes = 1000;
        all.read_chunks(10, 350, |index| Ok(vec![index as u8; 100])).unwrap();
        let found: Vec<(u8, usize)> =
            all.chunks.iter().map(|chunk| (chunk[0], chunk.len())).collect();
        assert_eq!(found, [(0, 100), (3, 100), (6, 100)]);
    }
}

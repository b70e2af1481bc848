//! The shape of an array, in the form that C's codecs and filters for arrays read.

use std::ptr::{self, NonNull};
use std::sync::Arc;

use blosc2_format::Limits;
use blosc2_format::b2nd::{Geometry, Meta};
use blosc2_sys as sys;

use crate::chunk::init::init;
use crate::{Error, ErrorKind, Reason, Result};

const DOING: &str = "pass the shape of an array to C-Blosc2";

/// The C super-chunk that codecs and filters read through their context: the typesize, and the metalayer with the
/// shape of an array.
///
/// Several contexts share an `ArrayShape`. It never changes after `new`, so that no lock is needed.
#[derive(Debug)]
pub(crate) struct ArrayShape {
    /// A super-chunk in memory, without chunks. Only this structure and contexts have this pointer.
    schunk: NonNull<sys::blosc2_schunk>,
    typesize: usize,
    /// The content of the metalayer.
    meta: Option<Vec<u8>>,
    /// The parsed metalayer, for closures. `None` if there is no metalayer, or if it is damaged.
    geometry: Option<Geometry>,
}

// SAFETY: C stores nothing of a super-chunk in thread-local storage.
unsafe impl Send for ArrayShape {}

// SAFETY: this crate writes the super-chunk only in `new` and in `drop`, which have exclusive access. All other
// accesses are reads by C through a context:
// - blosc2.c: `current_nchunk` for prefilters and postfilters, and `frame`, which is null, for lazy chunks;
// - codecs and filters (plugins/): `typesize`, and `metalayers` through blosc2_meta_get (blosc2.h), which copies.
//
// Upstream has one exception: zfp_getcell (plugins/codecs/zfp/blosc2-zfp.c) stores the block shape in the super-chunk.
// A patch of blosc2-sys removes this write; without the patch, zfp is not used. The test `c_does_not_write_to_a_shape`
// compares the memory before and after.
unsafe impl Sync for ArrayShape {}

impl ArrayShape {
    /// Creates the shape for items of `typesize` bytes. `meta` is the content of the metalayer `b2nd`, or of the legacy
    /// metalayer `caterva`, which has the same first fields. `meta` is `None` for chunks that are not part of an array.
    ///
    /// C parses the content each time it needs the number of dimensions and the three shapes. It reads nothing else of
    /// the content.
    pub(crate) fn new(typesize: usize, meta: Option<&[u8]>) -> Result<Arc<Self>> {
        init()?;
        let invalid = |detail: String| Error::new(ErrorKind::InvalidArgument, DOING, detail);
        let size = i32::try_from(typesize).ok().filter(|&size| size > 0);
        let size =
            size.ok_or_else(|| invalid(format!("the typesize {typesize} is out of range")))?;
        // C compresses nothing with these.
        let mut cparams = sys::blosc2_cparams { typesize: size, ..sys::blosc2_cparams_defaults() };
        let mut dparams = sys::blosc2_dparams_defaults();
        let mut settings = sys::blosc2_storage {
            contiguous: false,
            urlpath: ptr::null_mut(),
            cparams: &mut cparams,
            dparams: &mut dparams,
            io: ptr::null_mut(),
        };
        // SAFETY: the settings and the structures to which they point live until the call returns, and C copies them
        // (schunk.c, get_new_storage).
        let schunk = NonNull::new(unsafe { sys::blosc2_schunk_new(&mut settings) });
        let failed = || Error::new(ErrorKind::Library, DOING, "C-Blosc2 returned no super-chunk");
        let geometry = meta.and_then(|meta| geometry(meta, size.unsigned_abs()));
        let schunk = schunk.ok_or_else(failed)?;
        let shape = Self { schunk, typesize, meta: meta.map(<[u8]>::to_vec), geometry };
        if let Some(meta) = meta {
            let len = i32::try_from(meta.len());
            let len = len.map_err(|_| {
                invalid(format!("the metalayer of {} bytes is too long", meta.len()))
            })?;
            // SAFETY: the super-chunk is alive and not shared yet, and the name ends in a NUL byte. C copies the `len`
            // bytes, and does not write to them (schunk.c, blosc2_meta_add).
            let code = unsafe {
                let content = meta.as_ptr().cast_mut();
                sys::blosc2_meta_add(shape.schunk.as_ptr(), c"b2nd".as_ptr(), content, len)
            };
            if code < 0 {
                return Err(Reason::from_code(code).doing(DOING));
            }
        }
        Ok(Arc::new(shape))
    }

    /// The typesize of the super-chunk.
    pub(crate) fn typesize(&self) -> usize {
        self.typesize
    }

    /// Whether there is a shape in addition to the typesize.
    pub(super) fn is_array(&self) -> bool {
        self.meta.is_some()
    }

    /// Whether the shape was created from this metalayer. Another handle may have changed the metalayer since then.
    pub(crate) fn is_of(&self, meta: Option<&[u8]>) -> bool {
        self.meta.as_deref() == meta
    }

    /// The shape, chunk shape and block shape of the array.
    pub(crate) fn geometry(&self) -> Option<&Geometry> {
        self.geometry.as_ref()
    }

    /// The super-chunk, for the parameters of a context that does not outlive `self`.
    pub(super) fn as_ptr(&self) -> *mut sys::blosc2_schunk {
        self.schunk.as_ptr()
    }
}

/// Parses a metalayer. No limit is needed, because the result does not need more memory than the metalayer.
fn geometry(meta: &[u8], typesize: u32) -> Option<Geometry> {
    let limits = Limits { chunks: u64::MAX, items: u64::MAX, ..Limits::default() };
    Geometry::new(&Meta::parse(meta).ok()?, typesize, &limits).ok()
}

impl Drop for ArrayShape {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from blosc2_schunk_new and is freed once. Each context that uses it owns a clone of
        // the `Arc`.
        unsafe { sys::blosc2_schunk_free(self.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use crate::chunk::decoder::Decoder;
    use crate::chunk::encoder::Encoder;
    use crate::closures::ChunkPlace;
    use crate::codec::installed;
    use crate::codec::params::Purpose;
    use crate::support::memory::Target;
    use crate::{CParams, ChunkRef, Codec, DParams, Filter};

    use super::*;

    const SIDE: usize = 32;
    const BLOCK: usize = 16;

    /// The number of bytes of the metalayer that codecs and filters do not read: the dtype.
    const REST: usize = 9;

    /// The metalayer of an array of one chunk.
    fn meta(block: usize) -> Vec<u8> {
        let square = |side: usize| vec![i32::try_from(side).unwrap(); 2];
        let (shape, chunks, blocks) = (vec![SIDE as i64; 2], square(SIDE), square(block));
        Meta { shape, chunks, blocks, dtype: None, dtype_format: 0 }.to_bytes().unwrap()
    }

    fn array() -> Arc<ArrayShape> {
        ArrayShape::new(1, Some(&meta(BLOCK))).unwrap()
    }

    fn data() -> Vec<u8> {
        (0..SIDE * SIDE).map(|k| (k / SIDE / 5 * 3 + k % SIDE / 9) as u8).collect()
    }

    /// Lossless parameters that need the shape of an array of bytes.
    fn needing_shape() -> Vec<CParams> {
        let lz4 = CParams::new().codec(Codec::Lz4);
        let ndlz = CParams::new().codec(Codec::Ndlz).codec_meta(4).filters(&[]);
        let ndcell = lz4.filters(&[Filter::Ndcell(4), Filter::Shuffle]);
        if installed::BREAKS_ARRAY_CODECS { vec![ndcell] } else { vec![ndcell, ndlz] }
    }

    fn encode(params: &CParams, shape: Option<Arc<ArrayShape>>) -> Result<Vec<u8>> {
        let params = params.clone().blocksize(BLOCK * BLOCK);
        let params = params.resolve(1, Purpose::Array).unwrap();
        let mut chunk = Vec::new();
        Encoder::with_shape(params, shape)?.compress_to(
            &data(),
            ChunkPlace::default(),
            &mut chunk,
        )?;
        Ok(chunk)
    }

    fn decode(chunk: &[u8], start: usize, len: usize, decoder: &mut Decoder) -> Result<Vec<u8>> {
        let mut found = vec![0; len];
        decoder.range(&ChunkRef::to_decompress(chunk)?, start, Target::of(&mut found))?;
        Ok(found)
    }

    #[test]
    fn contexts_on_all_threads_share_a_shape() {
        let shape = array();
        for params in needing_shape() {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let chunk = encode(&params, Some(shape.clone())).unwrap();
                        let dparams = DParams::new();
                        let mut decoder =
                            Decoder::with_shape(&dparams, Some(shape.clone())).unwrap();
                        for start in 0..SIDE {
                            let len = data().len() - 2 * start;
                            let found = decode(&chunk, start, len, &mut decoder).unwrap();
                            assert_eq!(found, data()[start..start + len]);
                        }
                    });
                }
            });
        }
        assert_eq!(Arc::strong_count(&shape), 1);
    }

    /// The bytes of the super-chunk and of its metalayer.
    fn memory(shape: &ArrayShape) -> Vec<u8> {
        // SAFETY: C has allocated the structure with calloc (schunk.c, blosc2_schunk_new), so all its bytes are
        // initialized. The content of the metalayer is initialized too (schunk.c, blosc2_meta_add).
        unsafe {
            let schunk = shape.as_ptr();
            let mut memory =
                std::slice::from_raw_parts(schunk.cast::<u8>(), size_of::<sys::blosc2_schunk>())
                    .to_vec();
            let metalayer = &*(&(*schunk).metalayers)[0];
            let len = metalayer.content_len as usize;
            memory.extend(std::slice::from_raw_parts(metalayer.content, len));
            memory
        }
    }

    #[test]
    fn c_does_not_write_to_a_shape() {
        let shape = ArrayShape::new(1, Some(&meta(BLOCK))).unwrap();
        let before = memory(&shape);
        let bytedelta = CParams::new().codec(Codec::Lz4).filters(&[Filter::Bytedelta(0)]);
        for params in needing_shape().into_iter().chain([bytedelta]) {
            let chunk = encode(&params, Some(shape.clone())).unwrap();
            let mut decoder = Decoder::with_shape(&DParams::new(), Some(shape.clone())).unwrap();
            for start in [0, 1, 300] {
                decode(&chunk, start, data().len() - start, &mut decoder).unwrap();
            }
            assert_eq!(memory(&shape), before, "{params:?}");
        }
    }

    #[cfg(feature = "zfp")]
    #[test]
    fn zfp_takes_items_by_the_shape_of_each_block() {
        let metalayer = |block| ArrayShape::new(4, Some(&meta(block))).unwrap();
        let items: Vec<f32> = (0..32 * 32).map(|k| k as f32).collect();
        let chunk_of = |block: usize| {
            let params = CParams::new().codec(Codec::ZfpRate).codec_meta(50).filters(&[]);
            let params = params.blocksize(block * block * 4).resolve(4, Purpose::Array).unwrap();
            let shape = metalayer(block);
            let mut chunk = Vec::new();
            let source = crate::item::element::as_bytes(&items);
            Encoder::with_shape(params, Some(shape))
                .unwrap()
                .compress_to(source, ChunkPlace::default(), &mut chunk)
                .unwrap();
            chunk
        };
        let shape = metalayer(16);
        let before = memory(&shape);
        let mut decoder = Decoder::with_shape(&DParams::new(), Some(shape.clone())).unwrap();
        let (right, wrong) = (chunk_of(16), chunk_of(8));
        for _ in 0..2 {
            let found = decode(&right, 4 * 300, 8, &mut decoder).unwrap();
            let mut pair = [0f32; 2];
            crate::item::element::as_bytes_mut(&mut pair).copy_from_slice(&found);
            assert!((pair[0] - items[300]).abs() < 0.2 && (pair[1] - items[301]).abs() < 0.2);
            assert!(decode(&wrong, 4 * 300, 8, &mut decoder).is_err());
        }
        assert_eq!(memory(&shape), before);
    }

    #[test]
    fn without_a_shape_they_are_refused() {
        let typesize_only = ArrayShape::new(1, None).unwrap();
        for params in needing_shape() {
            let chunk = encode(&params, Some(array())).unwrap();
            for shape in [None, Some(typesize_only.clone())] {
                let error = encode(&params, shape.clone()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
                assert!(error.to_string().contains("arrays only"), "{error}");
                let mut decoder = Decoder::with_shape(&DParams::new(), shape).unwrap();
                let found = decode(&chunk, 0, data().len(), &mut decoder);
                if params.codec == Codec::Ndlz {
                    assert_eq!(found.unwrap(), data()); // Its streams contain the shape.
                    continue;
                }
                let error = found.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
                assert!(error.to_string().contains("the shape of its array"), "{error}");
            }
        }
    }

    #[test]
    fn broken_metalayers_are_errors() {
        let meta = meta(BLOCK);
        let other_ndim = |ndim: u8| {
            let mut meta = meta.clone();
            meta[2] = ndim;
            meta
        };
        let block_of = |side: [u8; 4]| {
            let mut meta = meta.clone();
            let end = meta.len() - REST;
            meta[end - 4..end].copy_from_slice(&side);
            meta
        };
        let needed = meta.len() - REST;
        let mut broken: Vec<Vec<u8>> = (0..needed).map(|len| meta[..len].to_vec()).collect();
        broken.extend([0, 1, 3, 16, 17, 127, 255].map(other_ndim));
        broken.extend([[0; 4], [255; 4], [0, 0, 0, 17], [127, 255, 255, 255]].map(block_of));
        for params in needing_shape() {
            let chunk = encode(&params, Some(array())).unwrap();
            for meta in &broken {
                let shape = ArrayShape::new(1, Some(meta)).unwrap();
                let mut decoder =
                    Decoder::with_shape(&DParams::new(), Some(shape.clone())).unwrap();
                let found = decode(&chunk, 0, data().len(), &mut decoder);
                match params.codec {
                    Codec::Ndlz => assert_eq!(found.unwrap(), data()),
                    _ => assert!(found.is_err(), "{meta:?}"),
                }
                assert!(encode(&params, Some(shape)).is_err(), "{meta:?}");
            }
        }
    }

    #[test]
    fn bytedelta_asks_for_the_typesize() {
        let items: Vec<u8> = (0..4000u32).flat_map(u32::to_le_bytes).collect();
        let filters = [Filter::Shuffle, Filter::Bytedelta(4)];
        let params = CParams::new().codec(Codec::Lz4).filters(&filters);
        let mut chunk = crate::compress(&items, &params.typesize(4)).unwrap();
        let meta = chunk[24..30].iter().rposition(|&meta| meta == 4).unwrap();
        chunk[24 + meta] = 0;
        let shape = |size| Some(ArrayShape::new(size, None).unwrap());
        let found = |shape| {
            let mut decoder = Decoder::with_shape(&DParams::new(), shape).unwrap();
            decode(&chunk, 0, items.len(), &mut decoder)
        };
        assert_eq!(found(shape(4)).unwrap(), items);
        assert_ne!(found(shape(2)).unwrap(), items);
        let error = found(None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }

    /// Its number of streams is the typesize of the super-chunk, which the chunk does not store above 255. C would leave
    /// the end of a block unwritten.
    #[test]
    fn the_first_bytedelta_is_checked_with_the_typesize_of_the_super_chunk() {
        let items = [7u8; 4200];
        let params = CParams::new().codec(Codec::Lz4).filters(&[Filter::Bytedelta(1)]);
        let mut chunk = crate::compress(&items, &params.typesize(1)).unwrap();
        let slot = chunk[16..22].iter().position(|&code| code == 35).unwrap();
        (chunk[16 + slot], chunk[24 + slot]) = (34, 0);
        for (typesize, is_whole) in
            [(1, true), (300, true), (4200, true), (17, false), (9000, false)]
        {
            let shape = Some(ArrayShape::new(typesize, None).unwrap());
            let mut decoder = Decoder::with_shape(&DParams::new(), shape).unwrap();
            match decode(&chunk, 0, items.len(), &mut decoder) {
                Ok(_) => assert!(is_whole, "{typesize}"),
                Err(error) => {
                    assert!(
                        !is_whole && error.to_string().contains("first version of bytedelta"),
                        "{error}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_typesize_is_positive() {
        for size in [0, usize::MAX, 1 << 31] {
            let error = ArrayShape::new(size, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        }
    }
}

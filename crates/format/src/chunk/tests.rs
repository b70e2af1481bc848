use super::*;
use crate::{Error, Limits, Options, Report, Severity};

/// Chunks that C-Blosc2 3.3 made of [`ramp`]: LZ4 split into four streams in blocks of 160 bytes,
/// BloscLZ with bitshuffle, LZ4HC with delta and shuffle, zlib with bytedelta, Zstandard.
const CHUNKS: [&str; 5] = [
    "0501250490010000a0000000de000000010000000000010000000000000000002c00000066000000ae00000028\
     000000404346494c4f5255585b5e6164676a6d707376797c7f8285888b8e9194979a9da0a3a6a9acafb2b5beff\
     ffff01f1ffffff010000000028000000b8bbbec1c4c7cacdd0d3d6d9dcdfe2e5e8ebeef1f4f7fafd000306090c\
     0f1215181b1e2124272a2d0f0000001f4201000416430100504343434343f1ffffff01000000002c000000fb0a\
     303336393c3f4245484b4e5154575a5d60636669434343434305001f0f0100001a000100500000000000",
    "050115049001000090010000a100000002000000000000000000000000000000240000007900000023aaaaaaaaa0\
     0301aa66e001000166b4e0010002b438c7e0000104c7c0073ff8a0031ff800f83f00ff07c0ff00f83f00ffff3f0000f8\
     ffff0000c0ff0000c0ffffffff01ff00e001000100ffe00500e0031be01b01e0033fe0033be00317e01b01e0033be07b\
     01100060430f0063430f0066430f0069430f00",
    "05013d0490010000a0000000be000000030100000000020000000000000000002c000000630000009b000000330000\
     00f1024003050f05031d070d03053f05030d071d100010fd1000101f1000133d20002f42000100132f0f000100365000\
     0000000034000000e0f8f8f88888889898888888b8b8b80a00000b00337878880b000115004f889898000100041b0101\
     001f000100375000000000001f0000001170010010100100103001000009001f010100001f0001000f500000000000",
    "0501750490010000900100004300000001230000000004000004000000000000240000001b000000785e7360a63d70\
     62a00c301252c0c0c0c04f48c110010055b801bc",
    "050185049001000090010000ad000000010000000000050000000000000000002400000064000000404346494c4f52\
     55585b5e6164676a6d707376797c7f8285888b8e9194979a9da0a3a6a9acafb2b5b8bbbec1c4c7cacdd0d3d6d9dcdfe2\
     e5e8ebeef1f4f7fafd000306090c0f1215181b1e2124272a2d303336393c3f4245484b4e5154575a5d606366691400000\
     028b52ffd20645d0000184242430200002926012cf1ffffff0100000000",
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn ramp() -> Vec<u8> {
    (0..100u32).flat_map(|item| (item * 3 + 1_000_000).to_le_bytes()).collect()
}

fn check(bytes: &[u8]) -> Report {
    Chunk::check(bytes, &Options { content: true, ..Options::default() })
}

fn rules(bytes: &[u8]) -> Vec<&'static str> {
    check(bytes).findings.iter().map(|finding| finding.rule.id).collect()
}

fn decode(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    Chunk::new(bytes, &Limits::default())?.decode()
}

/// A chunk without filters whose blocks are these bytes, one after the other.
fn chunk(typesize: u8, nbytes: u32, blocksize: u32, blocks: &[&[u8]]) -> Vec<u8> {
    let mut chunk = vec![0; 32 + 4 * blocks.len()];
    chunk[..4].copy_from_slice(&[5, 1, 0b1_0101, typesize]);
    chunk[4..8].copy_from_slice(&nbytes.to_le_bytes());
    chunk[8..12].copy_from_slice(&blocksize.to_le_bytes());
    for (number, block) in blocks.iter().enumerate() {
        let start = chunk.len() as u32;
        chunk[32 + 4 * number..][..4].copy_from_slice(&start.to_le_bytes());
        chunk.extend_from_slice(block);
    }
    finish(chunk)
}

fn finish(mut chunk: Vec<u8>) -> Vec<u8> {
    let cbytes = chunk.len() as u32;
    chunk[12..16].copy_from_slice(&cbytes.to_le_bytes());
    chunk
}

fn with(mut bytes: Vec<u8>, changes: &[(usize, u8)]) -> Vec<u8> {
    for &(at, value) in changes {
        bytes[at] = value;
    }
    bytes
}

#[test]
fn chunks_of_c_are_read() {
    for (number, hex) in CHUNKS.iter().enumerate() {
        let bytes = bytes(hex);
        assert_eq!(decode(&bytes).unwrap(), ramp(), "chunk {number}");
        assert_eq!(rules(&bytes), [""; 0], "chunk {number}");
        let chunk = Chunk::new(&bytes, &Limits::default()).unwrap();
        let mut decoder = Decoder::default();
        let mut start = 400;
        for block in (0..chunk.nblocks()).rev() {
            let mut out = vec![0; chunk.block_size(block)];
            decoder.decode_block(&chunk, block, &mut out).unwrap();
            start -= out.len();
            assert_eq!(out, ramp()[start..start + out.len()], "chunk {number}, block {block}");
        }
        assert_eq!(start, 0);
        // Buffers of other sizes, and missing blocks.
        let mut out = vec![0; 401];
        for outcome in [
            decoder.decode(&chunk, &mut out),
            decoder.decode(&chunk, &mut []),
            decoder.decode_block(&chunk, 0, &mut out),
            decoder.decode_block(&chunk, chunk.nblocks(), &mut []),
        ] {
            assert!(matches!(outcome, Err(Error::Argument(_))), "{outcome:?}");
        }
    }
}

#[test]
fn chunks_are_written_as_c_writes_them() {
    let split = Params {
        codec: 1,
        typesize: 4,
        blocksize: Some(160),
        split: SplitMode::Always,
        ..Params::default()
    };
    let found = Encoder::new(split).unwrap().encode(&ramp()).unwrap();
    // Python uses the first slots for the filters.
    let expected = with(bytes(CHUNKS[0]), &[(16, 0), (21, 1)]);
    assert_eq!(found, expected);
    let bitshuffle = Params {
        codec: 0,
        typesize: 4,
        filters: [2, 0, 0, 0, 0, 0],
        split: SplitMode::Never,
        ..Params::default()
    };
    let found = Encoder::new(bitshuffle).unwrap().encode(&ramp()).unwrap();
    assert_eq!(found, bytes(CHUNKS[1]));
}

#[test]
fn what_cannot_get_shorter_is_stored() {
    let noise: Vec<u8> = (0..100u32).map(|item| (item * item * 21) as u8).collect();
    for (level, len, flags) in [(0, 100, 0b111), (5, 31, 0b111), (5, 0, 0b111)] {
        let params = Params { level, codec: 1, ..Params::default() };
        let found = Encoder::new(params).unwrap().encode(&noise[..len]).unwrap();
        assert_eq!((found.len(), found[2]), (len + 32, flags), "level {level}, {len} bytes");
        assert_eq!(decode(&found).unwrap(), noise[..len]);
        assert_eq!(rules(&found), [""; 0]);
    }
}

#[test]
fn runs_and_stored_streams_are_streams() {
    let blocks: [&[u8]; 3] = [
        &[0xfe, 0xff, 0xff, 0xff, 1], // 2, four times
        &[0, 0, 0, 0],                // zeros
        &[2, 0, 0, 0, 8, 9],          // two bytes
    ];
    let bytes = chunk(1, 10, 4, &blocks);
    assert_eq!(decode(&bytes).unwrap(), [2, 2, 2, 2, 0, 0, 0, 0, 8, 9]);
    assert_eq!(rules(&bytes), [""; 0]);
    // Split into two streams, except the shorter last block.
    let blocks: [&[u8]; 2] = [&[2, 0, 0, 0, 1, 3, 0xfc, 0xff, 0xff, 0xff, 1], blocks[2]];
    let bytes = with(chunk(2, 6, 4, &blocks), &[(2, 0b101)]);
    assert_eq!(decode(&bytes).unwrap(), [1, 3, 4, 4, 8, 9]);
    assert_eq!(rules(&bytes), [""; 0]);
}

/// Before chunks had a flag, blocks were split into at most 16 streams of at least 128 bytes.
#[test]
fn old_chunks_are_split_by_a_rule() {
    let old = |typesize: u8, len: u32, streams: usize| {
        let stream = len as usize / streams;
        let mut bytes = vec![2, 1, 0, typesize];
        for field in [len, len, 0, 20] {
            bytes.extend(field.to_le_bytes());
        }
        for number in 0..streams {
            bytes.extend((stream as u32).to_le_bytes());
            bytes.extend(std::iter::repeat_n(number as u8 + 1, stream));
        }
        finish(bytes)
    };
    assert_eq!(decode(&old(2, 256, 2)).unwrap(), [[1; 128], [2; 128]].concat());
    assert_eq!(decode(&old(2, 254, 1)).unwrap(), [1; 254]);
    assert_eq!(decode(&old(17, 17 * 256, 1)).unwrap(), [1; 17 * 256]);
    for (typesize, len, streams) in [(2, 256, 2), (2, 254, 1), (1, 100, 1)] {
        assert_eq!(rules(&old(typesize, len, streams)), [""; 0]);
    }
    // Streams that remain unused by the rule are reported.
    let mut split = old(2, 254, 2);
    split[20..24].fill(0);
    split.drain(24..24 + 127);
    assert!(rules(&finish(split)).contains(&"chunk.old_split"));
}

#[test]
fn special_values_are_repeated() {
    let params = Params { typesize: 4, ..Params::default() };
    let make = |special, nbytes| super::special(&params, special, nbytes, &[1, 2, 3, 4]).unwrap();
    let nan = f32::NAN.to_bits().to_le_bytes();
    for (special, item) in [
        (Special::Zeros, [0; 4]),
        (Special::Uninit, [0; 4]),
        (Special::Nan, nan),
        (Special::Value, [1, 2, 3, 4]),
    ] {
        let bytes = make(special, 100);
        assert_eq!(bytes.len(), if special == Special::Value { 36 } else { 32 });
        assert_eq!(decode(&bytes).unwrap(), item.repeat(25));
        assert_eq!(rules(&bytes), [""; 0]);
        let chunk = Chunk::new(&bytes, &Limits::default()).unwrap();
        let mut block = vec![1; 100];
        Decoder::default().decode_block(&chunk, 0, &mut block).unwrap();
        assert_eq!(block, item.repeat(25));
    }
    let error = |special, nbytes, value: &[u8]| super::special(&params, special, nbytes, value);
    let pairs = Params { typesize: 2, ..params };
    for outcome in [
        error(Special::Zeros, 101, &[]),
        error(Special::Value, 100, &[1]),
        error(Special::Value, 0, &[1, 2, 3, 4]),
        super::special(&pairs, Special::Nan, 100, &[]),
    ] {
        assert!(matches!(outcome, Err(Error::Argument(_))));
    }
    for (changes, rule) in [
        (&[(3, 2)][..], "chunk.nan_typesize"),
        (&[(8, 3)], "chunk.special_blocks"),
        (&[(2, 0b111)], "chunk.special_stored"),
        (&[(4, 101)], "chunk.special_items"),
        (&[(12, 33)], "chunk.truncated"),
    ] {
        assert!(rules(&with(make(Special::Nan, 100), changes)).contains(&rule), "{rule}");
    }
    assert_eq!(
        rules(&with(make(Special::Value, 100), &[(4, 0)])),
        ["chunk.large_blocksize", "chunk.value_width"]
    );
}

#[test]
fn blocks_of_any_length_can_be_read_alone() {
    let blocks: [&[u8]; 3] = [b"a", b"blosc2 blosc2 blosc2 blosc2 blosc2 blosc2 blosc2", b"ccc"];
    let params = Params { codec: 1, typesize: 1, filters: [0; 6], ..Params::default() };
    let mut encoder = Encoder::new(params).unwrap();
    let bytes = encoder.encode_blocks(&blocks).unwrap();
    assert!(bytes.len() < 32 + 3 * 8 + 52);
    assert_eq!((bytes[0], bytes[8], bytes[30]), (6, 3, 1));
    assert_eq!(decode(&bytes).unwrap(), blocks.concat());
    assert_eq!(rules(&bytes), [""; 0]);
    let chunk = Chunk::new(&bytes, &Limits::default()).unwrap();
    for (number, block) in blocks.iter().enumerate() {
        let mut out = vec![0; chunk.block_size(number)];
        Decoder::default().decode_block(&chunk, number, &mut out).unwrap();
        assert_eq!(out, *block);
    }
    for blocks in [&[][..], &[&b""[..]]] {
        assert!(matches!(encoder.encode_blocks(blocks), Err(Error::Argument(_))));
    }
    for (at, value, rule) in [
        (4, 53, "chunk.vl_sum"),
        (32, 43, "chunk.bstart"),
        (36, 44, "chunk.vl_bstart"),
        (44, 0, "chunk.vl_size"),
        (2, 0b1_0111, "chunk.vl_flags"),
        (4, 0, "chunk.vl_empty"),
        (0, 5, "chunk.other_version"),
    ] {
        assert!(rules(&with(bytes.clone(), &[(at, value)])).contains(&rule), "{rule}");
    }
}

/// A lazy chunk of at most one block.
fn lazy_chunk(nbytes: u8, cbytes: u8, flags: u8) -> Vec<u8> {
    let fields = [(2, flags), (4, nbytes), (8, nbytes.max(1)), (12, cbytes), (31, 8)];
    let mut lazy = with(chunk(1, 4, 4, &[]), &fields);
    let nblocks = usize::from(nbytes > 0);
    lazy.extend([0; 4].repeat(nblocks));
    lazy.extend(3u32.to_le_bytes());
    lazy.extend(1000u64.to_le_bytes());
    lazy.extend([4, 0, 0, 0].repeat(nblocks));
    lazy
}

#[test]
fn lazy_chunks_say_where_their_blocks_are() {
    let whole = bytes(CHUNKS[0]);
    let mut lazy = with(whole[..44].to_vec(), &[(31, 8)]);
    lazy.extend(3u32.to_le_bytes());
    lazy.extend(1000u64.to_le_bytes());
    for size in [58u32, 72, 48] {
        lazy.extend(size.to_le_bytes());
    }
    let chunk = Chunk::new(&lazy, &Limits::default()).unwrap();
    let place = chunk.lazy().unwrap();
    assert_eq!((place.number, place.offset), (3, 1000));
    assert_eq!(
        [0, 1, 2, 3].map(|block| place.stored_size(block)),
        [Some(58), Some(72), Some(48), None]
    );
    assert_eq!(rules(&lazy), ["chunk.unsupported"]);
    let error = chunk.decode().unwrap_err();
    assert!(matches!(&error, Error::Unsupported(why) if why.contains("lazy")), "{error}");
    assert!(Chunk::new(&whole, &Limits::default()).unwrap().lazy().is_none());

    assert_eq!(rules(&lazy[..67]), ["chunk.lazy"]);
    assert_eq!(rules(&with(lazy.clone(), &[(47, 0x80)])), ["chunk.lazy_number"]);
    assert_eq!(rules(&with(lazy.clone(), &[(55, 0x80)])), ["chunk.lazy_offset"]);
    assert_eq!(rules(&with(lazy.clone(), &[(57, 1)])), ["chunk.lazy_bsize"]);
    // A complete chunk with the flag set is not accepted as a lazy one.
    assert!(!check(&with(whole, &[(31, 8)])).is_good());

    // Without compressed blocks: no data, and stored data.
    let empty = lazy_chunk(0, 32, 0b1_0101);
    let stored = lazy_chunk(4, 36, 0b1_0111);
    for lazy in [empty, stored] {
        assert_eq!(rules(&lazy), ["chunk.unsupported"]);
        let chunk = Chunk::new(&lazy, &Limits::default()).unwrap();
        assert!(matches!(chunk.decode(), Err(Error::Unsupported(_))));
    }
}

#[test]
fn each_rule_of_the_streams_is_found() {
    let blocks: [&[u8]; 3] = [&[4, 0, 0, 0, 1, 2, 3, 4], &[0xfe, 0xff, 0xff, 0xff, 1], &[0; 4]];
    let good = chunk(1, 10, 4, &blocks); // 32 + 12, blocks at 44, 52, 57, the end at 61
    assert_eq!(rules(&good), [""; 0]);
    let zlib = 0b0111_0101;
    for (changes, rule, offset) in [
        (&[(12, 62)][..], "chunk.truncated", 12),
        (&[(12, 60)], "chunk.bstart", 40),
        (&[(32, 43)], "chunk.bstart", 32),
        (&[(35, 0x80)], "chunk.bstart", 32),
        (&[(12, 43)], "chunk.bstarts", 32),
        (&[(45, 1)], "chunk.csize", 44),
        (&[(53, 0xfe)], "chunk.run", 52),
        (&[(56, 2)], "chunk.token", 56),
        (&[(56, 3)], "chunk.token_bits", 56),
        (&[(36, 44)], "chunk.overlap", 44),
        (&[(40, 52)], "chunk.overlap", 52),
        (&[(57, 1)], "chunk.csize", 57),
        (&[(44, 3), (2, zlib)], "chunk.content", 44),
        (&[(44, 3), (2, 0b1_0101 | 5 << 5)], "chunk.codec", 2),
        (&[(2, 0b1_0101 | 6 << 5)], "chunk.codec", 22),
        (&[(2, 0b1_0101 | 6 << 5), (22, 33)], "chunk.plugin_codec", 22),
        (&[(2, 0b1_0101 | 2 << 5)], "chunk.plugin_codec", 2),
        (&[(22, 7)], "chunk.user_codec", 22),
        (&[(16, 5)], "chunk.filter", 16),
        (&[(17, 200)], "chunk.plugin_filter", 17),
        (&[(16, 3), (17, 3)], "chunk.delta_place", 16),
        (&[(16, 3)], "chunk.delta_flag", 2),
        (&[(16, 34), (24, 3)], "chunk.lost_end", 16),
        (&[(1, 2)], "chunk.codec_version", 1),
        (&[(0, 6)], "chunk.other_version", 0),
        (&[(0, 2)], "chunk.other_version", 0),
        (&[(30, 4)], "chunk.reserved", 30),
        (&[(31, 4)], "chunk.reserved", 31),
        (&[(31, 0x80)], "chunk.instrumented", 31),
        (&[(31, 1)], "chunk.bstart", 32),
        (&[(3, 3), (2, 0b101)], "chunk.split", 8),
        (&[(9, 1)], "chunk.large_blocksize", 8),
    ] {
        let bytes = with(good.clone(), changes);
        let report = check(&bytes);
        let found = report.findings.iter().find(|finding| finding.rule.id == rule);
        let found = found.unwrap_or_else(|| panic!("no {rule} in {:?}", report.findings));
        assert_eq!(found.offset, offset, "{found}");
        assert!(found.offset + found.len <= bytes.len() as u64, "{found}");
        // Reading is as strict as the check, and returns the same error.
        if found.rule.severity == Severity::Error
            && rule != "chunk.overlap"
            && rule != "chunk.codec"
            && rule != "chunk.filter"
        {
            assert!(decode(&bytes).is_err(), "{rule}");
        }
    }
    let mut longer = good.clone();
    longer.extend([0; 3]);
    assert_eq!(rules(&longer), ["chunk.trailing"]);
    assert_eq!(decode(&longer).unwrap(), decode(&good).unwrap());
    let gap = finish(longer);
    assert_eq!(rules(&gap), ["chunk.gap"]);
    assert_eq!(rules(&good[..15]), ["chunk.header"]);
    assert_eq!(rules(&good[..31]), ["chunk.extended_header"]);
    assert_eq!(rules(&with(good.clone(), &[(0, 0), (3, 0)])), ["chunk.version", "chunk.typesize"]);
    assert_eq!(rules(&with(good.clone(), &[(0, 9), (30, 2)])), ["chunk.version"]);
    let later = with(good.clone(), &[(0, 9)]);
    assert_eq!(rules(&later), ["chunk.other_version"]);
    assert_eq!(decode(&later).unwrap(), decode(&good).unwrap());
}

/// C reads the dictionary before the streams. An invalid dictionary is an error even if all streams are runs.
#[test]
fn an_unused_dictionary_of_zstandard_must_be_valid() {
    let with_dictionary = |dictionary: &[u8]| {
        let mut bytes = chunk(1, 4, 4, &[&[]]);
        bytes[2] = bytes[2] & 0x1f | 4 << 5;
        bytes[31] = 1;
        bytes.truncate(36);
        bytes.extend((dictionary.len() as u32).to_le_bytes());
        bytes.extend(dictionary);
        let start = bytes.len() as u32;
        bytes[32..36].copy_from_slice(&start.to_le_bytes());
        bytes.extend([0xff, 0xff, 0xff, 0xff, 1]);
        finish(bytes)
    };
    let raw = with_dictionary(b"raw data");
    assert_eq!(rules(&raw), [""; 0]);
    assert_eq!(decode(&raw).unwrap(), [1; 4]);
    let dictionary = [0x37, 0xa4, 0x30, 0xec, 1, 0, 0, 0, 0xff, 0xff];
    let mut broken = with_dictionary(&dictionary);
    let report = check(&broken);
    let [finding] = &report.findings[..] else { panic!("{report:?}") };
    assert_eq!(
        (finding.rule.id, finding.offset, finding.len),
        ("chunk.dictionary_content", 40, 10)
    );
    // LZ4 reads any bytes as its dictionary, and BloscLZ none.
    for (codec, expected) in [(0, &["chunk.unused_dictionary"][..]), (1, &[])] {
        broken[2] = broken[2] & 0x1f | codec << 5;
        assert_eq!(rules(&broken), expected, "codec {codec}");
        assert_eq!(decode(&broken).unwrap(), [1; 4]);
    }
}

#[test]
fn a_dictionary_lies_before_the_streams() {
    let mut bytes = chunk(1, 4, 4, &[&[2, 0, 0, 0, 7, 7], &[]]);
    bytes.drain(36..40);
    bytes[2] |= 1 << 5;
    bytes[31] = 1;
    bytes.extend([0xff, 0xff, 0xff, 0xff, 1]);
    bytes[32..36].copy_from_slice(&42u32.to_le_bytes());
    let bytes = finish(bytes);
    let chunk = Chunk::new(&bytes, &Limits::default()).unwrap();
    assert_eq!(chunk.dictionary(), Some(&[7, 7][..]));
    assert_eq!(chunk.decode().unwrap(), [1; 4]);
    assert_eq!(rules(&bytes), [""; 0]);
    for len in [0, 0xff, 8] {
        assert_eq!(rules(&with(bytes.clone(), &[(36, len)])), ["chunk.dictionary"]);
    }
    assert!(rules(&with(bytes, &[(2, 0b1_0101)])).contains(&"chunk.unused_dictionary"));
}

#[test]
fn limits_hold_whatever_a_header_claims() {
    // 512 MB of zeros in a stream of four bytes.
    let len = 1 << 29;
    let len = len - (1 << 20);
    let bytes = chunk(1, len, len, &[&[0; 4]]);
    let limits = Limits { memory: 1 << 20, ..Limits::default() };
    assert!(matches!(Chunk::new(&bytes, &limits), Err(Error::Limit { .. })));
    let options = Options { content: true, limits, ..Options::default() };
    let report = Chunk::check(&bytes, &options);
    assert_eq!(report.findings[0].rule.id, "chunk.limit");
    // Within the limits a check needs neither the time nor the memory: decoding would take
    // minutes.
    let options = Options { content: true, ..Options::default() };
    for _ in 0..100 {
        assert!(Chunk::check(&bytes, &options).is_good());
    }
    // A stream that cannot be so long is rejected before memory is allocated.
    let bytes = with(chunk(1, len, len, &[&[3, 0, 0, 0, 1, 2, 3]]), &[(2, 0b0111_0101)]);
    assert_eq!(rules(&bytes), ["chunk.ratio"]);
    assert!(matches!(decode(&bytes), Err(Error::Format(_))));
    let mut data = vec![1; 10];
    let chunk = Chunk::new(&bytes, &Limits::default()).unwrap();
    assert!(Decoder::default().decode_vec(&chunk, &mut data).is_err());
    assert!(data.is_empty() && data.capacity() < 1000, "{}", data.capacity());
    // Many small blocks.
    let bytes = super::special(&Params::default(), Special::Zeros, 1 << 30, &[]).unwrap();
    let options = Options { content: true, limits: Limits::default(), ..Options::default() };
    assert!(Chunk::check(&bytes, &options).is_good());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(500))]

    #[test]
    fn no_change_makes_it_panic(
        number in 0..CHUNKS.len(),
        changes in proptest::collection::vec((0usize..120, proptest::prelude::any::<u8>()), 1..4),
    ) {
        let mut bytes = bytes(CHUNKS[number]);
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        let limits = Limits { memory: 1 << 20, ..Limits::default() };
        let report = Chunk::check(&bytes, &Options { content: true, limits, ..Options::default() });
        let decoded = Chunk::new(&bytes, &limits).and_then(|chunk| chunk.decode());
        if let Ok(data) = &decoded {
            proptest::prop_assert_eq!(data.len(), Header::parse(&bytes).unwrap().nbytes as usize);
        }
        if let Err(Error::Format(_)) = decoded {
            proptest::prop_assert!(!report.is_good());
        }
    }

    #[test]
    fn what_is_encoded_comes_back(
        seed in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..50),
        times in 0usize..200,
        codec in proptest::sample::select(vec![0u8, 1, 4, 5]),
        level in 0u8..10,
        typesize in 1u32..300,
        filters in proptest::sample::select(vec![[0, 0, 0, 0, 0, 1], [0, 0, 0, 3, 2, 0], [0; 6]]),
        blocksize in proptest::option::of(1u32..3000),
        split in proptest::sample::select(vec![SplitMode::Always, SplitMode::Never, SplitMode::Auto]),
    ) {
        let data = seed.repeat(times);
        let params =
            Params { codec, level, typesize, filters, blocksize, split, ..Params::default() };
        let bytes = Encoder::new(params).unwrap().encode(&data).unwrap();
        proptest::prop_assert!(bytes.len() <= data.len() + 32);
        proptest::prop_assert_eq!(decode(&bytes).unwrap(), data);
        proptest::prop_assert_eq!(rules(&bytes), [""; 0]);
    }
}

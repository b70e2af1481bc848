#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| blosc2_fuzzing::check(input));

//! The target `audit` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| heatsink_fuzz::audit(data));

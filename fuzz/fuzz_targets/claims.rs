#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ringer_fuzz::claims::run(data));

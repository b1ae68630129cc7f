#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ringer_fuzz::scanner::run(data));

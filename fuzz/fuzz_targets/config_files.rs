#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ringer_fuzz::config_files::run(data));

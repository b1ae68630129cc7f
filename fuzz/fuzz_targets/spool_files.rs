#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ringer_fuzz::spool_files::run(data));

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ringer_fuzz::channel_lines::run(data));

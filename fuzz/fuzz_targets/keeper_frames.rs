#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ringer_fuzz::keeper_frames::run(data));

//! Replays the corpora, with a stable compiler and without libFuzzer.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use ringer_fuzz::TARGETS;

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The names in a directory, without their extensions.
fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn every_target_has_a_program_and_a_corpus() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&directory("fuzz_targets")), targets);
    assert_eq!(names(&directory("corpus")), targets);
    let manifest = fs::read_to_string(directory("Cargo.toml")).unwrap();
    for target in targets {
        assert!(manifest.contains(&format!("name = \"{target}\"\npath = \"fuzz_targets/{target}.rs\"\n")));
        let program = fs::read_to_string(directory(&format!("fuzz_targets/{target}.rs"))).unwrap();
        // Nothing else checks these programs: that needs a compiler of C++.
        let expected = format!(
            "#![no_main]\n\nlibfuzzer_sys::fuzz_target!(|data: &[u8]| ringer_fuzz::{target}::run(data));\n"
        );
        assert_eq!(program, expected);
    }
}

#[test]
fn every_input_of_the_corpora_holds() {
    for (target, run) in TARGETS {
        let inputs = names(&directory(&format!("corpus/{target}")));
        assert!(!inputs.is_empty(), "the corpus of {target} is empty");
        for input in inputs {
            let path = directory(&format!("corpus/{target}/{input}"));
            let data = fs::read(&path).unwrap();
            assert!(catch_unwind(|| run(&data)).is_ok(), "{}", path.display());
        }
    }
}

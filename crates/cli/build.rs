//! Links release builds for Linux so that they start soon. A hook runs for a millisecond: at an address that is not fixed it would
//! spend half of that on relocations, and with `libgcc_s`, which only a panic needs, a tenth on loading it.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if !is("PROFILE", "release") || !is("CARGO_CFG_TARGET_OS", "linux") {
        return;
    }
    println!("cargo::rustc-link-arg-bins=-no-pie");
    if let Some(archive) = unwinding_archive() {
        // All of it: `libgcc_s` comes before it on the command line, and is left out by a linker that finds it not needed.
        for argument in ["-Wl,--whole-archive", &archive, "-Wl,--no-whole-archive"] {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
}

/// What of `libgcc_s` a program needs, as an archive. `None` where it is part of the program anyway, or the compiler has none.
fn unwinding_archive() -> Option<String> {
    println!("cargo::rerun-if-env-changed=CC");
    let is_native = env::var("HOST").ok()? == env::var("TARGET").ok()?;
    let is_static =
        env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|features| features.contains("crt-static"));
    if !is_native || is_static || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return None;
    }
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(compiler).arg("-print-file-name=libgcc_eh.a").output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    // A compiler that does not find it answers with the bare name.
    PathBuf::from(&path).is_absolute().then_some(path)
}

fn is(name: &str, value: &str) -> bool {
    env::var(name).is_ok_and(|set| set == value)
}

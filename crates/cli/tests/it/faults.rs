//! What goes wrong around the program: every fault ends in a clear error with the right exit code, and nothing that was
//! acknowledged is lost.

mod damage;
mod disk;
mod eio;
mod missing;
mod mounts;
mod mutation;
mod owner;
mod refusal;

/// Whether the tests run as root. Some faults cannot be made without; on the machine that decides they have to be.
fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    assert!(root || std::env::var_os("CI").is_none(), "CI has to run as root, to try {what}");
    if !root {
        eprintln!("SKIPPED: {what} needs root");
    }
    root
}

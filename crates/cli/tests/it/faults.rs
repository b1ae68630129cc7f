//! What goes wrong around the program: every fault ends in a clear error with the right exit code, and nothing that was
//! acknowledged is lost.

mod damage;
mod disk;
mod disk_of_panes;
mod eio;
mod missing;
mod mounts;
mod mutation;
mod owner;
mod refusal;
#[cfg(target_os = "linux")]
mod repository;

pub(crate) use mounts::Mounts;

//! What several crates need of the operating system, written once: replacing a file so that no reader sees half of it,
//! changes of a file and in directories, finding a program on a search path, file systems that other machines use, connecting to a socket, a lock on a terminal, waking a loop that polls, how much memory
//! threads and sleeping processes take, variables of the environment, words of a shell, and bytes as hex digits.
//!
//! ```
//! let directory = std::env::temp_dir();
//! let path = directory.join(format!("ringer-platform-example-{}", std::process::id()));
//! ringer_platform::replace_file(&path, b"{}\n", ringer_platform::Durability::Unsynced)?;
//! assert_eq!(std::fs::read(&path)?, b"{}\n");
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! It knows nothing of Ringer, and starts no process and no thread. It keeps nothing but the limit of open files with which the process was
//! started.

#![deny(unsafe_code)]

mod allocator;
mod clean_pages;
#[cfg(target_os = "linux")]
mod directory_changes;
mod environment;
mod file_stamp;
mod files;
mod foreground;
mod hex;
mod open_files;
mod program;
mod shared_file_system;
mod shell_word;
mod socket;
mod terminal_lock;
mod wake;

pub use allocator::share_one_heap;
pub use clean_pages::release_clean_pages;
#[cfg(target_os = "linux")]
pub use directory_changes::DirectoryChanges;
pub use environment::{path_variable, variable};
pub use file_stamp::{FileStamp, file_stamp};
pub use files::{Durability, replace_file, sync_directory};
pub use foreground::{ForegroundCheck, stop_this_process};
pub use hex::hex;
pub use open_files::{raise_open_files, with_first_open_files};
pub use program::{find_program, is_program};
pub use shared_file_system::is_on_shared_file_system;
pub use shell_word::shell_word;
#[cfg(target_os = "linux")]
pub use socket::connect_abstract_at_once;
pub use socket::{connect_at_once, peer_pid, peer_uid};
pub use terminal_lock::{try_lock_terminal, unlock_terminal};
pub use wake::{clear_wakes, wake, wake_pair};

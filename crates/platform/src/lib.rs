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

#[cfg(target_os = "linux")]
mod directory_changes;
mod files;
mod memory;
pub mod owned;
mod program;
mod socket;
mod terminal;
mod text;

#[cfg(target_os = "linux")]
pub use directory_changes::DirectoryChanges;
pub use files::{
    Durability, FileStamp, file_stamp, is_on_shared_file_system, raise_open_files, replace_file,
    sync_directory, with_first_open_files,
};
pub use memory::{release_clean_pages, share_one_heap};
pub use program::{find_own_program, find_program, is_program, path_variable, variable};
pub use socket::{FIRST_FRAME_WITHIN, clear_wakes, peer_pid, peer_uid, wake, wake_pair};
pub use terminal::{ForegroundCheck, stop_this_process, try_lock_terminal, unlock_terminal};
pub use text::{hex, shell_word};

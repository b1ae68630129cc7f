//! Operating system functions that several crates share: replacing files atomically, watching directories, the limit of open
//! files, checks of owners and permissions, programs on a search path, Unix sockets, terminals, children on a PTY, the memory of sleeping processes,
//! environment variables, shell quoting and hex digits.
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
//! It knows nothing of Ringer, and starts no process and no thread. Its only global state is the limit of open files with which
//! the process was started, and cached facts about this user.

#![deny(unsafe_code)]

mod byte_queue;
#[cfg(target_os = "linux")]
mod directory_changes;
mod files;
mod memory;
pub mod owned;
mod program;
mod socket;
mod terminal;

pub use byte_queue::ByteQueue;
#[cfg(target_os = "linux")]
pub use directory_changes::DirectoryChanges;
pub use files::{
    Durability, FileStamp, file_stamp, is_on_shared_file_system, raise_open_files, replace_file,
    sync_directory, with_first_open_files,
};
pub use memory::{release_clean_pages, share_one_heap};
pub use program::{find_own_program, find_program, hex, is_program, path_variable, shell_word, variable};
pub use socket::{FIRST_FRAME_WITHIN, clear_wakes, peer_pid, peer_uid, wake, wake_pair};
pub use terminal::{
    Change, Child, Ending, ForegroundCheck, die_by, pty_error, stop_this_process, try_lock_terminal,
    unlock_terminal,
};

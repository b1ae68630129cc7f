//! Programs on a search path.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The first program of a name on a search path (the value of `PATH`). Relative and empty entries are passed over: they
/// mean another file in every directory.
pub fn find_program(search_path: &OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(search_path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|file| is_program(file))
}

/// Whether this is a file that this user may execute.
pub fn is_program(file: &Path) -> bool {
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::find_program;
    use std::ffi::OsStr;
    use std::path::PathBuf;

    #[test]
    fn only_absolute_directories_are_searched() {
        let check = |path: &str, name, expect: Option<&str>| {
            assert_eq!(find_program(OsStr::new(path), name), expect.map(PathBuf::from), "{path} {name}");
        };
        check("/nowhere:/bin", "sh", Some("/bin/sh"));
        check("relative:", "sh", None);
        check("/", "bin", None);
        check("/bin", "no-such-program-anywhere", None);
    }
}

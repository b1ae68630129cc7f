//! Programs on a search path, environment variables, words for a shell, and hex digits. An empty variable counts as unset, as in
//! the XDG Base Directory specification.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::owned;

/// Returns the first program with a name on a search path (the value of `PATH`). Skips relative and empty entries: they mean a
/// different file in every directory.
pub fn find_program(search_path: &OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(search_path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|file| is_program(file))
}

/// Returns the first program with a name on a search path, and fails if another user can change it. For programs that Ringer
/// chooses to run; programs that the person names are not checked.
pub fn find_own_program(search_path: &OsStr, name: &str) -> io::Result<PathBuf> {
    let missing = || io::Error::new(ErrorKind::NotFound, format!("{name} is not on the search path"));
    let program = find_program(search_path, name).ok_or_else(missing)?;
    owned::check_program(&program)?;
    Ok(program)
}

/// Returns true if this is a file that this user may execute.
pub fn is_program(file: &Path) -> bool {
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

/// Returns the value of an environment variable. `None` if it is empty.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the value of an environment variable as a path. `None` if it is empty.
pub fn path_variable(name: &str) -> Option<PathBuf> {
    variable(name).map(PathBuf::from)
}

/// Quotes a text so that a shell reads it as one word.
///
/// ```
/// assert_eq!(ringer_platform::shell_word("/usr/bin/ringer"), "/usr/bin/ringer");
/// assert_eq!(ringer_platform::shell_word("it's"), r"'it'\''s'");
/// ```
pub fn shell_word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@,".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Returns bytes as lowercase hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use crate::program::{find_own_program, find_program, hex, path_variable, variable};

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

    #[test]
    fn a_program_that_others_can_change_is_not_run_and_none_behind_it() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("sh");
        fs::write(&program, "").unwrap();
        let search_path = std::env::join_paths([directory.path(), "/bin".as_ref()]).unwrap();
        let find = || find_own_program(&search_path, "sh").map_err(|error| error.to_string());
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(), Ok(program.clone()));
        fs::set_permissions(&program, Permissions::from_mode(0o777)).unwrap();
        assert_eq!(find(), Err(format!("{} can be written by other users", program.display())));
        let missing = find_own_program(&search_path, "no-such-program").unwrap_err().to_string();
        assert_eq!(missing, "no-such-program is not on the search path");
    }

    #[test]
    fn a_variable_that_is_not_set_has_no_value() {
        assert!(variable("PATH").is_some() && path_variable("PATH").is_some());
        assert_eq!(variable("RINGER_TEST_NEVER_SET"), None);
    }

    #[test]
    fn every_byte_has_two_digits() {
        assert_eq!(hex(&[0x00, 0x0a, 0xff]), "000aff");
        assert_eq!(hex(&[]), "");
    }
}

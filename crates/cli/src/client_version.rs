//! The version of an installed client, out of its files: starting one takes a second and may change its settings.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// How far above a program its package is looked for: `package/bin/claude`, `package/dist/src/index.js`.
const MAX_LEVELS: usize = 4;
/// The longest description of a package that is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// The version of a program that npm installed, or whose file is named after it.
pub(crate) fn client_version(program: &Path) -> Option<String> {
    let name = program.file_name()?.to_str()?;
    let real = fs::canonicalize(program).ok()?;
    let packages = real.ancestors().skip(1).take(MAX_LEVELS).map(|level| level.join("package.json"));
    let version = packages.into_iter().find_map(|file| packaged(&file, name));
    // Claude Code's own installer puts the program into `versions/2.1.325`.
    let by_path = || real.file_name()?.to_str().filter(|name| is_version(name)).map(str::to_owned);
    version.or_else(by_path)
}

/// The version of a package that installs a program of this name.
fn packaged(file: &Path, name: &str) -> Option<String> {
    if fs::metadata(file).ok()?.len() > MAX_BYTES {
        return None;
    }
    let package: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    package["bin"].get(name)?;
    let version = package["version"].as_str()?;
    is_version(version).then(|| version.to_owned())
}

/// `2.1.325`, and what may follow it: `0.61.0-nightly.3`.
fn is_version(text: &str) -> bool {
    let numbers = text.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = numbers.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
    parts.len() == 3 && parts.iter().all(is_number) && text.len() < 40 && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_package_or_the_name_of_the_file_says_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for folder in ["bin", "lib/claude-code/dist", "share/versions"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        fs::write(path("lib/claude-code/dist/cli.js"), "").unwrap();
        symlink(path("lib/claude-code/dist/cli.js"), path("bin/claude")).unwrap();
        assert_eq!(client_version(&path("bin/claude")), None);
        let package = "{\"version\": \"2.1.325\", \"bin\": {\"claude\": \"dist/cli.js\"}}";
        fs::write(path("lib/claude-code/package.json"), package).unwrap();
        assert_eq!(client_version(&path("bin/claude")).as_deref(), Some("2.1.325"));
        fs::write(path("share/versions/2.1.326"), "").unwrap();
        symlink(path("share/versions/2.1.326"), path("bin/codex")).unwrap();
        assert_eq!(client_version(&path("bin/codex")).as_deref(), Some("2.1.326"));
        symlink(path("lib/claude-code/dist/cli.js"), path("bin/other")).unwrap();
        assert_eq!(client_version(&path("bin/other")), None, "the package is of another program");
    }

    #[test]
    fn what_a_version_is() {
        for version in ["2.1.325", "0.61.0-nightly.3"] {
            assert!(is_version(version), "{version}");
        }
        for other in ["2.1", "v2.1.3", "node_modules", "1.2.x", "1.2.3 \u{1b}"] {
            assert!(!is_version(other), "{other}");
        }
    }
}

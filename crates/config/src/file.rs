//! Finds, reads and parses settings files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ringer_platform::owned;
use rustix::fs::{Mode, OFlags};

use crate::notify::Notify;
use crate::problem::{ConfigError, ConfigErrors};
use crate::reader::{Origin, Section, SettingsReader, Source};
use crate::rules::Rules;
use crate::settings::{Config, RepositorySettings};
use crate::table::Settings;

/// The largest settings file, in bytes. A larger file is not a settings file.
pub const MAX_FILE: u64 = 1024 * 1024;

/// The name of the settings file at the root of a repository.
pub const REPOSITORY_FILE: &str = ".ringer.toml";

/// The environment variables that locate the person's file. The caller reads them; this crate does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// `RINGER_CONFIG`: the file itself. It overrides the other variables.
    pub ringer_config: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`. A relative path is ignored, as the XDG specification requires.
    pub xdg_config_home: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
}

/// Returns the path of the person's file, or `None` if no variable locates it. Empty variables count as unset.
pub fn user_path(environment: &Environment) -> Option<PathBuf> {
    let set = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
    let xdg = || set(&environment.xdg_config_home).filter(|path| path.is_absolute());
    let home = || set(&environment.home).map(|home| home.join(".config"));
    let below = || xdg().or_else(home).map(|directory| directory.join("ringer/config.toml"));
    set(&environment.ringer_config).or_else(below)
}

/// Reads the person's file. A missing file means all defaults; an unreadable one is a problem.
pub fn load(path: &Path, home: Option<&Path>, rules: &Rules) -> Result<Config, ConfigErrors> {
    match read(path, open_own)? {
        Some(text) => parse(path, home, &text, rules),
        None => Ok(Config { path: path.to_owned(), ..Config::default() }),
    }
}

/// Reads the file of the repository at this root. A missing file means empty settings.
pub fn load_repository(root: &Path, home: Option<&Path>) -> Result<RepositorySettings, ConfigErrors> {
    let path = root.join(REPOSITORY_FILE);
    match read(&path, open)? {
        Some(text) => parse_repository(&path, home, &text),
        None => Ok(RepositorySettings { path, ..RepositorySettings::default() }),
    }
}

fn read(path: &Path, open: impl FnOnce(&Path) -> io::Result<File>) -> Result<Option<String>, ConfigErrors> {
    let wrong = |text: &str, offset, message| ConfigError::at(path.to_owned(), text, offset, message);
    let mut bytes = Vec::new();
    match open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes)) {
        Ok(_) => {}
        // NotADirectory: a parent is a file, so this one does not exist either.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(wrong("", 0, format!("cannot be read: {error}")).into()),
    }
    if bytes.len() as u64 > MAX_FILE {
        return Err(wrong("", 0, format!("has more than {MAX_FILE} bytes")).into());
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
        wrong(&text, valid, "is not UTF-8 from here on".to_owned()).into()
    })
}

/// Opens the person's own file. A file that other users can write is refused: they could decide what Ringer runs.
fn open_own(path: &Path) -> io::Result<File> {
    owned::open(&std::path::absolute(path)?)
}

/// Opens a file of a checkout. It may belong to another user: trust depends on the digest, not on the owner.
///
/// `NONBLOCK`, because opening a FIFO would block the hub.
fn open(path: &Path) -> io::Result<File> {
    let file = File::from(rustix::fs::open(path, OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a file")) }
}

/// Parses the person's settings. `path` is the origin of the text, for messages and relative paths; no file is opened.
pub fn parse(path: &Path, home: Option<&Path>, text: &str, rules: &Rules) -> Result<Config, ConfigErrors> {
    let source = Source { origin: Origin::User, path: path.to_owned() };
    read_settings(&SettingsReader::new(source, home, text, rules))
}

/// Parses the settings of a repository, which are those marked `also_in(repository)`.
pub fn parse_repository(
    path: &Path,
    home: Option<&Path>,
    text: &str,
) -> Result<RepositorySettings, ConfigErrors> {
    let source = Source { origin: Origin::Repository, path: path.to_owned() };
    let Config { notify: Notify { mute, .. }, hooks, watches, path, .. } =
        read_settings(&SettingsReader::new(source, home, text, &Rules::default()))?;
    Ok(RepositorySettings { mute, hooks, watches, path })
}

fn read_settings(reader: &SettingsReader<'_>) -> Result<Config, ConfigErrors> {
    let config = reader.tree().and_then(|tree| {
        Config::read(&Section::root(reader, &tree).with_keys(Config::KEYS, belongs_in_notify).restricted())
    });
    reader.finish(config.unwrap_or_default())
}

fn belongs_in_notify(key: &str) -> Option<String> {
    Notify::KEYS.contains(&key).then(|| format!("{key} belongs under [notify]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_person_s_file_is() {
        let check = |ringer: &str, xdg: &str, home: &str, expected: Option<&str>| {
            let environment = Environment {
                ringer_config: Some(ringer.into()),
                xdg_config_home: Some(xdg.into()),
                home: Some(home.into()),
            };
            assert_eq!(user_path(&environment), expected.map(PathBuf::from), "{environment:?}");
        };
        check("", "", "/h", Some("/h/.config/ringer/config.toml"));
        check("", "/x", "/h", Some("/x/ringer/config.toml"));
        check("", "relative", "/h", Some("/h/.config/ringer/config.toml"));
        check("/r.toml", "/x", "/h", Some("/r.toml"));
        check("", "", "", None);
        assert_eq!(user_path(&Environment::default()), None);
    }

    #[test]
    fn a_file_that_is_not_there_is_all_defaults() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("none/config.toml");
        assert_eq!(load(&path, None, &Rules::default()), Ok(Config { path, ..Config::default() }));
        assert!(load_repository(directory.path(), None).unwrap().hooks.is_empty());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_a_problem() {
        let directory = tempfile::tempdir().unwrap();
        let check = |content: &[u8], expected: &str| {
            let path = directory.path().join("config.toml");
            std::fs::write(&path, content).unwrap();
            let errors = load(&path, None, &Rules::default()).unwrap_err().to_string();
            assert_eq!(errors, format!("{}:{expected}", path.display()));
        };
        check(b"# \xc3\xa4\n# \xff", "2:3: is not UTF-8 from here on");
        check(&vec![b'#'; 1024 * 1024 + 1], "1:1: has more than 1048576 bytes");
        let errors = load(directory.path(), None, &Rules::default()).unwrap_err().to_string();
        assert!(errors.ends_with("is not a regular file"), "{errors}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_fifo_is_not_waited_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(REPOSITORY_FILE);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(
            load_repository(directory.path(), None).unwrap_err().to_string().ends_with("it is not a file")
        );
    }

    #[test]
    fn files_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(REPOSITORY_FILE);
        std::fs::write(&path, "[[watch]]\npaths = [\"flake.nix\"]\ncommand = [\"direnv\", \"reload\"]\n")
            .unwrap();
        let repository = load_repository(directory.path(), None).unwrap();
        assert_eq!(repository.watches[0].paths, [directory.path().join("flake.nix")]);
        assert_eq!(repository.watches[0].working_directory(), directory.path());
        std::fs::write(&path, "stuck_threshold_ms = 5\n").unwrap();
        assert_eq!(load(&path, None, &Rules::default()).unwrap().stuck_threshold.as_millis(), 5);
    }
}

//! Plays a sound with a program that is installed on this machine.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_platform::find_own_program;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::disk;
use crate::error::Error;
use crate::program::{Output, Program};

/// How long a sound may play, including all players that are tried.
pub const SOUND_TIMEOUT: Duration = Duration::from_secs(10);

/// The message sound of the freedesktop theme, for machines without libcanberra; on macOS a sound of the system.
const THEME_FILE: &str = if cfg!(target_os = "macos") {
    "/System/Library/Sounds/Glass.aiff"
} else {
    "/usr/share/sounds/freedesktop/stereo/message.oga"
};
/// Its name in the theme.
const THEME_NAME: &str = "message-new-instant";

/// What to play.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Sound {
    /// Nothing.
    #[default]
    Off,
    /// The theme's own sound for a message.
    Theme,
    /// A file.
    File(PathBuf),
}

impl Sound {
    /// Plays the sound with the first player on this search path that succeeds. A player that fails, perhaps because its sound
    /// server is not running, is followed by the next.
    pub async fn play(&self, path: &OsStr) -> Result<(), Error> {
        self.play_with_permit(path, None).await
    }

    /// Like [`play`](Self::play), holding a permit until the player has exited. The permit is released early if a hanging disk
    /// delays the start.
    pub async fn play_with_permit(
        &self,
        path: &OsStr,
        mut permit: Option<OwnedSemaphorePermit>,
    ) -> Result<(), Error> {
        let until = Instant::now() + SOUND_TIMEOUT;
        let mut last = None;
        let (sound, path) = (self.clone(), path.to_owned());
        // The search path or the file may lie on a disk that hangs.
        let place = match self {
            Self::File(file) => format!("{} or of {}", file.display(), path.display()),
            Self::Off | Self::Theme => path.display().to_string(),
        };
        let players = disk::call(place, until, &mut permit, move |_| sound.candidates(&path)).await;
        let players = players.unwrap_or_else(|error| {
            Err(Error::Program { program: "the search for a player".to_owned(), why: error.to_string() })
        });
        for argv in players? {
            let left = until.saturating_duration_since(Instant::now());
            let program = Program {
                argv: argv.clone(),
                directory: PathBuf::from("/"),
                environment: Vec::new(),
                input: Vec::new(),
                output: Output::Ignored,
                timeout: left,
            };
            let Err(why) = program.run_with_permit(&mut permit).await.into_result(left) else {
                return Ok(());
            };
            last = Some(Error::Program { program: argv.into_iter().next().unwrap_or_default(), why });
            if Instant::now() >= until {
                break;
            }
        }
        last.map_or(Ok(()), Err)
    }

    /// The player that would be tried first.
    pub fn player(&self, path: &OsStr) -> Option<String> {
        self.candidates(path).ok()?.into_iter().next()?.into_iter().next()
    }

    /// The command lines that could play the sound, best first; none for [`Off`](Self::Off).
    fn candidates(&self, path: &OsStr) -> Result<Vec<Vec<String>>, Error> {
        let (players, what, install) = match self {
            Self::Off => return Ok(Vec::new()),
            Self::Theme => {
                let mut players = theme_players(path);
                if Path::new(THEME_FILE).is_file() {
                    players.extend(file_players(path, Path::new(THEME_FILE)));
                }
                let install = "canberra-gtk-play, or pw-play or paplay and the sound-theme-freedesktop";
                (players, "the theme's sound".to_owned(), install)
            }
            Self::File(file) => {
                if !file.is_file() {
                    let program = format!("the sound {}", file.display());
                    return Err(Error::Program { program, why: "there is no such file".to_owned() });
                }
                (file_players(path, file), file.display().to_string(), "pw-play, paplay or aplay")
            }
        };
        if players.is_empty() { Err(Error::NoPlayer { what, install }) } else { Ok(players) }
    }
}

fn theme_players(path: &OsStr) -> Vec<Vec<String>> {
    find(path, "canberra-gtk-play")
        .map(|program| vec![program, "-i".to_owned(), THEME_NAME.to_owned()])
        .into_iter()
        .collect()
}

fn file_players(path: &OsStr, file: &Path) -> Vec<Vec<String>> {
    let extension = file.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    // aplay plays unknown formats as raw samples: loud noise.
    let aplay_knows = matches!(extension.as_str(), "wav" | "au" | "voc");
    // Absolute, so that a name that begins with a dash is no option; the players run in `/` anyway.
    let Some(name) = std::path::absolute(file).ok().and_then(|file| file.to_str().map(str::to_owned)) else {
        return Vec::new();
    };
    ["pw-play", "paplay", "aplay", "afplay"]
        .into_iter()
        .filter(|player| *player != "aplay" || aplay_knows)
        .filter_map(|player| find(path, player))
        .map(|program| vec![program, name.clone()])
        .collect()
}

fn find(path: &OsStr, name: &str) -> Option<String> {
    find_own_program(path, name).ok()?.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn with_players(names: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(directory.path().join(name), "").unwrap();
            fs::set_permissions(directory.path().join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        directory
    }

    fn names(players: &[Vec<String>]) -> Vec<&str> {
        players.iter().map(|argv| argv[0].rsplit('/').next().unwrap()).collect()
    }

    #[test]
    fn the_best_player_comes_first_and_noise_never() {
        let bin = with_players(&["aplay", "paplay", "pw-play", "canberra-gtk-play"]);
        let path = bin.path().as_os_str();
        assert_eq!(names(&file_players(path, Path::new("/x.WAV"))), ["pw-play", "paplay", "aplay"]);
        assert_eq!(names(&file_players(path, Path::new("/x.oga"))), ["pw-play", "paplay"]);
        let theme = Sound::Theme.candidates(path).unwrap();
        assert_eq!(theme[0][1..], ["-i", "message-new-instant"]);
        assert!(Sound::Off.candidates(path).unwrap().is_empty());
    }

    #[test]
    fn without_a_player_the_error_says_what_to_install() {
        let bin = with_players(&["x.wav"]);
        let sound = Sound::File(bin.path().join("x.wav"));
        let error = sound.candidates(bin.path().as_os_str()).unwrap_err().to_string();
        assert!(error.ends_with("install pw-play, paplay or aplay"), "{error}");
        assert!(Sound::Theme.candidates(OsStr::new("relative:")).is_err());
        let missing = Sound::File(bin.path().join("y.wav")).candidates(OsStr::new("/")).unwrap_err();
        assert!(missing.to_string().contains("no such file"));
    }
}

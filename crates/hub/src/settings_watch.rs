//! Reports changes of the person's settings to the loop at once. Otherwise the loop notices them with the next message.

use std::path::{Path, PathBuf};

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::message::{Input, LoopEvent};
use crate::watch::Changes;

/// Watches the file and the target of its symlink, until the loop ends or the system cannot watch files.
pub(crate) async fn report(path: PathBuf, inputs: mpsc::Sender<Input>) -> Option<()> {
    loop {
        let (watched, mut changes) = begin(&path).await?;
        // The file may have changed before it was watched.
        inputs.send(Input::Event(LoopEvent::SettingsChanged)).await.ok()?;
        loop {
            let paths = changes.next().await?;
            if paths.iter().any(|path| watched.contains(path)) {
                inputs.send(Input::Event(LoopEvent::SettingsChanged)).await.ok()?;
                // The file may be a symlink to another file now, or its directory may exist now.
                if files(path.clone()).await? != watched {
                    break;
                }
            }
        }
    }
}

/// Starts to watch. A directory may hang, so another thread looks at it.
async fn begin(path: &Path) -> Option<(Vec<PathBuf>, Changes)> {
    let mut watched = files(path.to_owned()).await?;
    loop {
        let changes = Changes::begin(watched.iter())?;
        // A directory may have been created in between.
        let now = files(path.to_owned()).await?;
        if now == watched {
            return Some((watched, changes));
        }
        watched = now;
    }
}

/// The paths to watch: the file, the target of its symlink and, if its directory is missing, the topmost missing directory above
/// it.
async fn files(path: PathBuf) -> Option<Vec<PathBuf>> {
    let look = move || {
        let target = path.canonicalize().ok().filter(|target| *target != path);
        let missing = path.ancestors().skip(1).take_while(|directory| !directory.is_dir());
        let missing = missing.last().map(Path::to_owned);
        [Some(path), target, missing].into_iter().flatten().collect()
    };
    spawn_blocking(look).await.ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use test_support::DEADLINE;
    use tokio::time::timeout;

    use super::*;

    /// A new account has no `~/.config` when its first hub starts.
    #[tokio::test]
    async fn a_file_whose_directories_are_made_later_is_watched() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join(".config/ringer");
        let (sender, mut inputs) = mpsc::channel(16);
        let reporting = tokio::spawn(report(directory.join("config.toml"), sender));
        let mut told = async |times: usize| {
            for _ in 0..times {
                let input = timeout(DEADLINE, inputs.recv()).await.expect("it is told in time");
                assert!(matches!(input, Some(Input::Event(LoopEvent::SettingsChanged))));
            }
        };
        told(1).await;
        for made in [home.path().join(".config"), directory.clone()] {
            fs::create_dir(made).unwrap();
            // One report for the change, and one because the file may have changed before it was watched again.
            told(2).await;
        }
        fs::write(directory.join("config.toml"), "").unwrap();
        told(1).await;
        reporting.abort();
    }
}

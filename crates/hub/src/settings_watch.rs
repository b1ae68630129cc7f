//! Tells the loop at once that the person's settings changed. Without it, that is noticed with the next message.

use std::path::{Path, PathBuf};

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::input::Input;
use crate::message::LoopEvent;
use crate::watch::Changes;

/// Watches the file, and what it is a link to, until the loop ends or the system tells of no changes.
pub(crate) async fn report(path: PathBuf, inputs: mpsc::Sender<Input>) -> Option<()> {
    loop {
        let (watched, mut changes) = begin(&path).await?;
        // It may have changed before it was watched.
        inputs.send(Input::Event(LoopEvent::SettingsChanged)).await.ok()?;
        loop {
            let paths = changes.next().await?;
            if paths.iter().any(|path| watched.contains(path)) {
                inputs.send(Input::Event(LoopEvent::SettingsChanged)).await.ok()?;
                // It may be a link to another file now, or its directory may be there now.
                if files(path.clone()).await? != watched {
                    break;
                }
            }
        }
    }
}

/// A directory may hang, so another thread looks at it.
async fn begin(path: &Path) -> Option<(Vec<PathBuf>, Changes)> {
    let watched = files(path.to_owned()).await?;
    let changes = Changes::begin(watched.iter())?;
    Some((watched, changes))
}

/// The files whose changes count: the file, what it is a link to, and its directory as long as that is not there.
async fn files(path: PathBuf) -> Option<Vec<PathBuf>> {
    let look = move || {
        let target = path.canonicalize().ok().filter(|target| *target != path);
        let directory = path.parent().filter(|directory| !directory.is_dir()).map(Path::to_owned);
        [Some(path), target, directory].into_iter().flatten().collect()
    };
    spawn_blocking(look).await.ok()
}

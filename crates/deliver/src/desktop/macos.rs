//! macOS has no session bus. Its own notifications are not built yet; until then the terminal serves.

use std::time::Duration;

use tokio::sync::mpsc;

use super::{DesktopEvent, Errand, Known};
use crate::error::Error;

/// Answers every request with [`Error::NoBus`].
pub(super) async fn run(
    _address: Option<String>,
    _known: Vec<Known>,
    _deadline: Duration,
    mut errands: mpsc::Receiver<Errand>,
    _events: mpsc::Sender<DesktopEvent>,
) {
    while let Some(errand) = errands.recv().await {
        match errand {
            Errand::Show { popup, by, answer } => {
                drop((popup, by));
                // Nobody waits any more if this fails.
                let _ = answer.send(Err(Error::NoBus("not built for macOS yet".to_owned())));
            }
            Errand::Withdraw(id) => drop(id),
        }
    }
}

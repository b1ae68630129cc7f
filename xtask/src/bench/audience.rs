use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::background::BackgroundProcess;
use crate::failure::Failure;

/// Somebody who waits for a message, again before each that is sent: those who listen end with the first they get.
pub(super) struct Audience {
    listen: Command,
    /// Where the FIFO is that it sleeps at.
    folder: PathBuf,
    listener: Option<BackgroundProcess>,
}

impl Audience {
    pub(super) fn new(mut listen: Command, folder: PathBuf) -> Self {
        listen.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { listen, folder, listener: None }
    }

    /// Somebody waits when this returns, and nothing of the last one is left to do.
    pub(super) fn assemble(&mut self) -> Result<(), Failure> {
        if let Some(last) = self.listener.take() {
            last.finish();
        }
        let listener = BackgroundProcess::spawn(&mut self.listen)?;
        listener.wait_until_asleep(&self.folder)?;
        self.listener = Some(listener);
        Ok(())
    }
}

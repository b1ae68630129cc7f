use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::background::BackgroundProcess;
use crate::failure::Failure;

/// A listener that waits for a message, started again before each that is sent: a listener ends with the first it gets.
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

    /// A listener waits when this returns, and nothing of the last one is left to do.
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

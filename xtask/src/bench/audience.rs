use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::background::BackgroundProcess;
use crate::failure::Failure;

/// A waiting listener. It is restarted for each message, because a listener exits after the first one.
pub(super) struct Audience {
    listen: Command,
    /// The folder with the FIFO that it reads.
    folder: PathBuf,
    listener: Option<BackgroundProcess>,
}

impl Audience {
    pub(super) fn new(mut listen: Command, folder: PathBuf) -> Self {
        listen.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { listen, folder, listener: None }
    }

    /// Starts a listener and waits until it sleeps, after the previous one has exited.
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

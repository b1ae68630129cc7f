use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::service::Service;

/// Somebody who waits for a message, again before each that is sent: those who listen end with the first they get.
pub(super) struct Audience {
    listen: Command,
    /// Where the FIFO is that it sleeps at.
    folder: PathBuf,
    listener: Option<Service>,
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
        let listener = Service::spawn(&mut self.listen)?;
        listener.settle(&self.folder)?;
        self.listener = Some(listener);
        Ok(())
    }
}

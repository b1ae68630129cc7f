//! A screen that no person sees.

use std::process::{Child, Command, Stdio};

use crate::{first_line, started};

/// A display of X11 that ends with the test.
#[derive(Debug)]
pub struct VirtualScreen {
    server: Child,
    display: String,
}

impl VirtualScreen {
    /// Starts it.
    ///
    /// # Panics
    ///
    /// If Xvfb does not start.
    #[track_caller]
    pub fn start() -> Self {
        let server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "640x480x24"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut server = started("Xvfb", server);
        // It prints the number when it listens.
        let display = format!(":{}", first_line(&mut server, "Xvfb"));
        Self { server, display }
    }

    /// Its name, as in `DISPLAY`.
    pub fn display(&self) -> &str {
        &self.display
    }

    /// The process of its server.
    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Kills its server; every connection breaks.
    pub fn stop(&mut self) {
        // It may have ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Drop for VirtualScreen {
    fn drop(&mut self) {
        self.stop();
    }
}

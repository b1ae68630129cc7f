//! A runtime on a thread of its own, for services of tests that have none.

use std::sync::mpsc as blocking;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct BackgroundRuntime {
    handle: Handle,
    _end: oneshot::Sender<()>,
}

impl BackgroundRuntime {
    /// Starts it.
    #[track_caller]
    pub(crate) fn start() -> Self {
        let (end, ended) = oneshot::channel::<()>();
        let (sender, handle) = blocking::sync_channel(1);
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let runtime = runtime.unwrap_or_else(|error| panic!("no runtime: {error}"));
            let _ = sender.send(runtime.handle().clone());
            let _ = runtime.block_on(ended);
        });
        let handle = handle.recv().unwrap_or_else(|_| panic!("no thread for a runtime"));
        Self { handle, _end: end }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }
}

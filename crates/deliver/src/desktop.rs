//! Desktop popups: `org.freedesktop.Notifications` on the session bus; on macOS, its Notification Center.
//!
//! One worker does everything in order, so a popup is never withdrawn before it was shown. Callers only queue; a
//! server that hangs costs them their own deadline and nothing else.
//!
//! macOS can do less: there a popup is shown and that is all. It replaces none, cannot be withdrawn, and Ringer does
//! not learn whether the person clicked it.

#[cfg(not(target_os = "macos"))]
mod bus;
#[cfg(any(target_os = "macos", test))]
mod center;
#[cfg(not(target_os = "macos"))]
mod content;
#[cfg(target_os = "macos")]
mod macos;
mod popup;
#[cfg(not(target_os = "macos"))]
mod popup_table;
#[cfg(not(target_os = "macos"))]
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringer_core::MessageId;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::error::Error;

#[cfg(target_os = "macos")]
use macos as worker;

use popup::DesktopRequest;
pub use popup::{DesktopEvent, DesktopStatus, DisplayedPopup, MAX_POPUPS, Popup, PopupHandle, PreviousPopup};

/// How many requests may wait for the worker. One more waits for room, and is answered with [`Error::Busy`] when its time
/// is over.
pub const MAX_QUEUED: usize = 256;
/// How many events may wait for the hub. Further ones are dropped: the popup is gone, its notification stays unread.
pub const MAX_EVENTS: usize = 256;
/// How long a request may take, its time in the queue included.
pub const REPLY_DEADLINE: Duration = Duration::from_secs(5);

/// A handle to the desktop. Clones share one worker, which ends with the last of them.
#[derive(Debug, Clone)]
pub struct Desktop {
    requests: mpsc::Sender<DesktopRequest>,
    deadline: Duration,
    shown: Arc<AtomicUsize>,
}

impl Desktop {
    /// Starts the worker, which connects at once if there are known popups, else at the first request. Has to be called inside a tokio runtime.
    ///
    /// The address is that of the session bus (`DBUS_SESSION_BUS_ADDRESS`, or `unix:path=$XDG_RUNTIME_DIR/bus`);
    /// without one every request is answered with [`Error::NoBus`]. macOS needs none. The known popups are those an earlier hub has shown
    /// and this one may replace or withdraw, or the person may click. The deadline is [`REPLY_DEADLINE`] outside of tests.
    pub fn new(
        address: Option<String>,
        known: Vec<PreviousPopup>,
        deadline: Duration,
    ) -> (Self, mpsc::Receiver<DesktopEvent>) {
        let (requests, queue) = mpsc::channel(MAX_QUEUED);
        let (events, receiver) = mpsc::channel(MAX_EVENTS);
        let shown = Arc::new(AtomicUsize::new(known.len()));
        tokio::spawn(worker::run(address, known, deadline, queue, events, Arc::clone(&shown)));
        (Self { requests, deadline, shown }, receiver)
    }

    /// How many popups may be on the screen, as far as the server reported. On macOS none are counted: it does not report clicks.
    pub fn shown(&self) -> usize {
        if cfg!(target_os = "macos") { 0 } else { self.shown.load(Ordering::Relaxed) }
    }

    /// Which server would show a popup at that address, in words. Nothing is shown, and no server is started.
    #[cfg(not(target_os = "macos"))]
    pub async fn describe(address: &str, deadline: Duration) -> Result<String, Error> {
        let asked = async { bus::BusConnection::connect(address).await?.describe().await };
        tokio::time::timeout(deadline, asked).await.unwrap_or(Err(Error::NoAnswer(deadline)))
    }

    /// Which server would show a popup. That of macOS is always there.
    #[cfg(target_os = "macos")]
    #[expect(clippy::unused_async, reason = "elsewhere the server is asked")]
    pub async fn describe(_address: &str, _deadline: Duration) -> Result<String, Error> {
        Ok("Notification Center shows banners".to_owned())
    }

    /// Whether the server at that address keeps popups back, because the person does not want to be disturbed. `false` where
    /// it does not say.
    pub async fn is_paused(address: &str, deadline: Duration) -> bool {
        #[cfg(not(target_os = "macos"))]
        let asked = async {
            match bus::BusConnection::connect(address).await {
                Ok(connection) => connection.is_paused().await,
                Err(_) => false,
            }
        };
        #[cfg(target_os = "macos")]
        let asked = async {
            let _ = address;
            false
        };
        tokio::time::timeout(deadline, asked).await.unwrap_or(false)
    }

    /// Uses another bus from now on, if it has a notification server and the present one has none.
    pub async fn use_bus(&self, address: String) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        let sent = self.requests.send(DesktopRequest::UseBus { address, answer }).await;
        let ended = || Error::Desktop("its worker has ended".to_owned());
        sent.map_err(|_| ended())?;
        answered.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Where popups are shown at present. Nothing is shown, and no server is started.
    pub async fn status(&self) -> DesktopStatus {
        let (answer, answered) = oneshot::channel();
        // If it cannot be sent, the answer is dropped with it.
        let _ = self.requests.send(DesktopRequest::Describe { answer }).await;
        answered.await.unwrap_or_else(|_| DesktopStatus {
            bus: None,
            server: Err(Error::Desktop("its worker has ended".to_owned())),
        })
    }

    /// Shows a popup, in place of the last one with the same key (on macOS beside it). Gives where it is shown, to be
    /// kept for [`Desktop::new`].
    ///
    /// A caller that drops this future no longer wants the popup: it is not shown, or taken back where that can be done.
    pub async fn show(&self, popup: Popup) -> Result<DisplayedPopup, Error> {
        let by = Instant::now() + self.deadline;
        let (answer, answered) = oneshot::channel();
        match timeout_at(by, self.requests.send(DesktopRequest::Show { popup, by, answer })).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(Error::Desktop("its worker has ended".to_owned())),
            Err(_) => return Err(Error::Busy(MAX_QUEUED)),
        }
        match timeout_at(by, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(Error::Desktop("its worker has ended".to_owned())),
            Err(_) => Err(Error::NoAnswer(self.deadline)),
        }
    }

    /// Takes a popup back, after everything that was asked for before, even if the caller drops the answer: it is gone, as
    /// unknown ones and those of another server are, or it could not be taken back, as on macOS. A caller who waits also
    /// waits for room in the queue.
    pub fn withdraw(&self, id: MessageId) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let (answer, answered) = oneshot::channel();
        let refused = self.requests.try_send(DesktopRequest::Withdraw { id, answer }).err();
        let requests = self.requests.clone();
        async move {
            let sent = match refused {
                Some(request) => requests.send(request.into_inner()).await.is_ok(),
                None => true,
            };
            let unanswered = if cfg!(target_os = "macos") {
                Error::CannotWithdraw
            } else {
                Error::Desktop("its worker has ended".to_owned())
            };
            if sent { answered.await.unwrap_or(Err(unanswered)) } else { Err(unanswered) }
        }
    }
}

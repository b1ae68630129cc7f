//! Desktop popups: `org.freedesktop.Notifications` on the session bus; on macOS, its Notification Center.
//!
//! One worker handles all requests in order, so a popup is never withdrawn before it was shown. Callers only queue requests; a
//! server that hangs costs them their own deadline and nothing else.
//!
//! On macOS a popup can only be shown. It replaces no other one, cannot be withdrawn, and Ringer does not learn whether the
//! person clicked it.

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

/// The length of the request queue. A further request waits for room, and gets [`Error::Busy`] at its deadline.
pub const MAX_QUEUED: usize = 256;
/// The length of the event queue. Further events are dropped: the popup is gone, its notification stays unread.
pub const MAX_EVENTS: usize = 256;
/// The deadline of a request, including its time in the queue.
pub const REPLY_DEADLINE: Duration = Duration::from_secs(5);

/// A handle to the desktop. Clones share one worker, which ends with the last of them.
#[derive(Debug, Clone)]
pub struct Desktop {
    requests: mpsc::Sender<DesktopRequest>,
    deadline: Duration,
    popup_count: Arc<AtomicUsize>,
}

impl Desktop {
    /// Starts the worker, which connects at once if there are known popups, else at the first request. Must be called inside a
    /// tokio runtime.
    ///
    /// `address` is the session bus (`DBUS_SESSION_BUS_ADDRESS`, or `unix:path=$XDG_RUNTIME_DIR/bus`); without one every request
    /// fails with [`Error::NoBus`]. macOS needs none. `known` are the popups of an earlier hub, which this one may replace or
    /// withdraw, and which the person may click. `deadline` is [`REPLY_DEADLINE`] outside of tests.
    pub fn new(
        address: Option<String>,
        known: Vec<PreviousPopup>,
        deadline: Duration,
    ) -> (Self, mpsc::Receiver<DesktopEvent>) {
        let (requests, queue) = mpsc::channel(MAX_QUEUED);
        let (events, receiver) = mpsc::channel(MAX_EVENTS);
        let popup_count = Arc::new(AtomicUsize::new(known.len()));
        tokio::spawn(worker::run(address, known, deadline, queue, events, Arc::clone(&popup_count)));
        (Self { requests, deadline, popup_count }, receiver)
    }

    /// The popups on the screen whose click this hub would miss if it ended. Always 0 on macOS, which does not report clicks.
    pub fn popup_count(&self) -> usize {
        if cfg!(target_os = "macos") { 0 } else { self.popup_count.load(Ordering::Relaxed) }
    }

    /// Describes the server that would show a popup at that address. Shows nothing and starts no server.
    #[cfg(not(target_os = "macos"))]
    pub async fn describe(address: &str, deadline: Duration) -> Result<String, Error> {
        let query = async { bus::BusConnection::connect(address).await?.describe().await };
        tokio::time::timeout(deadline, query).await.unwrap_or(Err(Error::NoAnswer(deadline)))
    }

    /// Describes the server that would show a popup.
    #[cfg(target_os = "macos")]
    #[expect(clippy::unused_async, reason = "elsewhere the server is asked")]
    pub async fn describe(_address: &str, _deadline: Duration) -> Result<String, Error> {
        Ok("Notification Center shows banners".to_owned())
    }

    /// Returns true if the server at that address is in do-not-disturb mode, and false if it does not say.
    pub async fn is_paused(address: &str, deadline: Duration) -> bool {
        #[cfg(not(target_os = "macos"))]
        let query = async {
            match bus::BusConnection::connect(address).await {
                Ok(connection) => connection.is_paused().await,
                Err(_) => false,
            }
        };
        #[cfg(target_os = "macos")]
        let query = async {
            let _ = address;
            false
        };
        tokio::time::timeout(deadline, query).await.unwrap_or(false)
    }

    /// Switches to another bus, if it has a notification server and the current one has none.
    pub async fn use_bus(&self, address: String) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        let sent = self.requests.send(DesktopRequest::UseBus { address, answer }).await;
        let ended = || Error::Desktop("its worker has ended".to_owned());
        sent.map_err(|_| ended())?;
        answered.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Describes where popups are shown. Shows nothing and starts no server.
    pub async fn status(&self) -> DesktopStatus {
        let (answer, answered) = oneshot::channel();
        // If it cannot be sent, the answer is dropped with it.
        let _ = self.requests.send(DesktopRequest::Describe { answer }).await;
        answered.await.unwrap_or_else(|_| DesktopStatus {
            bus: None,
            server: Err(Error::Desktop("its worker has ended".to_owned())),
        })
    }

    /// Shows a popup, in place of the last one with the same key (on macOS beside it). The caller keeps the result for
    /// [`Desktop::new`] of the next hub.
    ///
    /// If the caller drops this future, the popup is not shown, or withdrawn where that is possible.
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

    /// Closes a popup, after all requests that were queued before. It is queued at once where there is room, so the future may be
    /// dropped. Succeeds for unknown popups and those of another server; fails on macOS.
    pub fn withdraw(&self, id: MessageId) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let (answer, answered) = oneshot::channel();
        let unsent = self.requests.try_send(DesktopRequest::Withdraw { id, answer }).err();
        let requests = self.requests.clone();
        async move {
            let sent = match unsent {
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

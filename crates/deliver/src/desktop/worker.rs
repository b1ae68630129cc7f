//! The worker: handles all requests in order, one at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringer_core::MessageId;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use zbus::message::Sequence;

use crate::error::Error;

use super::bus::{BusConnection, BusSignal};
use super::content::PopupContent;
use super::popup::{
    DesktopEvent, DesktopRequest, DesktopStatus, DisplayedPopup, Popup, PopupHandle, PreviousPopup,
};
use super::popup_table::{Click, PopupTable};

/// How many `Notify` calls may be unanswered. Beyond that all of them are aborted: a server that recovers later shows those
/// popups for good.
const MAX_UNANSWERED: usize = 16;

/// How long a bus may take to name its notification server. A popup has 5 s in all, so most of that is left for showing it.
const PROBE_DEADLINE: Duration = Duration::from_secs(1);

/// Runs until the last [`Desktop`](super::Desktop) is dropped.
pub(super) async fn run(
    address: Option<String>,
    known: Vec<PreviousPopup>,
    deadline: Duration,
    mut requests: mpsc::Receiver<DesktopRequest>,
    events: mpsc::Sender<DesktopEvent>,
    popup_count: Arc<AtomicUsize>,
) {
    let with_offer: Vec<PreviousPopup> =
        known.iter().filter(|popup| popup.offer.is_some()).cloned().collect();
    let mut worker = Worker {
        address,
        deadline,
        bus: None,
        table: PopupTable::new(known),
        in_flight: JoinSet::new(),
        events,
    };
    if worker.table.len() > 0 {
        // The person may click a popup of an earlier hub before this one shows any. If the connection fails, the next popup
        // retries it.
        let _ = timeout(deadline, worker.take_over(with_offer)).await;
    }
    loop {
        popup_count.store(worker.table.len(), Ordering::Relaxed);
        tokio::select! {
            // Signals come first: one may be about the popup that a request replaces.
            biased;
            signal = next_signal(&mut worker.bus) => match signal {
                Some((at, signal)) => worker.handle_signal(at, signal),
                None => worker.bus = None,
            },
            Some(finished) = worker.in_flight.join_next(), if !worker.in_flight.is_empty() => {
                if let Ok(Some(handle)) = finished {
                    // Shown after the caller had given up and used another channel: close it.
                    let _ = worker.close(&handle).await;
                }
            }
            request = requests.recv() => match request {
                Some(DesktopRequest::Show { popup, by, answer }) => {
                    if answer.is_closed() {
                        continue;
                    }
                    let id = popup.id.clone();
                    if let Err(Ok(_)) = answer.send(worker.show(popup, by).await) {
                        // The caller gave up meanwhile and uses another channel instead.
                        let _ = worker.withdraw(&id).await;
                    }
                }
                Some(DesktopRequest::Withdraw { id, answer }) => {
                    // The caller may have dropped the receiver.
                    let _ = answer.send(worker.withdraw(&id).await);
                }
                Some(DesktopRequest::UseBus { address, answer }) => {
                    let _ = answer.send(worker.use_bus(address).await);
                }
                Some(DesktopRequest::Describe { answer }) => {
                    let server = worker.describe().await;
                    let _ = answer.send(DesktopStatus { bus: worker.address.clone(), server });
                }
                None => return,
            },
        }
    }
}

async fn next_signal(bus: &mut Option<BusConnection>) -> Option<(Sequence, BusSignal)> {
    match bus {
        Some(bus) => bus.next_signal().await,
        None => std::future::pending().await,
    }
}

struct Worker {
    address: Option<String>,
    deadline: Duration,
    bus: Option<BusConnection>,
    table: PopupTable,
    /// Unanswered `Notify` calls. One whose caller has given up returns the handle of its popup.
    in_flight: JoinSet<Option<PopupHandle>>,
    events: mpsc::Sender<DesktopEvent>,
}

impl Worker {
    /// Connects, to get clicks on the popups of an earlier hub. A server like dunst would report them only to that hub's
    /// connection, so popups that offer answers are sent again, each replacing itself.
    async fn take_over(&mut self, with_offer: Vec<PreviousPopup>) -> Result<(), Error> {
        self.ensure_connected().await?;
        let Some(bus) = self.bus.as_ref().filter(|_| !with_offer.is_empty()) else { return Ok(()) };
        let Some(server) = bus.server() else { return Ok(()) };
        if !bus.reports_to_sender_only().await {
            return Ok(());
        }
        for popup in with_offer.into_iter().filter(|popup| popup.handle.server == server) {
            let Some(content) = popup.offer.as_deref().and_then(PopupContent::from_offer) else { continue };
            let answers = content.answers.clone();
            let (number, at) = bus
                .notify(content, Some(popup.handle.number))
                .await
                .map_err(|error| Error::Desktop(error.to_string()))?;
            let handle = PopupHandle { number, server: server.clone() };
            self.table.insert(popup.key, popup.id, handle, (Some(at), Some(answers)));
        }
        Ok(())
    }

    async fn show(&mut self, popup: Popup, by: Instant) -> Result<DisplayedPopup, Error> {
        let showing = async {
            match self.try_show(&popup).await {
                // The server or the bus went away since the last popup. Retry once with the current one.
                Err(ShowError::Gone) => match self.try_show(&popup).await {
                    Err(ShowError::Gone) => Err(Error::Desktop("it has gone".to_owned())),
                    Err(ShowError::Failed(error)) => Err(error),
                    Ok(displayed) => Ok(displayed),
                },
                Err(ShowError::Failed(error)) => Err(error),
                Ok(displayed) => Ok(displayed),
            }
        };
        timeout_at(by, showing).await.unwrap_or(Err(Error::NoAnswer(self.deadline)))
    }

    async fn try_show(&mut self, popup: &Popup) -> Result<DisplayedPopup, ShowError> {
        self.ensure_connected().await.map_err(ShowError::Failed)?;
        let capabilities = match &mut self.bus {
            Some(bus) => bus.capabilities().await,
            None => return Err(ShowError::Gone),
        };
        let capabilities = capabilities.map_err(|error| self.failed(&error))?;
        let server = self.bus.as_ref().and_then(BusConnection::server).ok_or(ShowError::Gone)?;
        self.table.keep_only(&server);
        let replaces = self.table.number(&popup.key, &server);
        let content = popup.content(capabilities);
        let (answers, offer) = (content.answers.clone(), content.offer());
        let notifying = match &self.bus {
            Some(bus) => bus.notify(content, replaces),
            None => return Err(ShowError::Gone),
        };
        let notified = self.spawn_notify(notifying, server.clone()).await.map_err(|_| ShowError::Gone)?;
        let (number, at) = notified.map_err(|error| self.failed(&error))?;
        let handle = PopupHandle { number, server };
        self.table.insert(popup.key.clone(), popup.id.clone(), handle.clone(), (Some(at), Some(answers)));
        Ok(DisplayedPopup { handle, offer })
    }

    /// Sends the call in a separate task, which continues when the caller has given up.
    fn spawn_notify(
        &mut self,
        notifying: impl Future<Output = zbus::Result<(u32, Sequence)>> + Send + 'static,
        server: String,
    ) -> oneshot::Receiver<zbus::Result<(u32, Sequence)>> {
        if self.in_flight.len() >= MAX_UNANSWERED {
            self.in_flight.abort_all();
        }
        let (answer, answered) = oneshot::channel();
        self.in_flight.spawn(async move {
            match answer.send(notifying.await) {
                Err(Ok((number, _))) => Some(PopupHandle { number, server }),
                _ => None,
            }
        });
        answered
    }

    /// A popup that cannot be closed expires by itself, or the next hub tries again.
    async fn withdraw(&mut self, id: &MessageId) -> Result<(), Error> {
        match self.table.take(id) {
            Some(handle) => self.close(&handle).await,
            None => Ok(()),
        }
    }

    async fn close(&mut self, handle: &PopupHandle) -> Result<(), Error> {
        let deadline = self.deadline;
        let close = async {
            self.ensure_connected().await?;
            if let Some(bus) = self.bus.as_ref().filter(|bus| bus.server().as_ref() == Some(&handle.server)) {
                bus.close(handle.number).await.map_err(|error| Error::Desktop(error.to_string()))?;
            }
            Ok::<(), Error>(())
        };
        timeout(deadline, close).await.unwrap_or(Err(Error::NoAnswer(deadline)))
    }

    async fn describe(&mut self) -> Result<String, Error> {
        let deadline = self.deadline.min(PROBE_DEADLINE);
        let described = async {
            self.ensure_connected().await?;
            match &self.bus {
                Some(bus) => bus.describe().await,
                None => Err(Error::NoBus("it has gone".to_owned())),
            }
        };
        timeout(deadline, described).await.unwrap_or(Err(Error::NoAnswer(deadline)))
    }

    async fn use_bus(&mut self, address: String) -> Result<(), Error> {
        if self.describe().await.is_ok() {
            return Err(Error::Desktop("the present session bus works".to_owned()));
        }
        let deadline = self.deadline.min(PROBE_DEADLINE);
        let connected = async {
            let bus = BusConnection::connect(&address).await?;
            bus.describe().await?;
            Ok::<BusConnection, Error>(bus)
        };
        self.bus = Some(timeout(deadline, connected).await.unwrap_or(Err(Error::NoAnswer(deadline)))?);
        self.address = Some(address);
        Ok(())
    }

    /// Connects if necessary, and handles the queued signals.
    async fn ensure_connected(&mut self) -> Result<(), Error> {
        if self.bus.as_ref().is_some_and(BusConnection::is_closed) {
            self.bus = None;
        }
        if self.bus.is_none() {
            let address =
                self.address.as_deref().ok_or_else(|| Error::NoBus("no address is known".to_owned()))?;
            self.bus = Some(BusConnection::connect(address).await?);
        }
        while let Some((at, signal)) = self.bus.as_mut().and_then(BusConnection::queued_signal) {
            self.handle_signal(at, signal);
        }
        Ok(())
    }

    fn handle_signal(&mut self, at: Sequence, signal: BusSignal) {
        let now = std::time::Instant::now();
        let event = match signal {
            BusSignal::Closed(handle, reason) => {
                self.table.closed(&handle, reason, at, now).map(DesktopEvent::Dismissed)
            }
            BusSignal::Action(handle, action) => {
                self.table.clicked(&handle, &action, at, now).map(|click| match click {
                    Click::Show(id, token) => DesktopEvent::Show(id, token),
                    Click::Answer(id, answer) => DesktopEvent::Answer(id, answer),
                })
            }
            BusSignal::Token(handle, token) => {
                self.table.token(&handle, token);
                None
            }
            BusSignal::Owner(owner) => {
                if let Some(bus) = &mut self.bus {
                    bus.set_owner(owner);
                }
                None
            }
        };
        if let Some(event) = event {
            // If the hub does not read its events, they are dropped; see MAX_EVENTS.
            let _ = self.events.try_send(event);
        }
    }

    /// Classifies an error, and forgets a server or bus that has gone.
    fn failed(&mut self, error: &zbus::Error) -> ShowError {
        use zbus::fdo::Error as Bus;
        if let zbus::Error::InputOutput(_) = error {
            self.bus = None;
            return ShowError::Gone;
        }
        if let zbus::Error::FDO(inner) = error
            && matches!(**inner, Bus::ServiceUnknown(_) | Bus::NameHasNoOwner(_) | Bus::NoReply(_))
            && let Some(bus) = &mut self.bus
            && bus.server().is_some()
        {
            bus.set_owner(None);
            return ShowError::Gone;
        }
        ShowError::Failed(Error::Desktop(ringer_term::sanitise_line(&error.to_string())))
    }
}

/// Why an attempt to show a popup failed.
enum ShowError {
    /// The server or the bus has gone; there may be another one.
    Gone,
    Failed(Error),
}

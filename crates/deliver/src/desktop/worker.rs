//! The task that talks to the desktop: all requests in order, one at a time.

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

/// How many popups may be asked for without an answer. When there are more, all of those are forgotten: a server that
/// wakes up after that shows them for good.
const MAX_UNANSWERED: usize = 16;

/// How long a bus may take to name its notification server. A popup that waits for it has 5 s in all, so most of that
/// is left for showing it.
const PROBE_DEADLINE: Duration = Duration::from_secs(1);

/// Works until the last handle is gone.
pub(super) async fn run(
    address: Option<String>,
    known: Vec<PreviousPopup>,
    deadline: Duration,
    mut requests: mpsc::Receiver<DesktopRequest>,
    events: mpsc::Sender<DesktopEvent>,
    shown: Arc<AtomicUsize>,
) {
    let offering: Vec<PreviousPopup> = known.iter().filter(|popup| popup.offer.is_some()).cloned().collect();
    let mut worker =
        Worker { address, deadline, bus: None, table: PopupTable::new(known), late: JoinSet::new(), events };
    if worker.table.len() > 0 {
        // The person may click on a popup of an earlier hub before this one shows any. A bus that is not there now is
        // tried again with the next popup.
        let _ = timeout(deadline, worker.take_over(offering)).await;
    }
    loop {
        shown.store(worker.table.len(), Ordering::Relaxed);
        tokio::select! {
            // Signals come first: it may be about the popup that is to be replaced.
            biased;
            signal = next_signal(&mut worker.bus) => match signal {
                Some((at, signal)) => worker.handle_signal(at, signal),
                None => worker.bus = None,
            },
            Some(answered) = worker.late.join_next(), if !worker.late.is_empty() => {
                if let Ok(Some(shown)) = answered {
                    // Shown after its caller had given up and used another channel: close it.
                    let _ = worker.close(&shown).await;
                }
            }
            request = requests.recv() => match request {
                Some(DesktopRequest::Show { popup, by, answer }) => {
                    if answer.is_closed() {
                        continue;
                    }
                    let id = popup.id.clone();
                    if let Err(Ok(_)) = answer.send(worker.show(popup, by).await) {
                        // The caller gave up meanwhile and uses another channel: two popups would be one too many.
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
    /// Popups that were asked for. Each ends with where it is shown if its caller had given up.
    late: JoinSet<Option<PopupHandle>>,
    events: mpsc::Sender<DesktopEvent>,
}

impl Worker {
    /// Connects, so that clicks on the popups of an earlier hub are heard. A server that would report them to that hub only
    /// is shown those that offer answers once more, each in its own place.
    async fn take_over(&mut self, offering: Vec<PreviousPopup>) -> Result<(), Error> {
        self.ensure_connected().await?;
        let Some(bus) = self.bus.as_ref().filter(|_| !offering.is_empty()) else { return Ok(()) };
        let Some(server) = bus.server() else { return Ok(()) };
        if !bus.reports_to_sender_only().await {
            return Ok(());
        }
        for popup in offering.into_iter().filter(|popup| popup.shown.server == server) {
            let Some(content) = popup.offer.as_deref().and_then(PopupContent::of_offer) else { continue };
            let answers = content.answers.clone();
            let (number, at) = bus
                .notify(content, Some(popup.shown.number))
                .await
                .map_err(|error| Error::Desktop(error.to_string()))?;
            let shown = PopupHandle { number, server: server.clone() };
            self.table.insert(popup.key, popup.id, shown, (Some(at), Some(answers)));
        }
        Ok(())
    }

    async fn show(&mut self, popup: Popup, by: Instant) -> Result<DisplayedPopup, Error> {
        let shown = async {
            match self.try_show(&popup).await {
                // The server, or the bus, went away between two popups. Once more, with what is there now.
                Err(Attempt::Gone) => match self.try_show(&popup).await {
                    Err(Attempt::Gone) => Err(Error::Desktop("it has gone".to_owned())),
                    Err(Attempt::Failed(error)) => Err(error),
                    Ok(shown) => Ok(shown),
                },
                Err(Attempt::Failed(error)) => Err(error),
                Ok(shown) => Ok(shown),
            }
        };
        timeout_at(by, shown).await.unwrap_or(Err(Error::NoAnswer(self.deadline)))
    }

    async fn try_show(&mut self, popup: &Popup) -> Result<DisplayedPopup, Attempt> {
        self.ensure_connected().await.map_err(Attempt::Failed)?;
        let capabilities = match &mut self.bus {
            Some(bus) => bus.capabilities().await,
            None => return Err(Attempt::Gone),
        };
        let capabilities = capabilities.map_err(|error| self.failed(&error))?;
        let server = self.bus.as_ref().and_then(BusConnection::server).ok_or(Attempt::Gone)?;
        self.table.keep_only(&server);
        let replaces = self.table.number(&popup.key, &server);
        let content = popup.content(capabilities);
        let (answers, offer) = (content.answers.clone(), content.offer());
        let notifying = match &self.bus {
            Some(bus) => bus.notify(content, replaces),
            None => return Err(Attempt::Gone),
        };
        let notified = self.ask(notifying, server.clone()).await.map_err(|_| Attempt::Gone)?;
        let (number, at) = notified.map_err(|error| self.failed(&error))?;
        let shown = PopupHandle { number, server };
        self.table.insert(popup.key.clone(), popup.id.clone(), shown.clone(), (Some(at), Some(answers)));
        Ok(DisplayedPopup { shown, offer })
    }

    /// Sends the call in a separate task, which continues when the caller has given up.
    fn ask(
        &mut self,
        notifying: impl Future<Output = zbus::Result<(u32, Sequence)>> + Send + 'static,
        server: String,
    ) -> oneshot::Receiver<zbus::Result<(u32, Sequence)>> {
        if self.late.len() >= MAX_UNANSWERED {
            self.late.abort_all();
        }
        let (answer, answered) = oneshot::channel();
        self.late.spawn(async move {
            match answer.send(notifying.await) {
                Err(Ok((number, _))) => Some(PopupHandle { number, server }),
                _ => None,
            }
        });
        answered
    }

    /// One that cannot be taken back runs out of time by itself, or the next hub tries again.
    async fn withdraw(&mut self, id: &MessageId) -> Result<(), Error> {
        match self.table.take(id) {
            Some(shown) => self.close(&shown).await,
            None => Ok(()),
        }
    }

    async fn close(&mut self, shown: &PopupHandle) -> Result<(), Error> {
        let deadline = self.deadline;
        let close = async {
            self.ensure_connected().await?;
            if let Some(bus) = self.bus.as_ref().filter(|bus| bus.server().as_ref() == Some(&shown.server)) {
                bus.close(shown.number).await.map_err(|error| Error::Desktop(error.to_string()))?;
            }
            Ok::<(), Error>(())
        };
        timeout(deadline, close).await.unwrap_or(Err(Error::NoAnswer(deadline)))
    }

    /// Which server would show a popup.
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

    /// Makes sure that there is a connection, and handles the signals that wait.
    async fn ensure_connected(&mut self) -> Result<(), Error> {
        if self.bus.as_ref().is_some_and(BusConnection::is_closed) {
            self.bus = None;
        }
        if self.bus.is_none() {
            let address =
                self.address.as_deref().ok_or_else(|| Error::NoBus("no address is known".to_owned()))?;
            self.bus = Some(BusConnection::connect(address).await?);
        }
        while let Some((at, signal)) = self.bus.as_mut().and_then(BusConnection::waiting_signal) {
            self.handle_signal(at, signal);
        }
        Ok(())
    }

    fn handle_signal(&mut self, at: Sequence, signal: BusSignal) {
        let now = std::time::Instant::now();
        let event = match signal {
            BusSignal::Closed(shown, reason) => {
                self.table.closed(&shown, reason, at, now).map(DesktopEvent::Dismissed)
            }
            BusSignal::Action(shown, action) => {
                self.table.clicked(&shown, &action, at, now).map(|click| match click {
                    Click::Show(id, token) => DesktopEvent::Show(id, token),
                    Click::Answer(id, answer) => DesktopEvent::Answer(id, answer),
                })
            }
            BusSignal::Token(shown, token) => {
                self.table.token(&shown, token);
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
            // A hub that does not read its events loses them; see MAX_EVENTS.
            let _ = self.events.try_send(event);
        }
    }

    fn failed(&mut self, error: &zbus::Error) -> Attempt {
        use zbus::fdo::Error as Bus;
        if let zbus::Error::InputOutput(_) = error {
            self.bus = None;
            return Attempt::Gone;
        }
        if let zbus::Error::FDO(inner) = error
            && matches!(**inner, Bus::ServiceUnknown(_) | Bus::NameHasNoOwner(_) | Bus::NoReply(_))
            && let Some(bus) = &mut self.bus
            && bus.server().is_some()
        {
            bus.set_owner(None);
            return Attempt::Gone;
        }
        Attempt::Failed(Error::Desktop(ringer_term::sanitise_line(&error.to_string())))
    }
}

/// How an attempt failed.
enum Attempt {
    /// The server or the bus is gone; another may be there.
    Gone,
    Failed(Error),
}

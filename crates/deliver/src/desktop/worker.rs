//! The one that talks to the desktop: everything in order, one thing at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringer_core::MessageId;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use zbus::message::Sequence;

use super::link::{Link, Signal};
use super::table::Table;
use super::{DesktopEvent, DesktopStatus, Errand, Known, Popup, Shown};
use crate::error::Error;

/// How many popups may be asked for without an answer. When there are more, all of those are forgotten: a server that
/// wakes up after that shows them for good.
const MAX_UNANSWERED: usize = 16;

/// How long a bus may take to say who shows popups on it. A popup that waits for it has 5 s in all.
const PROBE_DEADLINE: Duration = Duration::from_secs(1);

/// Works until the last handle is gone.
pub(super) async fn run(
    address: Option<String>,
    known: Vec<Known>,
    deadline: Duration,
    mut errands: mpsc::Receiver<Errand>,
    events: mpsc::Sender<DesktopEvent>,
    shown: Arc<AtomicUsize>,
) {
    let mut worker =
        Worker { address, deadline, link: None, table: Table::new(known), late: JoinSet::new(), events };
    if worker.table.len() > 0 {
        // The person may click on a popup of an earlier hub before this one shows any. (dunst tells of that only to the
        // connection that showed it.) A bus that is not there now is tried again with the next popup.
        let _ = timeout(deadline, worker.link()).await;
    }
    loop {
        shown.store(worker.table.len(), Ordering::Relaxed);
        tokio::select! {
            // What was heard comes first: it may be about the popup that is to be replaced.
            biased;
            heard = hear(&mut worker.link) => match heard {
                Some((at, signal)) => worker.note(at, signal),
                None => worker.link = None,
            },
            Some(answered) = worker.late.join_next(), if !worker.late.is_empty() => {
                if let Ok(Some(shown)) = answered {
                    // Shown at last, when its caller had long taken another way. There is nobody to tell.
                    let _ = worker.close(&shown).await;
                }
            }
            errand = errands.recv() => match errand {
                Some(Errand::Show { popup, by, answer }) => {
                    if answer.is_closed() {
                        continue;
                    }
                    let id = popup.id.clone();
                    if let Err(Ok(_)) = answer.send(worker.show(popup, by).await) {
                        // The caller gave up meanwhile and takes another way: two popups would be one too many.
                        let _ = worker.withdraw(&id).await;
                    }
                }
                Some(Errand::Withdraw { id, answer }) => {
                    // Perhaps nobody waits.
                    let _ = answer.send(worker.withdraw(&id).await);
                }
                Some(Errand::UseBus { address, answer }) => {
                    let _ = answer.send(worker.use_bus(address).await);
                }
                Some(Errand::Describe { answer }) => {
                    let server = worker.describe().await;
                    let _ = answer.send(DesktopStatus { bus: worker.address.clone(), server });
                }
                None => return,
            },
        }
    }
}

async fn hear(link: &mut Option<Link>) -> Option<(Sequence, Signal)> {
    match link {
        Some(link) => link.hear().await,
        None => std::future::pending().await,
    }
}

struct Worker {
    address: Option<String>,
    deadline: Duration,
    link: Option<Link>,
    table: Table,
    /// Popups that were asked for. Each ends with where it is shown if nobody waited for that any more.
    late: JoinSet<Option<Shown>>,
    events: mpsc::Sender<DesktopEvent>,
}

impl Worker {
    async fn show(&mut self, popup: Popup, by: Instant) -> Result<Shown, Error> {
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

    async fn try_show(&mut self, popup: &Popup) -> Result<Shown, Attempt> {
        self.link().await.map_err(Attempt::Failed)?;
        let abilities = match &mut self.link {
            Some(link) => link.abilities().await,
            None => return Err(Attempt::Gone),
        };
        let abilities = abilities.map_err(|error| self.failed(&error))?;
        let server = self.link.as_ref().and_then(Link::server).ok_or(Attempt::Gone)?;
        self.table.keep_only(&server);
        let replaces = self.table.number(&popup.key, &server);
        let notifying = match &self.link {
            Some(link) => link.notify(popup.wording(abilities), replaces),
            None => return Err(Attempt::Gone),
        };
        let notified = self.ask(notifying, server.clone()).await.map_err(|_| Attempt::Gone)?;
        let (number, at) = notified.map_err(|error| self.failed(&error))?;
        let shown = Shown { number, server };
        self.table.insert(popup.key.clone(), popup.id.clone(), shown.clone(), Some(at));
        Ok(shown)
    }

    /// Asks in a task of its own, which goes on when the asker has given up.
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
                Err(Ok((number, _))) => Some(Shown { number, server }),
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

    async fn close(&mut self, shown: &Shown) -> Result<(), Error> {
        let deadline = self.deadline;
        let close = async {
            self.link().await?;
            if let Some(link) =
                self.link.as_ref().filter(|link| link.server().as_ref() == Some(&shown.server))
            {
                link.close(shown.number).await.map_err(|error| Error::Desktop(error.to_string()))?;
            }
            Ok::<(), Error>(())
        };
        timeout(deadline, close).await.unwrap_or(Err(Error::NoAnswer(deadline)))
    }

    /// Who would show a popup.
    async fn describe(&mut self) -> Result<String, Error> {
        let deadline = self.deadline.min(PROBE_DEADLINE);
        let described = async {
            self.link().await?;
            match &self.link {
                Some(link) => link.describe().await,
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
            let link = Link::connect(&address).await?;
            link.describe().await?;
            Ok::<Link, Error>(link)
        };
        self.link = Some(timeout(deadline, connected).await.unwrap_or(Err(Error::NoAnswer(deadline)))?);
        self.address = Some(address);
        Ok(())
    }

    /// Makes sure that there is a connection, and that what it has heard is known.
    async fn link(&mut self) -> Result<(), Error> {
        if self.link.as_ref().is_some_and(Link::is_closed) {
            self.link = None;
        }
        if self.link.is_none() {
            let address =
                self.address.as_deref().ok_or_else(|| Error::NoBus("no address is known".to_owned()))?;
            self.link = Some(Link::connect(address).await?);
        }
        while let Some((at, signal)) = self.link.as_mut().and_then(Link::heard) {
            self.note(at, signal);
        }
        Ok(())
    }

    fn note(&mut self, at: Sequence, signal: Signal) {
        let now = std::time::Instant::now();
        let event = match signal {
            Signal::Closed(shown, reason) => {
                self.table.closed(&shown, reason, at, now).map(DesktopEvent::Dismissed)
            }
            Signal::Action(shown, action) if action == "default" || action == "show" => {
                self.table.clicked(&shown, at, now).map(|(id, token)| DesktopEvent::Show(id, token))
            }
            Signal::Action(..) => None,
            Signal::Token(shown, token) => {
                self.table.token(&shown, token);
                None
            }
            Signal::Owner(owner) => {
                if let Some(link) = &mut self.link {
                    link.owned_by(owner);
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
            self.link = None;
            return Attempt::Gone;
        }
        if let zbus::Error::FDO(inner) = error
            && matches!(**inner, Bus::ServiceUnknown(_) | Bus::NameHasNoOwner(_) | Bus::NoReply(_))
            && let Some(link) = &mut self.link
            && link.server().is_some()
        {
            link.owned_by(None);
            return Attempt::Gone;
        }
        Attempt::Failed(Error::Desktop(ringer_term::sanitise_line(&error.to_string())))
    }
}

/// How an attempt failed.
enum Attempt {
    /// Whoever was there is gone; somebody else may be there.
    Gone,
    Failed(Error),
}

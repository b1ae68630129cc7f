//! The hub's state in the process of a command, for when no hub runs or the one that runs does not answer.
//!
//! It has no socket, no threads and no deliveries. Requests go through the same code as in a hub, on what the last hub stored and
//! the messages since. Only the person's marks are written, into the journal; the next hub applies them.

use std::time::Duration;

use ringer_config::Environment;
use ringer_core::Now;
use ringer_core::attention::NotificationStore;
use ringer_ipc::part::{TitleOutcome, Unreachable};
use ringer_ipc::{ApiError, Response, json_line, read_request};
use ringer_journal::{Error, Home, HubStore, Journal, SpoolLock};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::hosts::protocol::ConnectionId;
use crate::message::{Action, Answer, DeliveryReport, Job, LoopEvent, Request, RequestId};
use crate::socket::lines::LineBuffer;
use crate::state::{HubState, RandomSource, Settings, TimeSource};
use crate::view;

/// The connection of all requests.
const CONNECTION: ConnectionId = ConnectionId(1);
/// How far the clock advances while a request waits. A focus request to a host waits for 2 s.
const WAIT: Duration = Duration::from_secs(2);
/// The most waits for an answer.
const MAX_WAITS: usize = 10;
/// The most messages that are read, the newest ones: a command must not take seconds because no hub ran for weeks.
const MAX_UNREAD_MESSAGES: i64 = 1000;

/// A hub that handles the requests of one client in its own process.
pub struct OfflineHub {
    state: HubState,
    clock: Clock,
    /// How far the simulated clock is ahead of the system's.
    ahead: Duration,
    requests: u64,
    sent: Vec<Vec<u8>>,
    answer: Option<Result<Value, ApiError>>,
}

impl OfflineHub {
    /// Opens what the last hub stored, and reads the messages since. Works beside a running hub and on a read-only disk. Returns
    /// `None` if there is no journal.
    pub fn open(home: &Home) -> Result<Option<Self>, Error> {
        let Some(journal) = Journal::open_to_read(home)? else { return Ok(None) };
        let store = match HubStore::open_to_read(home)? {
            Some(store) => store,
            None => HubStore::in_memory(home)?,
        };
        let mut hub = Self::start(home, (journal, store), None)?;
        hub.state.skip_to_newest(MAX_UNREAD_MESSAGES);
        hub.read_journal();
        Ok(Some(hub))
    }

    /// Opens a hub that also writes what it decides, for fuzzing. Deliveries succeed at once, and nothing is shown.
    #[doc(hidden)]
    pub fn open_alone(home: &Home) -> Result<Self, Error> {
        let files = (Journal::open(home)?, HubStore::open(home)?);
        let lock = SpoolLock::take(home)?.ok_or(Error::Busy { waited: Duration::ZERO })?;
        Self::start(home, files, Some(lock))
    }

    fn start(home: &Home, files: (Journal, HubStore), lock: Option<SpoolLock>) -> Result<Self, Error> {
        // The settings matter only to deliveries and hook programs.
        let (settings, clock) = (Settings::read(Environment::default(), home), Clock::local());
        let sources = (TimeSource::System, RandomSource::System);
        let state = HubState::new(files, lock, settings, Vec::new(), clock.clone(), sources)?;
        let mut hub =
            Self { state, clock, ahead: Duration::ZERO, requests: 0, sent: Vec::new(), answer: None };
        let actions = hub.state.recover(hub.now(), &[])?;
        hub.perform(actions);
        Ok(hub)
    }

    /// Splits the pieces of a stream into lines. Returns `None` if a line is too long.
    #[doc(hidden)]
    pub fn lines<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<Vec<u8>>> {
        let (mut buffer, mut lines) = (LineBuffer::default(), Vec::new());
        for piece in pieces {
            buffer.push(piece);
            while let Some(line) = buffer.next().ok()? {
                lines.push(line);
            }
        }
        Some(lines)
    }

    /// The notifications.
    pub fn notifications(&self) -> &NotificationStore {
        self.state.notifications()
    }

    /// Handles a request.
    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, ApiError> {
        let unanswered = || Err(ApiError::new("unavailable", "the journal cannot be read"));
        self.handle(method.to_owned(), params).unwrap_or_else(unanswered)
    }

    /// Handles a line of the protocol. Returns everything that is sent because of it, the answer last, or `None` if there is no
    /// answer.
    #[doc(hidden)]
    pub fn answer(&mut self, line: &[u8]) -> Option<Vec<Vec<u8>>> {
        let request = match read_request(line) {
            Ok(request) => request,
            Err(error) => return Some(vec![Response::to(Value::Null, Err(error)).line()]),
        };
        let response = Response::to(request.id, self.handle(request.method, request.params)?);
        let mut sent = std::mem::take(&mut self.sent);
        sent.push(response.line());
        Some(sent)
    }

    fn now(&self) -> Now {
        let now = self.clock.now();
        let ahead_ms = i64::try_from(self.ahead.as_millis()).unwrap_or(0);
        Now { mono: now.mono + self.ahead, wall_ms: now.wall_ms + ahead_ms, ..now }
    }

    fn handle(&mut self, method: String, params: Value) -> Option<Result<Value, ApiError>> {
        self.requests += 1;
        let id = RequestId(self.requests);
        let request = Request { method, params, connection: CONNECTION, peer: None };
        let actions = self.state.handle(self.now(), LoopEvent::Request { id, request });
        self.perform(actions);
        for _ in 0..MAX_WAITS {
            self.read_journal();
            let actions = self.state.commit(self.now());
            self.perform(actions);
            if self.answer.is_some() {
                break;
            }
            self.ahead += WAIT;
            let actions = self.state.tick(self.now());
            self.perform(actions);
        }
        self.answer.take()
    }

    /// Reads the journal until its end, or until a request is answered.
    fn read_journal(&mut self) {
        while self.state.has_work(self.now().mono)
            && self.answer.is_none()
            // The files were replaced meanwhile.
            && self.state.unusable_files().is_none()
        {
            let actions = self.state.read_journal(self.now(), false);
            self.perform(actions);
        }
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Answer { answer, .. } => self.answer = Some(self.written(answer)),
                Action::Tell(order) => self.sent.push(json_line(&order.order)),
                Action::Publish { event, data, .. } => {
                    self.sent.push(json_line(&json!({ "event": event, "data": data })));
                }
                Action::Probe(_) => self.happen(LoopEvent::Probed(Vec::new())),
                Action::Execute(Job::Deliver { delivery, .. }) => self.happen(LoopEvent::Delivered {
                    id: delivery.id,
                    channel: delivery.channel,
                    report: DeliveryReport::of(Ok(String::new())),
                }),
                Action::Execute(Job::ChangeTitle(change)) => {
                    let outcome = if change.is_set() { TitleOutcome::Set } else { TitleOutcome::Gone };
                    self.happen(LoopEvent::TitleTried { surface: change.surface, outcome });
                }
                Action::Execute(Job::FocusPane { waiter: Some(waiter), .. }) => {
                    let result = Err(Unreachable::new("the hub is not running"));
                    self.happen(LoopEvent::PaneFocused { waiter, result });
                }
                _ => {}
            }
        }
    }

    fn happen(&mut self, event: LoopEvent) {
        let actions = self.state.handle(self.now(), event);
        self.perform(actions);
    }

    fn written(&mut self, answer: Answer) -> Result<Value, ApiError> {
        Ok(match answer {
            Answer::Value(result) => result?,
            Answer::Notifications(rows) => view::notifications(&rows, &self.clock),
            Answer::Status(status) => status,
            Answer::Environment { environment, .. } => environment,
            Answer::Attach { orders, .. } => {
                self.sent.extend(orders.iter().map(json_line));
                Value::Null
            }
            Answer::Subscribe(_) => Value::Null,
        })
    }
}

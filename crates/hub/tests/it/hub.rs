//! A hub on a thread of the test, with a home and settings of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ringer_config::Environment;
use ringer_core::message::MessageOrigin;
use ringer_core::{Draft, Kind, MessageId, Scope, Sender};
use ringer_hub::{HubError, HubOptions, Log, run};
use ringer_ipc::part::Part;
use ringer_ipc::{HubAddress, HubClient};
use ringer_journal::{Home, HubStore, IdSource, Journal};
use ringer_tmux::TmuxPanes;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::{DEADLINE, until};

/// A hub. It ends with the test.
pub(crate) struct TestHub {
    directory: TempDir,
    options: HubOptions,
    thread: Option<JoinHandle<Result<(), HubError>>>,
    /// Whether a client stays connected, so that a hub that ends by itself does not do so before the test is ready for it.
    is_held: bool,
    client: Mutex<Option<HubClient>>,
}

impl TestHub {
    /// A hub with these settings and no desktop.
    pub(crate) fn start(settings: &str) -> Self {
        Self::with_bus(settings, None)
    }

    pub(crate) fn with_bus(settings: &str, bus: Option<String>) -> Self {
        Self::of(settings, (bus, None), None)
    }

    /// One that ends after so long with nothing to do, once it is let go.
    pub(crate) fn ending(settings: &str, bus: Option<String>, idle_after: Duration) -> Self {
        Self::of(settings, (bus, None), Some(idle_after))
    }

    /// One with a login manager on this bus, which is also its session bus.
    pub(crate) fn with_login_manager(settings: &str, bus: &str) -> Self {
        Self::of(settings, (Some(bus.to_owned()), Some(bus.to_owned())), None)
    }

    fn of(
        settings: &str,
        (bus, system_bus): (Option<String>, Option<String>),
        ends_after: Option<Duration>,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let config = directory.path().join("config.toml");
        fs::write(&config, settings).expect("a file");
        let options = HubOptions {
            home: Home::new(directory.path().join("home")),
            runtime: None,
            bus,
            usual_bus: None,
            system_bus,
            environment: Environment { ringer_config: Some(config), ..Environment::default() },
            idle_after: ends_after.unwrap_or(Duration::from_mins(10)),
            foreground: false,
            starts_next: false,
            guard: None,
            log: Log::new(directory.path().join("home/hub.log"), false),
        };
        let is_held = ends_after.is_some();
        let mut hub = Self { directory, options, thread: None, is_held, client: Mutex::new(None) };
        hub.begin();
        hub
    }

    /// Begins, or begins again.
    pub(crate) fn begin(&mut self) {
        self.spawn();
        until("the hub answers", || {
            if self.has_ended() {
                let ended = self.thread.take().expect("a thread").join();
                assert!(self.is_held && matches!(ended, Ok(Ok(()))), "the hub ended at once: {ended:?}");
                // It had nothing to do before this test connected.
                self.spawn();
            }
            let Ok(mut client) = HubClient::connect(self.home()) else { return false };
            let answers = client.call("ping", &Value::Null).is_ok();
            if answers && self.is_held {
                *self.client.lock().expect("no panic") = Some(client);
            }
            answers
        });
    }

    fn spawn(&mut self) {
        let options = self.options.clone();
        self.thread = Some(thread::spawn(move || run(&options, vec![Box::new(TmuxPanes)])));
    }

    /// From now on it may end by itself.
    pub(crate) fn let_go(&self) {
        self.client.lock().expect("no panic").take();
    }

    /// Waits until it ends by itself.
    #[track_caller]
    pub(crate) fn wait_for_end(&self) {
        self.let_go();
        until("the hub ends by itself", || self.has_ended());
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Runs a hub with these parts on this thread, until it ends.
    pub(crate) fn run_here(&self, parts: Vec<Box<dyn Part>>) -> Result<(), HubError> {
        run(&self.options, parts)
    }

    /// Ends it, and waits for its end.
    pub(crate) fn end(&mut self) {
        self.let_go();
        if let Ok(mut client) = HubClient::connect(self.home()) {
            let _ = client.call("hub.stop", &Value::Null);
        }
        if let Some(thread) = self.thread.take() {
            // Its own failure is not what a test looks at.
            let _ = thread.join();
        }
    }

    pub(crate) fn home(&self) -> &Home {
        &self.options.home
    }

    /// A path in its directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes the person's settings, and lets the hub look at them.
    pub(crate) fn set(&self, settings: &str) {
        fs::write(self.path("config.toml"), settings).expect("a file");
        self.call("hub.reload", &Value::Null);
    }

    pub(crate) fn socket(&self) -> PathBuf {
        HubAddress::read(self.home()).expect("a hub").socket
    }

    #[track_caller]
    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        let answer = HubClient::connect(self.home()).and_then(|mut client| client.call(method, params));
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// What became of a message, step by step.
    #[track_caller]
    pub(crate) fn trail(&self, id: &MessageId) -> Vec<String> {
        let answer = self.call("notification.why", &json!({ "id": id }));
        let steps = answer["trail"].as_array().expect("a trail").iter();
        steps.map(|step| step["text"].as_str().expect("a text").to_owned()).collect()
    }

    /// The number of a message's popup on the desktop.
    #[track_caller]
    pub(crate) fn popup_number(&self, id: &MessageId) -> Option<u32> {
        let answer = self.call("notification.why", &json!({ "id": id }));
        let steps = answer["trail"].as_array().expect("a trail").iter();
        steps.filter_map(|step| step["cause"]["popup"].as_u64()).find_map(|number| number.try_into().ok())
    }

    /// Waits until a message's trail has a step that begins like this. Gives the trail.
    #[track_caller]
    pub(crate) fn wait_for_step(&self, id: &MessageId, begin: &str) -> Vec<String> {
        let mut trail = Vec::new();
        until(&format!("a step {begin:?} of {id}"), || {
            trail = self.trail(id);
            trail.iter().any(|step| step.starts_with(begin))
        });
        trail
    }

    #[track_caller]
    pub(crate) fn is_read(&self, id: &MessageId) -> bool {
        let answer = self.call("notification.why", &json!({ "id": id }));
        answer["notification"]["is_read"].as_bool().unwrap_or_else(|| panic!("{answer}"))
    }

    #[track_caller]
    pub(crate) fn mark_read(&self, id: &MessageId) {
        self.call("notification.mark_read", &json!({ "id": id }));
    }

    /// Sends a message that comes from nowhere.
    #[track_caller]
    pub(crate) fn send(&self, body: &str) -> MessageId {
        self.append(&draft(body))
    }

    /// Sends a message of a surface.
    #[track_caller]
    pub(crate) fn send_from(&self, surface: &str, body: &str) -> MessageId {
        let origin = MessageOrigin { surface: Some(surface.to_owned()), ..MessageOrigin::default() };
        self.append(&Draft { origin, ..draft(body) })
    }

    #[track_caller]
    pub(crate) fn append(&self, draft: &Draft) -> MessageId {
        self.journal().append(draft, &IdSource::now()).expect("it is appended")
    }

    pub(crate) fn journal(&self) -> Journal {
        Journal::open(self.home()).expect("a journal")
    }

    /// What it wrote down.
    pub(crate) fn memory(&self) -> HubStore {
        HubStore::open(self.home()).expect("a hub store")
    }

    /// Follows events whose names begin like this, from the first one on.
    pub(crate) fn follow(&self, name: &str) -> EventStream {
        let mut client = HubClient::connect(self.home()).expect("a hub");
        client.call("events.subscribe", &json!({ "after_seq": 0, "names": [name] })).expect("subscribed");
        client.wait_for_ever().expect("a socket");
        let (tell, events) = channel();
        thread::spawn(move || {
            while let Ok(Some(line)) = client.next_line() {
                let event: Value = serde_json::from_str(&line).expect("JSON");
                // The test may be over.
                if event["event"] != "heartbeat" && tell.send(event).is_err() {
                    return;
                }
            }
        });
        EventStream(events)
    }
}

impl Drop for TestHub {
    fn drop(&mut self) {
        self.end();
    }
}

/// A message with this text.
pub(crate) fn draft(body: &str) -> Draft {
    Draft::new(Scope::global(), Sender::system(), Kind::Complete, body).expect("a text")
}

/// Events as they come.
pub(crate) struct EventStream(Receiver<Value>);

impl EventStream {
    /// The next event for which this holds. Gives its data.
    #[track_caller]
    pub(crate) fn next(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + DEADLINE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let event = self.0.recv_timeout(left).unwrap_or_else(|_| panic!("never came: {what}"));
            if is_it(&event["data"]) {
                return event["data"].clone();
            }
        }
    }

    /// How many of those that have come so far are like this.
    pub(crate) fn count(&self, is_it: impl Fn(&Value) -> bool) -> usize {
        self.0.try_iter().filter(|event| is_it(&event["data"])).count()
    }
}

/// A file to which a command of the hub appends a line for every notification.
pub(crate) struct Sink(PathBuf);

impl Sink {
    pub(crate) fn new(directory: &Path) -> Self {
        Self(directory.join("sink"))
    }

    /// The setting that makes it one: the body of each, a line.
    pub(crate) fn command(&self) -> String {
        let script = "printf '%s\\n' \"$RINGER_NOTIFICATION_BODY\" >> \"$0\"";
        format!("command = {}\n", json!(["sh", "-c", script, self.0]))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        fs::read_to_string(&self.0).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Waits until all of these have come, in whatever order.
    #[track_caller]
    pub(crate) fn wait_for(&self, bodies: &[&str]) {
        until(&format!("{bodies:?} reach the command"), || {
            let lines = self.lines();
            bodies.iter().all(|body| lines.iter().any(|line| line == body))
        });
    }
}

//! A notification server that remembers what it was told and does as the test says.

use std::collections::HashMap;
use std::sync::Arc;

use ringer_core::MessageId;
use ringer_deliver::Popup;
use tokio::sync::{Notify, mpsc};
use zbus::{Connection, OwnedVariant};

use crate::wait::{note, soon};

const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";

/// What the server was told.
#[derive(Debug)]
pub(crate) enum Call {
    Notify(Box<Told>),
    Close(u32),
}

#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) app: String,
    pub(crate) replaces: u32,
    pub(crate) icon: String,
    pub(crate) summary: String,
    pub(crate) body: String,
    pub(crate) actions: Vec<String>,
    pub(crate) hints: HashMap<String, OwnedVariant>,
    pub(crate) expire: i32,
}

/// How it behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As it should.
    Well,
    /// It takes a popup and never answers.
    Hangs,
    /// It sleeps until it is woken, and then does as it should.
    Sleeps,
    /// When a popup is to be replaced, the person has closed that one a moment ago.
    ClosesBeforeReplacing,
}

struct Recorder {
    calls: mpsc::Sender<Call>,
    manner: Manner,
    abilities: &'static [&'static str],
    awake: Arc<Notify>,
    last: u32,
}

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Recorder {
    fn get_capabilities(&self) -> Vec<String> {
        self.abilities.iter().map(|ability| (*ability).to_owned()).collect()
    }

    #[expect(clippy::too_many_arguments, reason = "the standard has that many")]
    async fn notify(
        &mut self,
        #[zbus(connection)] connection: &Connection,
        app: String,
        replaces: u32,
        icon: String,
        summary: String,
        body: String,
        actions: Vec<String>,
        hints: HashMap<String, OwnedVariant>,
        expire: i32,
    ) -> u32 {
        let told = Told { app, replaces, icon, summary, body, actions, hints, expire };
        self.calls.try_send(Call::Notify(Box::new(told))).expect("room");
        if self.manner == Manner::Hangs {
            std::future::pending::<()>().await;
        }
        if self.manner == Manner::Sleeps {
            self.awake.notified().await;
        }
        if replaces > 0 {
            if self.manner == Manner::ClosesBeforeReplacing {
                emit(connection, "NotificationClosed", &(replaces, 2_u32)).await;
            }
            return replaces;
        }
        self.last += 1;
        self.last
    }

    fn close_notification(&self, number: u32) {
        self.calls.try_send(Call::Close(number)).expect("room");
    }
}

async fn emit<B: serde::Serialize + zbus::DynamicType>(connection: &Connection, signal: &str, body: &B) {
    connection.emit_signal(None::<&str>, PATH, NAME, signal, body).await.expect("a signal");
}

/// The server, on a connection of its own.
pub(crate) struct Server {
    connection: Connection,
    awake: Arc<Notify>,
    calls: mpsc::Receiver<Call>,
}

impl Server {
    pub(crate) async fn start(address: &str, manner: Manner, abilities: &'static [&'static str]) -> Self {
        let (tell, calls) = mpsc::channel(1024);
        let awake = Arc::new(Notify::new());
        let recorder = Recorder { calls: tell, manner, abilities, awake: Arc::clone(&awake), last: 0 };
        let building =
            zbus::connection::Builder::address(address).serve_at(PATH, recorder).name(NAME).build();
        let connection = soon("the server", building).await.expect("a server");
        Self { connection, awake, calls }
    }

    /// Ends it, and waits until the bus has noticed.
    pub(crate) async fn stop(self) {
        self.connection.release_name(NAME).await.expect("released");
        self.connection.close().await.expect("closed");
    }

    /// Wakes it from the sleep over one popup.
    pub(crate) fn wake(&self) {
        self.awake.notify_one();
    }

    pub(crate) async fn told(&mut self) -> Call {
        soon("a call", self.calls.recv()).await.expect("a call")
    }

    pub(crate) async fn popup(&mut self) -> Told {
        match self.told().await {
            Call::Notify(told) => *told,
            close @ Call::Close(_) => panic!("{close:?}"),
        }
    }

    pub(crate) async fn closed(&self, number: u32, reason: u32) {
        emit(&self.connection, "NotificationClosed", &(number, reason)).await;
    }

    pub(crate) async fn clicked(&self, number: u32, action: &str, token: Option<&str>) {
        if let Some(token) = token {
            emit(&self.connection, "ActivationToken", &(number, token)).await;
        }
        emit(&self.connection, "ActionInvoked", &(number, action)).await;
    }
}

/// A popup of this id for this surface. Each has its own text: dunst makes one of two that read the same.
pub(crate) fn popup(id: &str, key: &str) -> Popup {
    Popup { key: key.to_owned(), ..Popup::of(&note(id, &format!("May I do {id}?"))) }
}

pub(crate) fn id(text: &str) -> MessageId {
    MessageId::parse(text).expect("an id")
}

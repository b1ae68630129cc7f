//! A notification server that remembers what it was told and does as the test says.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use tokio::sync::mpsc;
use zbus::{Connection, OwnedVariant};

use crate::hub::PATIENCE;

const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";
const ABLE: [&str; 3] = ["body", "body-markup", "actions"];

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
}

struct Recorder {
    calls: SyncSender<Call>,
    manner: Manner,
    abilities: Vec<String>,
    last: u32,
}

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Recorder {
    fn get_capabilities(&self) -> Vec<String> {
        self.abilities.clone()
    }

    #[expect(clippy::too_many_arguments, reason = "the standard has that many")]
    async fn notify(
        &mut self,
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
        // The test may be over.
        let _ = self.calls.try_send(Call::Notify(Box::new(told)));
        if self.manner == Manner::Hangs {
            std::future::pending::<()>().await;
        }
        if replaces > 0 {
            return replaces;
        }
        self.last += 1;
        self.last
    }

    #[expect(clippy::unused_self, reason = "a method of the interface has it")]
    fn get_server_information(&self) -> (String, String, String, String) {
        ["Recorder", "the test", "1", "1.2"].map(str::to_owned).into()
    }

    fn close_notification(&self, number: u32) {
        let _ = self.calls.try_send(Call::Close(number));
    }
}

/// What the person does to a popup.
enum Deed {
    Closed { number: u32, reason: u32 },
    Clicked { number: u32, action: &'static str },
}

/// The server, on a connection and a thread of its own.
pub(crate) struct Server {
    calls: Receiver<Call>,
    deeds: mpsc::Sender<Deed>,
}

impl Server {
    pub(crate) fn start(address: &str, manner: Manner) -> Self {
        let (tell, calls) = sync_channel(1024);
        let (ready, is_ready) = sync_channel(1);
        let (deeds, mut to_do) = mpsc::channel(16);
        let address = address.to_owned();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let recorder =
                    Recorder { calls: tell, manner, abilities: ABLE.map(str::to_owned).to_vec(), last: 0 };
                let building = zbus::connection::Builder::address(address.as_str())
                    .serve_at(PATH, recorder)
                    .name(NAME)
                    .build();
                let connection = building.await.expect("a server");
                ready.send(()).expect("the test waits");
                // Until the test is over.
                while let Some(deed) = to_do.recv().await {
                    perform(&connection, deed).await;
                }
            });
        });
        is_ready.recv_timeout(PATIENCE).expect("a server");
        Self { calls, deeds }
    }

    #[track_caller]
    pub(crate) fn told(&self) -> Call {
        self.calls.recv_timeout(PATIENCE).expect("a call")
    }

    #[track_caller]
    pub(crate) fn popup(&self) -> Told {
        match self.told() {
            Call::Notify(told) => *told,
            close @ Call::Close(_) => panic!("{close:?}"),
        }
    }

    pub(crate) fn close(&self, number: u32, reason: u32) {
        self.deeds.blocking_send(Deed::Closed { number, reason }).expect("it runs");
    }

    pub(crate) fn click(&self, number: u32, action: &'static str) {
        self.deeds.blocking_send(Deed::Clicked { number, action }).expect("it runs");
    }
}

async fn perform(connection: &Connection, deed: Deed) {
    let sent = match deed {
        Deed::Closed { number, reason } => {
            connection.emit_signal(None::<&str>, PATH, NAME, "NotificationClosed", &(number, reason)).await
        }
        Deed::Clicked { number, action } => {
            connection.emit_signal(None::<&str>, PATH, NAME, "ActionInvoked", &(number, action)).await
        }
    };
    sent.expect("a signal");
}

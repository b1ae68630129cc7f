//! A desktop notification server that records its calls and behaves as a test wants.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, mpsc as blocking};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;
use zbus::{Connection, OwnedVariant};

use crate::DEADLINE;

const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";

/// A call that the server received.
#[derive(Debug)]
pub enum ServerCall {
    /// Show a popup.
    Notify(Box<NotifyCall>),
    /// Close the popup with this id.
    Close(u32),
}

/// The arguments of `Notify`.
#[derive(Debug)]
#[expect(missing_docs, reason = "they are the arguments of the standard, by its names")]
pub struct NotifyCall {
    pub app: String,
    pub replaces: u32,
    pub icon: String,
    pub summary: String,
    pub body: String,
    pub actions: Vec<String>,
    pub hints: HashMap<String, OwnedVariant>,
    pub expire: i32,
}

/// How the server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerBehaviour {
    /// It follows the specification.
    Normal,
    /// It accepts a popup and never replies.
    Hangs,
    /// It replies only after [`NotificationServer::wake`].
    AnswersWhenWoken,
    /// It reports that the person closed a popup just before it replaces the popup.
    ClosesBeforeReplacing,
    /// It reports do-not-disturb in the property `Inhibited`, like KDE Plasma.
    DoNotDisturb,
}

struct Interface {
    calls: mpsc::Sender<ServerCall>,
    behaviour: ServerBehaviour,
    capabilities: &'static [&'static str],
    woken: Arc<Notify>,
    last: u32,
}

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Interface {
    fn get_capabilities(&self) -> &'static [&'static str] {
        self.capabilities
    }

    #[expect(clippy::unused_self, reason = "a method of the interface has it")]
    fn get_server_information(&self) -> (&'static str, &'static str, &'static str, &'static str) {
        ("Recorder", "the test", "1", "1.2")
    }

    #[zbus(property)]
    fn inhibited(&self) -> bool {
        self.behaviour == ServerBehaviour::DoNotDisturb
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
        let call = NotifyCall { app, replaces, icon, summary, body, actions, hints, expire };
        // The test may have ended.
        let _ = self.calls.try_send(ServerCall::Notify(Box::new(call)));
        match self.behaviour {
            ServerBehaviour::Hangs => std::future::pending::<()>().await,
            ServerBehaviour::AnswersWhenWoken => self.woken.notified().await,
            ServerBehaviour::ClosesBeforeReplacing if replaces > 0 => {
                emit(connection, "NotificationClosed", &(replaces, 2_u32)).await;
            }
            _ => {}
        }
        if replaces > 0 {
            return replaces;
        }
        self.last += 1;
        self.last
    }

    fn close_notification(&self, number: u32) {
        let _ = self.calls.try_send(ServerCall::Close(number));
    }
}

async fn emit<B: serde::Serialize + zbus::DynamicType>(connection: &Connection, signal: &str, body: &B) {
    if let Err(error) = connection.emit_signal(None::<&str>, PATH, NAME, signal, body).await {
        panic!("no signal: {error}");
    }
}

/// Awaits a future that must complete.
///
/// # Panics
///
/// If it does not complete within [`DEADLINE`].
pub async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("never happened: {what}"))
}

/// A notification server with its own connection to a bus, for tests that run in tokio.
#[derive(Debug)]
pub struct NotificationServer {
    connection: Connection,
    woken: Arc<Notify>,
    calls: mpsc::Receiver<ServerCall>,
}

impl NotificationServer {
    /// # Panics
    ///
    /// If the bus does not let it own the name.
    pub async fn start(
        address: &str,
        behaviour: ServerBehaviour,
        capabilities: &'static [&'static str],
    ) -> Self {
        let (sender, calls) = mpsc::channel(1024);
        let woken = Arc::new(Notify::new());
        let interface =
            Interface { calls: sender, behaviour, capabilities, woken: Arc::clone(&woken), last: 0 };
        let building = zbus::connection::Builder::address(address).serve_at(PATH, interface).name(NAME);
        let connection = in_time("the notification server starts", building.build()).await;
        let connection = connection.unwrap_or_else(|error| panic!("no notification server: {error}"));
        Self { connection, woken, calls }
    }

    /// Stops the server, and waits until the bus has released its name.
    ///
    /// # Panics
    ///
    /// If the bus is gone.
    pub async fn stop(self) {
        let released = self.connection.release_name(NAME).await.map(drop);
        if let Err(error) = released.and(self.connection.close().await) {
            panic!("the server cannot stop: {error}");
        }
    }

    /// Lets the server reply to one call; see [`ServerBehaviour::AnswersWhenWoken`].
    pub fn wake(&self) {
        self.woken.notify_one();
    }

    /// # Panics
    ///
    /// If no call arrives in time.
    pub async fn next_call(&mut self) -> ServerCall {
        in_time("a call of the notification server", self.calls.recv())
            .await
            .unwrap_or_else(|| panic!("the server has ended"))
    }

    /// # Panics
    ///
    /// If the next call is not `Notify`.
    pub async fn next_popup(&mut self) -> NotifyCall {
        match self.next_call().await {
            ServerCall::Notify(call) => *call,
            close @ ServerCall::Close(_) => panic!("{close:?}"),
        }
    }

    /// Reports that a popup was closed, with a reason code of the specification.
    pub async fn report_closed(&self, number: u32, reason: u32) {
        emit(&self.connection, "NotificationClosed", &(number, reason)).await;
    }

    /// Reports that the person clicked a popup.
    pub async fn report_clicked(&self, number: u32, action: &str, token: Option<&str>) {
        if let Some(token) = token {
            emit(&self.connection, "ActivationToken", &(number, token)).await;
        }
        emit(&self.connection, "ActionInvoked", &(number, action)).await;
    }
}

/// A [`NotificationServer`] for tests without a tokio runtime: it brings its own, on a separate thread.
#[derive(Debug)]
pub struct BlockingNotificationServer {
    server: RefCell<NotificationServer>,
    runtime: BackgroundRuntime,
}

#[expect(missing_docs, reason = "as in `NotificationServer`")]
impl BlockingNotificationServer {
    /// # Panics
    ///
    /// If the bus does not let it own the name.
    #[track_caller]
    pub fn start(address: &str, behaviour: ServerBehaviour) -> Self {
        let runtime = BackgroundRuntime::start();
        let capabilities = &["body", "body-markup", "actions"];
        let server = runtime.block_on(NotificationServer::start(address, behaviour, capabilities));
        Self { server: RefCell::new(server), runtime }
    }

    #[track_caller]
    pub fn next_call(&self) -> ServerCall {
        self.runtime.block_on(self.server.borrow_mut().next_call())
    }

    #[track_caller]
    pub fn next_popup(&self) -> NotifyCall {
        self.runtime.block_on(self.server.borrow_mut().next_popup())
    }

    pub fn report_closed(&self, number: u32, reason: u32) {
        self.emit("NotificationClosed", (number, reason));
    }

    pub fn report_clicked(&self, number: u32, action: &str) {
        self.emit("ActionInvoked", (number, action.to_owned()));
    }

    /// Sends a forged click from another connection to the bus, as a broadcast and to each connection directly. The bus has
    /// delivered the signals when this returns.
    ///
    /// # Panics
    ///
    /// If the bus is gone.
    #[track_caller]
    pub fn forge_click(address: &str, number: u32, action: &str) {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.unwrap_or_else(|error| panic!("no runtime: {error}"));
        let forged = runtime.block_on(in_time("a forged click", forge_click(address, number, action)));
        forged.unwrap_or_else(|error| panic!("no forged click: {error}"));
    }

    /// Emits a signal on the server's thread, so that it follows the reply to the call that [`Self::next_call`] returned. Before
    /// that reply the caller does not know the popup's id.
    fn emit<B>(&self, signal: &'static str, body: B)
    where
        B: serde::Serialize + zbus::DynamicType + Send + Sync + 'static,
    {
        let connection = self.server.borrow().connection.clone();
        let emitted = self.runtime.handle().spawn(async move { emit(&connection, signal, &body).await });
        if let Err(error) = self.runtime.block_on(emitted) {
            panic!("no signal: {error}");
        }
    }
}

async fn forge_click(address: &str, number: u32, action: &str) -> zbus::Result<()> {
    const BUS: &str = "org.freedesktop.DBus";
    let connection = zbus::connection::Builder::address(address).build().await?;
    let names =
        connection.call_method(Some(BUS), "/org/freedesktop/DBus", Some(BUS), "ListNames", &()).await?;
    let names: Vec<String> = names.body().deserialize()?;
    let each = names.iter().filter(|name| name.starts_with(':')).map(|name| Some(name.as_str()));
    for destination in each.chain([None]) {
        connection.emit_signal(destination, PATH, NAME, "ActionInvoked", &(number, action)).await?;
    }
    // The bus delivers messages in order, so this reply arrives after the signals.
    connection.call_method(Some(BUS), "/org/freedesktop/DBus", Some(BUS), "GetId", &()).await.map(drop)
}

/// A tokio runtime on its own thread, for tests without a runtime. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct BackgroundRuntime {
    handle: Handle,
    _end: oneshot::Sender<()>,
}

impl BackgroundRuntime {
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

//! The connection to the session bus and to the notification server on it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::pin::Pin;

use futures_core::Stream;
use ringer_platform::owned;
use ringer_term::sanitise_line;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use zbus::message::{Flags, Message, Sequence, Type};
use zbus::{Connection, MessageStream, Variant};

use crate::error::Error;

use super::content::{PopupContent, ServerCapabilities};
use super::popup::PopupHandle;

/// The length of the signal queue. Signals wait in it while the worker waits for a reply; further ones are dropped.
const MAX_SIGNALS: usize = 256;

const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";
const BUS: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";

const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// The do-not-disturb properties of dunst and of KDE Plasma.
const PAUSED: [(&str, &str); 2] = [("org.dunstproject.cmd0", "paused"), (NAME, "Inhibited")];

/// The match rules: the signals of the server, and the change of its owner.
const RULES: [&str; 2] = [
    "type='signal',sender='org.freedesktop.Notifications',interface='org.freedesktop.Notifications'",
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='org.freedesktop.Notifications'",
];

/// A signal on the bus.
#[derive(Debug)]
pub(super) enum BusSignal {
    /// A popup was closed, with the reason code.
    Closed(PopupHandle, u32),
    /// The person clicked the popup or a button; the name of the action.
    Action(PopupHandle, String),
    /// The activation token for the next action.
    Token(PopupHandle, String),
    /// The server was replaced, or has gone.
    Owner(Option<String>),
}

/// Opens the socket of one address. TCP and `unixexec` addresses are refused: the owner of such a bus cannot be checked.
fn open_socket(address: &str) -> io::Result<UnixStream> {
    let unknown =
        || io::Error::new(ErrorKind::InvalidInput, format!("{address} is not the address of a socket"));
    let fields = address.strip_prefix("unix:").ok_or_else(unknown)?;
    let field = |name: &str| fields.split(',').find_map(|field| unescape(field.strip_prefix(name)?));
    match (field("path="), field("abstract=")) {
        (Some(path), _) => owned::connect(Path::new(OsStr::from_bytes(&path))),
        (None, Some(name)) => owned::connect_abstract(&name),
        _ => Err(unknown()),
    }
}

/// Decodes the percent-encoding of a D-Bus address.
fn unescape(value: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match first {
            b'%' => {
                let (digits, after) = after.split_at_checked(2)?;
                (u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?, after)
            }
            byte => (*byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    Some(bytes)
}

/// A connection to the session bus.
#[derive(Debug)]
pub(super) struct BusConnection {
    connection: Connection,
    signals: mpsc::Receiver<(Sequence, BusSignal)>,
    listener: JoinHandle<()>,
    /// The unique name of the server, if it is running.
    owner: Option<String>,
    /// The capabilities of that server, once queried.
    capabilities: Option<ServerCapabilities>,
}

impl Drop for BusConnection {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl BusConnection {
    /// Connects to the first address that answers, of a list like `DBUS_SESSION_BUS_ADDRESS`.
    pub(super) async fn connect(addresses: &str) -> Result<Self, Error> {
        let mut last = Error::NoBus("its address is empty".to_owned());
        for address in addresses.split(';').filter(|address| !address.is_empty()) {
            match Self::connect_to(address).await {
                Ok(connected) => return Ok(connected),
                Err(error) => last = Error::NoBus(format!("{address}: {error}")),
            }
        }
        Err(last)
    }

    /// Connects to one address. The bus must belong to this user: its owner can read every notification and press every button.
    async fn connect_to(address: &str) -> zbus::Result<Self> {
        let connection = zbus::connection::Builder::unix_stream(open_socket(address)?).build().await?;
        let bus = connection.server_guid().to_string();
        let (sender, signals) = mpsc::channel(MAX_SIGNALS);
        let listener = tokio::spawn(listen(MessageStream::from(&connection), bus, sender));
        let mut connected = Self { connection, signals, listener, owner: None, capabilities: None };
        for rule in RULES {
            connected.bus("AddMatch", rule).await?;
        }
        // Without an owner, the bus starts the server at the first popup, if it knows one.
        if let Ok(reply) = connected.bus("GetNameOwner", NAME).await {
            connected.owner = reply.body().deserialize::<&str>().ok().map(str::to_owned);
        }
        Ok(connected)
    }

    /// Returns true if the server sends signals about a popup only to the connection that showed it last, as dunst does.
    pub(super) async fn reports_to_sender_only(&self) -> bool {
        let Some(owner) = self.owner.as_deref() else { return false };
        self.server_information(owner).await.is_ok_and(|(name, _)| name == "dunst")
    }

    /// The server's name and version.
    async fn server_information(&self, owner: &str) -> zbus::Result<(String, String)> {
        let call = self.connection.call_method(Some(owner), PATH, Some(NAME), "GetServerInformation", &());
        let reply = call.await?;
        let (name, _vendor, version, _spec): (String, String, String, String) = reply.body().deserialize()?;
        Ok((name, version))
    }

    /// Describes the server that would show a popup. Shows none and starts no server.
    pub(super) async fn describe(&self) -> Result<String, Error> {
        let failed = |error: zbus::Error| Error::Desktop(error.to_string());
        if let Some(owner) = self.owner.as_deref() {
            let (name, version) = self.server_information(owner).await.map_err(failed)?;
            return Ok(sanitise_line(&format!("{name} {version} shows popups")));
        }
        let call = self.connection.call_method(Some(BUS), BUS_PATH, Some(BUS), "ListActivatableNames", &());
        let reply = call.await.map_err(failed)?;
        let names: Vec<String> = reply.body().deserialize().map_err(failed)?;
        if names.iter().any(|name| name == NAME) {
            return Ok("the session bus starts a notification server with the first popup".to_owned());
        }
        Err(Error::Desktop("there is none on the session bus".to_owned()))
    }

    /// Returns true if the server is in do-not-disturb mode. Starts no server.
    pub(super) async fn is_paused(&self) -> bool {
        let Some(owner) = self.owner.as_deref() else { return false };
        for property in PAUSED {
            let call = self.connection.call_method(Some(owner), PATH, Some(PROPERTIES), "Get", &property);
            let Ok(reply) = call.await else { continue };
            let value = reply.body();
            if value.deserialize::<Variant<'_>>().is_ok_and(|value| bool::try_from(value).unwrap_or(false)) {
                return true;
            }
        }
        false
    }

    async fn bus(&self, method: &str, argument: &str) -> zbus::Result<Message> {
        self.connection.call_method(Some(BUS), BUS_PATH, Some(BUS), method, &argument).await
    }

    pub(super) fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// Waits for the next signal. `None` if the connection was closed.
    pub(super) async fn next_signal(&mut self) -> Option<(Sequence, BusSignal)> {
        self.signals.recv().await
    }

    /// The next signal in the queue, if there is one.
    pub(super) fn queued_signal(&mut self) -> Option<(Sequence, BusSignal)> {
        self.signals.try_recv().ok()
    }

    /// Records the owner of the server's name. A reply may already have told of it before the signal arrives.
    pub(super) fn set_owner(&mut self, owner: Option<String>) {
        if self.owner != owner {
            self.owner = owner;
            self.capabilities = None;
        }
    }

    /// The current server; see [`PopupHandle::server`].
    pub(super) fn server(&self) -> Option<String> {
        Some(server(&self.connection.server_guid().to_string(), self.owner.as_deref()?))
    }

    /// Queries the capabilities of the server. The bus starts it if necessary.
    pub(super) async fn capabilities(&mut self) -> zbus::Result<ServerCapabilities> {
        if let Some(capabilities) = self.capabilities.filter(|_| self.owner.is_some()) {
            return Ok(capabilities);
        }
        let reply = self.connection.call_method(Some(NAME), PATH, Some(NAME), "GetCapabilities", &()).await?;
        let listed: Vec<String> = reply.body().deserialize()?;
        let capabilities = ServerCapabilities::of(&listed);
        self.owner = reply.header().sender().map(|sender| sender.as_str().to_owned());
        self.capabilities = Some(capabilities);
        Ok(capabilities)
    }

    /// Shows a popup. The call is addressed to the server whose capabilities are known, not to one that has just replaced it:
    /// with the latter, `replaces` could be another program's popup.
    ///
    /// The future borrows nothing, because it may outlive the deadline of the caller.
    pub(super) fn notify(
        &self,
        content: PopupContent,
        replaces: Option<u32>,
    ) -> impl Future<Output = zbus::Result<(u32, Sequence)>> + Send + use<> {
        let connection = self.connection.clone();
        let to = self.owner.clone().unwrap_or_else(|| NAME.to_owned());
        async move {
            let hints: HashMap<&str, Variant<'_>> = HashMap::from([
                ("urgency", Variant::new(content.urgency)),
                ("category", Variant::new(content.category.as_str())),
                ("desktop-entry", Variant::new("ringer")),
                ("x-dunst-stack-tag", Variant::new(content.tag.as_str())),
            ]);
            let body = (
                "Ringer",
                replaces.unwrap_or(0),
                content.icon.as_str(),
                content.summary.as_str(),
                content.body.as_str(),
                &content.actions,
                hints,
                content.expire,
            );
            let reply = connection.call_method(Some(to.as_str()), PATH, Some(NAME), "Notify", &body).await?;
            Ok((reply.body().deserialize()?, reply.recv_position()))
        }
    }

    /// Closes a popup of the current server, without waiting for the reply of a server that may hang.
    pub(super) async fn close(&self, number: u32) -> zbus::Result<()> {
        let Some(owner) = self.owner.as_deref() else {
            return Ok(());
        };
        let message = Message::method_call(PATH, "CloseNotification")
            .destination(owner)
            .interface(NAME)
            .with_flags(Flags::NO_REPLY_EXPECTED | Flags::NO_AUTO_START)
            .build(&number)?;
        self.connection.send(&message).await
    }
}

/// A [`PopupHandle::server`].
fn server(bus: &str, owner: &str) -> String {
    format!("{bus} {owner}")
}

/// Reads the bus all the time, whatever the worker waits for: a full message queue would delay the replies.
async fn listen(mut messages: MessageStream, bus: String, sender: mpsc::Sender<(Sequence, BusSignal)>) {
    while let Some(message) = poll_fn(|context| Pin::new(&mut messages).poll_next(context)).await {
        let Ok(message) = message else { continue };
        if let Some(signal) = parse_signal(&message, &bus) {
            // A full queue drops it; a closed one means that the connection, and this task with it, is gone.
            let _ = sender.try_send((message.recv_position(), signal));
        }
    }
}

fn parse_signal(message: &Message, bus: &str) -> Option<BusSignal> {
    if message.message_type() != Type::Signal {
        return None;
    }
    let header = message.header();
    let sender = header.sender()?.as_str();
    let handle = |number| PopupHandle { number, server: server(bus, sender) };
    let body = message.body();
    match (header.interface()?.as_str(), header.member()?.as_str()) {
        (NAME, "NotificationClosed") => {
            let (number, reason) = body.deserialize().ok()?;
            Some(BusSignal::Closed(handle(number), reason))
        }
        (NAME, "ActionInvoked") => {
            let (number, action): (u32, &str) = body.deserialize().ok()?;
            Some(BusSignal::Action(handle(number), action.to_owned()))
        }
        (NAME, "ActivationToken") => {
            let (number, token): (u32, &str) = body.deserialize().ok()?;
            Some(BusSignal::Token(handle(number), token.to_owned()))
        }
        (BUS, "NameOwnerChanged") if sender == BUS => {
            let (name, _, owner): (&str, &str, &str) = body.deserialize().ok()?;
            (name == NAME)
                .then(|| BusSignal::Owner(Some(owner).filter(|owner| !owner.is_empty()).map(str::to_owned)))
        }
        _ => None,
    }
}

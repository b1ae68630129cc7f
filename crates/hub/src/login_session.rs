//! The person's session on this machine, as logind reports it: locked or not, idle or not.
//!
//! Nothing is polled, since logind signals every change. If the bus or logind is gone, the session is unknown, and the next
//! attempt follows when the hub has something to deliver. Only then does it matter whether the person is present.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;
use ringer_core::attention::DesktopSession;
use ringer_platform::variable;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use zbus::message::{Message, Type};
use zbus::names::InterfaceName;
use zbus::{Connection, MessageStream, OwnedObjectPath, OwnedVariant};

use crate::message::{Input, LoopEvent};

const NAME: &str = "org.freedesktop.login1";
const PATH: &str = "/org/freedesktop/login1";
const MANAGER: &str = "org.freedesktop.login1.Manager";
const SESSION: &str = "org.freedesktop.login1.Session";
const USER: &str = "org.freedesktop.login1.User";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const BUS: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";

/// Deadline of a reply from the bus or logind. They have nothing else to do.
const REPLY_DEADLINE: Duration = Duration::from_secs(5);
/// The shortest time between two attempts to connect, however much is delivered.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The signals to subscribe to: changes of sessions, new and removed sessions, and restarts of logind.
const RULES: [&str; 4] = [
    "type='signal',sender='org.freedesktop.login1',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged'",
    "type='signal',sender='org.freedesktop.login1',interface='org.freedesktop.login1.Session'",
    "type='signal',sender='org.freedesktop.login1',interface='org.freedesktop.login1.Manager'",
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='org.freedesktop.login1'",
];

/// Reports the session to the loop while the hub runs. `deliveries` is notified when the hub delivers something.
pub(crate) async fn report(bus: &str, inputs: mpsc::Sender<Input>, deliveries: &Notify) {
    loop {
        let tried = Instant::now();
        let mut reported = None;
        // However the connection ends, the session is unknown afterwards.
        let _ = follow(bus, &inputs, &mut reported).await;
        if reported.is_some() {
            tell(&inputs, None).await;
        }
        deliveries.notified().await;
        sleep_until(tried + RETRY_AFTER).await;
    }
}

async fn tell(inputs: &mpsc::Sender<Input>, session: Option<DesktopSession>) {
    // Fails only once the loop has ended.
    let _ = inputs.send(Input::Event(LoopEvent::DesktopSession(session))).await;
}

/// Reports every change until the connection ends.
async fn follow(
    bus: &str,
    inputs: &mpsc::Sender<Input>,
    reported: &mut Option<DesktopSession>,
) -> zbus::Result<()> {
    let (connection, messages) = in_time(connect(bus)).await?;
    let (sender, mut changes) = mpsc::channel(1);
    // Aborted when this function returns.
    let mut listener = JoinSet::new();
    listener.spawn(listen(messages, sender));
    loop {
        let session = match in_time(find_session(&connection)).await {
            Ok(path) => in_time(read_session(&connection, &path)).await.ok(),
            Err(_) => None,
        };
        if session != *reported {
            *reported = session;
            tell(inputs, session).await;
        }
        if changes.recv().await.is_none() {
            return Ok(());
        }
    }
}

/// Reads the bus continuously, because an unread queue would delay the replies.
async fn listen(mut messages: MessageStream, changes: mpsc::Sender<()>) {
    while let Some(message) = poll_fn(|context| Pin::new(&mut messages).poll_next(context)).await {
        if message.is_ok_and(|message| is_change(&message)) {
            // A change that already waits has the same effect.
            let _ = changes.try_send(());
        }
    }
}

async fn in_time<T>(call: impl Future<Output = zbus::Result<T>>) -> zbus::Result<T> {
    let late = |_| Err(zbus::Error::Failure(format!("no answer within {REPLY_DEADLINE:?}")));
    timeout(REPLY_DEADLINE, call).await.unwrap_or_else(late)
}

async fn connect(address: &str) -> zbus::Result<(Connection, MessageStream)> {
    let connection = zbus::connection::Builder::address(address).build().await?;
    // Created before the first call, so that no signal is missed.
    let messages = MessageStream::from(&connection);
    for rule in RULES {
        connection.call_method(Some(BUS), BUS_PATH, Some(BUS), "AddMatch", &rule).await?;
    }
    Ok((connection, messages))
}

/// Returns true if a message may mean a change of the session. The session is then read again, which is rare.
fn is_change(message: &Message) -> bool {
    let header = message.header();
    let interface = header.interface().map(InterfaceName::as_str);
    message.message_type() == Type::Signal
        && matches!(interface, Some(PROPERTIES | SESSION | MANAGER | BUS))
        && header.member().is_some_and(|member| member.as_str() != "NameAcquired")
}

/// Finds the session of this process, of its environment, or else the one that the person sees.
async fn find_session(connection: &Connection) -> zbus::Result<OwnedObjectPath> {
    let own = std::process::id();
    if let Ok(path) = manager(connection, "GetSessionByPID", &own).await
        && is_open(connection, &path).await
    {
        return Ok(path);
    }
    if let Some(id) = variable("XDG_SESSION_ID")
        && let Ok(path) = manager(connection, "GetSession", &id.to_string_lossy().as_ref()).await
        && is_open(connection, &path).await
    {
        return Ok(path);
    }
    let user = manager(connection, "GetUser", &rustix::process::geteuid().as_raw()).await?;
    let reply = get(connection, &user, USER, "Display").await?;
    let (_, path): (String, OwnedObjectPath) = reply.try_into()?;
    Ok(path)
}

async fn manager<B>(connection: &Connection, method: &str, argument: &B) -> zbus::Result<OwnedObjectPath>
where
    B: serde::Serialize + zbus::DynamicType,
{
    let reply = connection.call_method(Some(NAME), PATH, Some(MANAGER), method, argument).await?;
    reply.body().deserialize()
}

/// Returns true if the session is not closing. A hub outlives the session that started it, and logind keeps that one as closing.
async fn is_open(connection: &Connection, path: &OwnedObjectPath) -> bool {
    let state = get(connection, path, SESSION, "State").await;
    state.is_ok_and(|state| String::try_from(state).is_ok_and(|state| state != "closing"))
}

async fn get(
    connection: &Connection,
    path: &OwnedObjectPath,
    interface: &str,
    property: &str,
) -> zbus::Result<OwnedVariant> {
    let wanted = (interface, property);
    let asked = connection.call_method(Some(NAME), path, Some(PROPERTIES), "Get", &wanted);
    asked.await?.body().deserialize()
}

async fn read_session(connection: &Connection, path: &OwnedObjectPath) -> zbus::Result<DesktopSession> {
    let asked = connection.call_method(Some(NAME), path, Some(PROPERTIES), "GetAll", &SESSION);
    let mut properties: HashMap<String, OwnedVariant> = asked.await?.body().deserialize()?;
    let mut flag = |name: &str| properties.remove(name).and_then(|value| bool::try_from(value).ok());
    let (is_locked, is_idle) = (flag("LockedHint").unwrap_or(false), flag("IdleHint").unwrap_or(false));
    // 0 until the desktop has reported its idle state once.
    let since = properties.remove("IdleSinceHint").and_then(|value| u64::try_from(value).ok());
    Ok(DesktopSession { is_locked, is_idle, reports_idle: since.is_some_and(|since| since > 0) })
}

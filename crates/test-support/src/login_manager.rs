//! A stand-in for logind on a private bus, with one session that a test can lock, unlock and make idle.

use zbus::{Connection, OwnedObjectPath};

use crate::in_time;
use crate::notification_server::BackgroundRuntime;

const NAME: &str = "org.freedesktop.login1";
const MANAGER: &str = "/org/freedesktop/login1";
const SESSION: &str = "/org/freedesktop/login1/session/_32";
const USER: &str = "/org/freedesktop/login1/user/_1000";

fn path(text: &'static str) -> OwnedObjectPath {
    OwnedObjectPath::try_from(text).unwrap_or_else(|error| panic!("no path: {error}"))
}

/// Knows no session of the test's process, as logind knows none for a hub that systemd starts; so the client has to use the
/// user's display session.
struct Manager;

#[zbus::interface(name = "org.freedesktop.login1.Manager")]
#[expect(clippy::unused_self, reason = "a method of the interface has it")]
impl Manager {
    #[zbus(name = "GetSessionByPID")]
    fn get_session_by_pid(&self, pid: u32) -> zbus::fdo::Result<OwnedObjectPath> {
        Err(zbus::fdo::Error::Failed(format!("process {pid} is in no session")))
    }

    fn get_session(&self, id: &str) -> zbus::fdo::Result<OwnedObjectPath> {
        Err(zbus::fdo::Error::Failed(format!("no session {id}")))
    }

    fn get_user(&self, uid: u32) -> zbus::fdo::Result<OwnedObjectPath> {
        let is_own = rustix::process::geteuid().as_raw() == uid;
        if is_own { Ok(path(USER)) } else { Err(zbus::fdo::Error::Failed(format!("no user {uid}"))) }
    }
}

struct User;

#[zbus::interface(name = "org.freedesktop.login1.User")]
#[expect(clippy::unused_self, reason = "a method of the interface has it")]
impl User {
    #[zbus(property)]
    fn display(&self) -> (String, OwnedObjectPath) {
        ("2".to_owned(), path(SESSION))
    }
}

#[derive(Default)]
struct Session {
    is_locked: bool,
    is_idle: bool,
    idle_since: u64,
}

#[zbus::interface(name = "org.freedesktop.login1.Session")]
impl Session {
    #[zbus(property)]
    fn locked_hint(&self) -> bool {
        self.is_locked
    }

    #[zbus(property)]
    fn idle_hint(&self) -> bool {
        self.is_idle
    }

    #[zbus(property)]
    fn idle_since_hint(&self) -> u64 {
        self.idle_since
    }

    #[zbus(property)]
    #[expect(clippy::unused_self, reason = "a property of the interface has it")]
    fn state(&self) -> &'static str {
        "active"
    }
}

/// A stand-in for logind, on its own thread.
#[derive(Debug)]
pub struct LoginManager {
    connection: Connection,
    runtime: BackgroundRuntime,
}

impl LoginManager {
    /// Starts it on the bus at this address.
    ///
    /// # Panics
    ///
    /// If the bus does not let it own the name.
    #[track_caller]
    pub fn start(address: &str) -> Self {
        let runtime = BackgroundRuntime::start();
        let building = zbus::connection::Builder::address(address)
            .serve_at(MANAGER, Manager)
            .serve_at(USER, User)
            .serve_at(SESSION, Session::default())
            .name(NAME);
        let connection = runtime.block_on(in_time("logind starts", building.build()));
        let connection = connection.unwrap_or_else(|error| panic!("no logind: {error}"));
        Self { connection, runtime }
    }

    /// Locks or unlocks the screen.
    ///
    /// # Panics
    ///
    /// If the bus is gone.
    pub fn set_locked(&self, is_locked: bool) {
        self.runtime.block_on(in_time("the session changes", async {
            let session = self.session().await;
            session.get_mut().await.is_locked = is_locked;
            let changed = session.get().await.locked_hint_changed(session.signal_emitter()).await;
            changed.unwrap_or_else(|error| panic!("no signal: {error}"));
        }));
    }

    /// Makes the session idle or active.
    ///
    /// # Panics
    ///
    /// If the bus is gone.
    pub fn set_idle(&self, is_idle: bool) {
        self.runtime.block_on(in_time("the session changes", async {
            let session = self.session().await;
            let mut state = session.get_mut().await;
            (state.is_idle, state.idle_since) = (is_idle, state.idle_since + 1);
            drop(state);
            let changed = session.get().await.idle_hint_changed(session.signal_emitter()).await;
            changed.unwrap_or_else(|error| panic!("no signal: {error}"));
        }));
    }

    async fn session(&self) -> zbus::object_server::InterfaceRef<Session> {
        let found = self.connection.object_server().interface::<_, Session>(SESSION).await;
        found.unwrap_or_else(|error| panic!("no session: {error}"))
    }
}

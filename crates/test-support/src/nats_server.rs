//! A NATS server with `JetStream` on loopback, which a test can kill, restart and wipe.

use std::fmt::Write as _;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{started, until};

/// The variable with another server program than the one on the PATH, to test a newer version.
const SERVER: &str = "RINGER_NATS_SERVER";

/// A user of the server. The nkeys are only for tests.
#[derive(Debug, Clone, Copy)]
pub struct NatsUser {
    /// The name of the machine.
    pub machine: &'static str,
    /// The private seed of the nkey.
    pub seed: &'static str,
    public: &'static str,
}

/// Users for tests.
pub const NATS_USERS: [NatsUser; 4] = [
    NatsUser {
        machine: "laptop",
        seed: "SUAL7KATISAM4O6U72X2EREPD6VBCZCHU2G6I6VG74X3LQVMXSQ6ZMUBGY",
        public: "UALP7VHVVOW5WCVTHJKKX52NNRSJIP7VFJ4QF6EULF6TLFPA36RX5WDD",
    },
    NatsUser {
        machine: "box",
        seed: "SUADVKG5BU2ZP3W4QLLVXJTXWI2X7GTH5QHSQYIX4W7GYTVHVB6ZX3M6JA",
        public: "UDJUY7FCNBXW7PKJMM4EHI6N6FDER36UIK4H5Q6KWKOZIAKINJDMA2C3",
    },
    NatsUser {
        machine: "vm",
        seed: "SUACWBGAOYNZXUNFKPLK5L3PLXEWDAD47HOLU2BUA7JD7RH6OI2JDRQ4CU",
        public: "UDGRJBZO7Y4CHX2MSDFUOUGNT2X2VEE74BM6URYDH7TZCGCH4GBW734N",
    },
    NatsUser {
        machine: "eve",
        seed: "SUAA2VRCPYAUHFDHZAC3VUA7IMHUKFKKCQJQRIWVASIXA6TS2YHLQBNQFY",
        public: "UCFNPFQJECB4NN5HEMWWTJGDS5MH7PXS6S4LWINBAB2G45YJSA2V6YFW",
    },
];

/// The `JetStream` configuration of a server.
#[derive(Debug, Clone, Copy)]
enum Streams {
    Has,
    InDomain(&'static str),
    None,
}

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct NatsServer {
    directory: tempfile::TempDir,
    settings: String,
    /// The size limit of its streams, in bytes.
    limit: Option<u64>,
    /// The size of its tmpfs in bytes, if it stores on one. The content is lost when the process ends.
    disk: Option<u64>,
    streams: Streams,
    port: u16,
    process: Option<Child>,
}

impl NatsServer {
    /// Starts a server without authentication.
    pub fn start() -> Self {
        Self::with_settings("")
    }

    /// Starts a server that admits the [`NATS_USERS`] to a team, with the permissions in docs/machines.md.
    pub fn of_team(team: &str) -> Self {
        Self::with_settings(&users(team, "$JS.API"))
    }

    /// Like [`Self::of_team`], but without the permissions for agent lists, like a server set up before Ringer had them.
    pub fn of_team_without_lists(team: &str) -> Self {
        let settings = users(team, "$JS.API");
        Self::with_settings(&settings.replace("ringer-agents.", "unused."))
    }

    /// Starts a server with these settings in addition to its port and directory.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn with_settings(settings: &str) -> Self {
        Self::with_streams(settings, Streams::Has)
    }

    /// Starts a server for leaf nodes, and returns the port for them. Its streams are in a `jetstream` domain.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn hub(domain: &'static str) -> (Self, u16) {
        Self::hub_with_streams(Streams::InDomain(domain))
    }

    /// Like [`Self::hub`], but without a domain.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn hub_without_domain() -> (Self, u16) {
        Self::hub_with_streams(Streams::Has)
    }

    fn hub_with_streams(streams: Streams) -> (Self, u16) {
        let [port] = free_ports();
        let settings = format!("leafnodes {{ listen: \"127.0.0.1:{port}\" }}\n");
        (Self::with_streams(&settings, streams), port)
    }

    /// Starts a leaf node of the hub at this port, without streams. It admits the [`NATS_USERS`] to a team, whose stream they
    /// request in a `jetstream` domain, or without one.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn leaf_of_team(hub: u16, team: &str, domain: Option<&str>) -> Self {
        let remotes = format!("remotes: [{{ url: \"nats-leaf://127.0.0.1:{hub}\" }}]");
        let api = domain.map_or("$JS.API".to_owned(), |domain| format!("$JS.{domain}.API"));
        let users = users(team, &api);
        let settings = format!("leafnodes {{ reconnect: 1, {remotes} }}\n{users}");
        Self::with_streams(&settings, Streams::None)
    }

    /// Starts a leaf node of the hub at this port, with its own streams in a `jetstream` domain.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn leaf_with_streams(hub: u16, domain: &'static str) -> Self {
        let remotes = format!("remotes: [{{ url: \"nats-leaf://127.0.0.1:{hub}\" }}]");
        Self::with_streams(&format!("leafnodes {{ reconnect: 1, {remotes} }}\n"), Streams::InDomain(domain))
    }

    /// Starts the three servers of a cluster, which tolerates the loss of one.
    ///
    /// # Panics
    ///
    /// If they do not start.
    pub fn cluster() -> [Self; 3] {
        let ports: [u16; 3] = free_ports();
        let routes = ports.map(|port| format!("nats-route://127.0.0.1:{port}"));
        ports.map(|port| {
            Self::with_settings(&format!(
                "server_name: server-{port}\ncluster {{ name: c, listen: \"127.0.0.1:{port}\", routes: {routes:?} }}\n"
            ))
        })
    }

    fn with_streams(settings: &str, streams: Streams) -> Self {
        let directory = tempfile::tempdir().unwrap_or_else(|error| panic!("no directory: {error}"));
        let mut server = Self {
            directory,
            settings: settings.to_owned(),
            limit: None,
            disk: None,
            streams,
            port: 0,
            process: None,
        };
        server.run();
        server
    }

    /// Sets the size limit of its streams in bytes, from the next start on.
    pub fn set_limit(&mut self, bytes: Option<u64>) {
        self.limit = bytes;
    }

    /// From the next start on, stores on an empty tmpfs of this size in bytes. Requires [`crate::can_mount`].
    pub fn set_disk(&mut self, bytes: Option<u64>) {
        self.disk = bytes;
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Returns the port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the process id, or 0 if the server is not running.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().map_or(0, Child::id)
    }

    /// Returns the directory with its configuration, log and store.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Starts or restarts the server on its port.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn run(&mut self) {
        self.kill();
        let ports = self.directory.path().join("ports");
        let _ = fs::remove_dir_all(&ports);
        let port = if self.port == 0 { "-1".to_owned() } else { self.port.to_string() };
        let limit = self.limit.map(|bytes| format!(", max_file_store: {bytes}")).unwrap_or_default();
        let store = format!("store_dir: \"{}\"{limit}", self.store().display());
        let streams = match self.streams {
            Streams::Has => format!("jetstream {{ {store} }}\n"),
            Streams::InDomain(domain) => format!("jetstream {{ {store}, domain: {domain} }}\n"),
            Streams::None => String::new(),
        };
        let settings = format!(
            "listen: \"127.0.0.1:{port}\"\nports_file_dir: \"{ports}\"\n{streams}{}",
            self.settings,
            ports = ports.display(),
        );
        let path = self.directory.path().join("server.conf");
        let written = fs::create_dir_all(&ports).and_then(|()| fs::write(&path, settings));
        assert!(written.is_ok(), "the settings are not written");
        let log = self.directory.path().join("server.log");
        let program = std::env::var(SERVER).unwrap_or_else(|_| "nats-server".to_owned());
        let mut command = match self.disk {
            None => Command::new(program),
            Some(bytes) => {
                let script =
                    "mkdir -p \"$1\" && mount -t tmpfs -o size=\"$2\" none \"$1\" && shift 2 && exec \"$@\"";
                let mut command = Command::new("unshare");
                command.args(["--mount", "sh", "-c", script, "sh"]).arg(self.store()).arg(bytes.to_string());
                command.arg(program);
                command
            }
        };
        // Debian installs nats-server in /usr/sbin, which only root has on the PATH.
        let path_variable = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path_variable}:/usr/sbin"));
        command.arg("-c").arg(path).arg("-l").arg(&log).stdin(Stdio::null()).stdout(Stdio::null());
        self.process = Some(started("nats-server", command.stderr(Stdio::null()).spawn()));
        let said = || fs::read_to_string(&log).unwrap_or_default();
        until("the server listens", || {
            let ended = self.process.as_mut().is_some_and(|process| !matches!(process.try_wait(), Ok(None)));
            assert!(!ended, "the server ended: {}", said());
            self.port = port_in(&ports).unwrap_or(self.port);
            self.port != 0 && TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
    }

    /// Deletes everything it stores. The server must not be running.
    ///
    /// # Panics
    ///
    /// If the store cannot be deleted.
    pub fn wipe(&self) {
        assert!(fs::remove_dir_all(self.store()).is_ok(), "the store is not removed");
    }

    /// Returns the directory of its streams.
    pub fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns free ports on loopback, for servers that must announce their port to others before they start.
fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let listeners = std::array::from_fn(|_| TcpListener::bind(("127.0.0.1", 0)));
    listeners.map(|listener: std::io::Result<TcpListener>| {
        let address = listener.and_then(|listener| listener.local_addr());
        address.unwrap_or_else(|error| panic!("no port: {error}")).port()
    })
}

/// Reads the port from the file that the server writes once it listens.
fn port_in(ports: &Path) -> Option<u16> {
    let file = fs::read_dir(ports).ok()?.flatten().next()?;
    let text = fs::read_to_string(file.path()).ok()?;
    text.split('"').find_map(|word| word.split_once("://127.0.0.1:")?.1.parse().ok())
}

/// Returns settings that admit the [`NATS_USERS`] to a team. They request its stream under the prefix `api`.
fn users(team: &str, api: &str) -> String {
    let mut users = String::new();
    for NatsUser { machine, public, .. } in NATS_USERS {
        // Writing into a String cannot fail.
        let _ = writeln!(users, "{{ nkey: {public}, permissions: {} }}", permissions(team, machine, api));
    }
    format!("authorization {{ users: [\n{users}] }}\n")
}

/// Returns the permissions of a machine in a team.
fn permissions(team: &str, machine: &str, api: &str) -> String {
    let (stream, consumer) = (format!("ringer-{team}"), format!("ringer-{machine}"));
    let publish = [
        format!("ringer.{team}.{machine}.>"),
        format!("ringer-answers.{team}.*.{machine}"),
        format!("ringer-agents.{team}.{machine}"),
        format!("{api}.STREAM.INFO.{stream}"),
        format!("{api}.STREAM.CREATE.{stream}"),
        format!("{api}.STREAM.MSG.GET.{stream}"),
        format!("{api}.CONSUMER.*.{stream}.{consumer}"),
        format!("{api}.CONSUMER.CREATE.{stream}.{consumer}.>"),
        format!("{api}.CONSUMER.MSG.NEXT.{stream}.{consumer}"),
        format!("$JS.ACK.{stream}.{consumer}.>"),
    ];
    let subscribe = [
        format!("_INBOX.{machine}.>"),
        format!("ringer-answers.{team}.{machine}.*"),
        format!("ringer-agents.{team}.*"),
    ];
    format!("{{ publish: {publish:?}, subscribe: {subscribe:?}, allow_responses: true }}")
}

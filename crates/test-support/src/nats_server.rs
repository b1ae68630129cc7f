//! A NATS server with its streams on loopback, which a test may kill, start again and empty.

use std::fmt::Write as _;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{started, until};

/// Names another server than the one on the PATH, to try a newer version.
const SERVER: &str = "RINGER_NATS_SERVER";

/// A user of the server: an nkey, made for tests only.
#[derive(Debug, Clone, Copy)]
pub struct NatsUser {
    /// What the machine is called.
    pub machine: &'static str,
    /// What it proves itself with.
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

/// Whether a server has streams.
#[derive(Debug, Clone, Copy)]
enum Streams {
    Has,
    InDomain(&'static str),
    None,
}

/// The server, which ends with this.
#[derive(Debug)]
pub struct NatsServer {
    directory: tempfile::TempDir,
    settings: String,
    /// The most that its streams may take, in bytes.
    limit: Option<u64>,
    /// The size of the disk that it stores on, in bytes, if that is one of its own. It is lost with the process.
    disk: Option<u64>,
    /// Whether it has streams, and in which `jetstream` domain.
    streams: Streams,
    port: u16,
    process: Option<Child>,
}

impl NatsServer {
    /// A server that lets everybody in.
    pub fn start() -> Self {
        Self::with_settings("")
    }

    /// A server that lets the [`NATS_USERS`] into a team, with the permissions that docs/machines.md names.
    pub fn of_team(team: &str) -> Self {
        Self::with_settings(&users(team, "$JS.API"))
    }

    /// The same, but without the permission for lists of agents, as an operator set it before there were any.
    pub fn of_team_without_lists(team: &str) -> Self {
        let settings = users(team, "$JS.API");
        Self::with_settings(&settings.replace("ringer-agents.", "unused."))
    }

    /// A server with these settings beside its port and its directory.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn with_settings(settings: &str) -> Self {
        Self::with_streams(settings, Streams::Has)
    }

    /// A server that leaf nodes connect to, on the port that it gives. Its streams are in a `jetstream` domain.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn hub(domain: &'static str) -> (Self, u16) {
        Self::hub_with_streams(Streams::InDomain(domain))
    }

    /// The same without a domain.
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

    /// A leaf node of the hub at that port, without streams. It lets the [`NATS_USERS`] into a team, whose stream they ask for
    /// in a `jetstream` domain, or without one.
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

    /// A leaf node of the hub at that port, with streams of its own, which are in a `jetstream` domain.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn leaf_with_streams(hub: u16, domain: &'static str) -> Self {
        let remotes = format!("remotes: [{{ url: \"nats-leaf://127.0.0.1:{hub}\" }}]");
        Self::with_streams(&format!("leafnodes {{ reconnect: 1, {remotes} }}\n"), Streams::InDomain(domain))
    }

    /// The three servers of a cluster, which can lose one of them.
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

    /// The most that its streams may take from its next start on, in bytes.
    pub fn set_limit(&mut self, bytes: Option<u64>) {
        self.limit = bytes;
    }

    /// From its next start on, it stores on an empty disk of so many bytes. Only where [`crate::can_mount`] says so.
    pub fn set_disk(&mut self, bytes: Option<u64>) {
        self.disk = bytes;
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The id of its process; 0 if it does not run.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().map_or(0, Child::id)
    }

    /// Where it is, and what it stores.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Kills it.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Starts it again where it was.
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
        // Only root has the directory of Debian's one on the PATH.
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

    /// Empties what it stores, while it does not run.
    ///
    /// # Panics
    ///
    /// If that is not possible.
    pub fn wipe(&self) {
        assert!(fs::remove_dir_all(self.store()).is_ok(), "the store is not removed");
    }

    /// Where it stores its streams.
    pub fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ports on loopback that are free. A server that names its port to others has to know it before it starts.
fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let listeners = std::array::from_fn(|_| TcpListener::bind(("127.0.0.1", 0)));
    listeners.map(|listener: std::io::Result<TcpListener>| {
        let address = listener.and_then(|listener| listener.local_addr());
        address.unwrap_or_else(|error| panic!("no port: {error}")).port()
    })
}

/// The port in the file that the server writes once it listens.
fn port_in(ports: &Path) -> Option<u16> {
    let file = fs::read_dir(ports).ok()?.flatten().next()?;
    let text = fs::read_to_string(file.path()).ok()?;
    text.split('"').find_map(|word| word.split_once("://127.0.0.1:")?.1.parse().ok())
}

/// Settings that let the [`NATS_USERS`] into a team, whose stream they ask for below `api`.
fn users(team: &str, api: &str) -> String {
    let mut users = String::new();
    for NatsUser { machine, public, .. } in NATS_USERS {
        // Writing into a String cannot fail.
        let _ = writeln!(users, "{{ nkey: {public}, permissions: {} }}", permissions(team, machine, api));
    }
    format!("authorization {{ users: [\n{users}] }}\n")
}

/// What a machine may do in a team.
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

//! A notification server that shows nothing and tells everything: `recorder BUS-ADDRESS [--tags]`.
//!
//! It does what the standard asks: a popup that is replaced keeps its number, one that is closed is told of. With
//! `--tags` it also replaces by `x-dunst-stack-tag`, as dunst does: under a new number, and the old one is closed.
//!
//! Each line is told before the caller is answered, its fields divided by tabs:
//!
//! ```text
//! ready
//! shown   MICROSECONDS SENDER NUMBER NUMBER-IT-TOOK-THE-PLACE-OF-OR-0 TAG BODY
//! closed  MICROSECONDS SENDER NUMBER
//! ```
//!
//! It ends when its standard input does.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::error::Error;
use std::io::{self, Write as _};
use std::time::Instant;

use tokio::task;
use zbus::message::Header;
use zbus::{Connection, OwnedVariant};

const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";
/// Why a popup was closed.
const RAN_OUT: u32 = 1;
const BY_CALL: u32 = 3;

struct Recorder {
    begun: Instant,
    by_tag: bool,
    last: u32,
    /// The popups that are open, with their tags.
    open: BTreeMap<u32, String>,
}

// One call after the other, in the order in which they came.
#[zbus::interface(name = "org.freedesktop.Notifications", spawn = false)]
impl Recorder {
    #[expect(clippy::unused_self, reason = "a method of the interface")]
    fn get_capabilities(&self) -> Vec<&'static str> {
        vec!["body", "body-markup", "actions", "persistence"]
    }

    #[expect(clippy::unused_self, reason = "a method of the interface")]
    fn get_server_information(&self) -> (&'static str, &'static str, &'static str, &'static str) {
        ("recorder", "ringer", "1", "1.2")
    }

    #[expect(clippy::too_many_arguments, reason = "the standard has that many")]
    async fn notify(
        &mut self,
        #[zbus(header)] header: Header<'_>,
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
        // The text says which one it is.
        drop((app, icon, summary, actions, expire));
        let tag = hints.get("x-dunst-stack-tag").and_then(|tag| tag.downcast_ref::<&str>().ok());
        let tag = tag.unwrap_or_default().to_owned();
        let (number, instead) = self.place(replaces, &tag);
        self.tell("shown", &header, &format!("{number}\t{instead}\t{}\t{}", flat(&tag), flat(&body)));
        if instead > 0 && instead != number {
            self.open.remove(&instead);
            closed(connection, instead, RAN_OUT).await;
        }
        self.open.insert(number, tag);
        number
    }

    async fn close_notification(
        &mut self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
        number: u32,
    ) {
        if self.open.remove(&number).is_some() {
            self.tell("closed", &header, &number.to_string());
            closed(connection, number, BY_CALL).await;
        }
    }
}

impl Recorder {
    /// The number of a new popup, and that of the one whose place it takes, or 0.
    fn place(&mut self, replaces: u32, tag: &str) -> (u32, u32) {
        if replaces > 0 {
            // The standard wants this number to be given back even if there is no such popup any more.
            return (replaces, if self.open.contains_key(&replaces) { replaces } else { 0 });
        }
        self.last += 1;
        let same = self.open.iter().find(|(_, own)| self.by_tag && !tag.is_empty() && *own == tag);
        (self.last, same.map_or(0, |(number, _)| *number))
    }

    fn tell(&self, what: &str, header: &Header<'_>, rest: &str) {
        let sender = header.sender().map_or("-", |sender| sender.as_str());
        let line = format!("{what}\t{}\t{sender}\t{rest}\n", self.begun.elapsed().as_micros());
        // The reader may have ended; the input ends then, too.
        let _ = io::stdout().write_all(line.as_bytes()).and_then(|()| io::stdout().flush());
    }
}

/// One field.
fn flat(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}

async fn closed(connection: &Connection, number: u32, why: u32) {
    // The bus may be gone; then no process is left to notify.
    let _ = connection.emit_signal(None::<&str>, PATH, NAME, "NotificationClosed", &(number, why)).await;
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().ok_or("recorder BUS-ADDRESS [--tags]")?;
    let by_tag = arguments.next().as_deref() == Some("--tags");
    let recorder = Recorder { begun: Instant::now(), by_tag, last: 0, open: BTreeMap::new() };
    let building = zbus::connection::Builder::address(address.as_str()).serve_at(PATH, recorder).name(NAME);
    let _connection = building.build().await?;
    writeln!(io::stdout(), "ready")?;
    io::stdout().flush()?;
    task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await??;
    Ok(())
}

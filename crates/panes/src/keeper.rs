//! The keeper: a process that owns PTYs and the programs on them, so that the workspace server can crash or be upgraded while
//! people's programs go on running.
//!
//! [`serve`] is the keeper: one thread, one `poll` loop. It starts programs for the one connected server, sends it the master
//! of each PTY (`SCM_RIGHTS`), and reports how programs end. It never reads a master while a server is connected, so a server
//! that is stopped stalls its panes. Without a server, it reads them and keeps the last MiB of each for the next one.
//! [`KeeperClient`] is the server's side.
//!
//! ```no_run
//! use ringer_panes::keeper::{KeeperClient, KeeperEvent, StartPane};
//!
//! let (mut keeper, panes) = KeeperClient::connect("/run/user/1000/ringer/keeper.sock".as_ref())?;
//! for pane in panes {
//!     println!("{} runs on as process {}; {} bytes came meanwhile", pane.id, pane.pid, pane.output.len());
//! }
//! keeper.start(&StartPane {
//!     id: "1".to_owned(),
//!     argv: vec!["/bin/sh".into()],
//!     environment: vec![("TERM".into(), "xterm-256color".into())],
//!     directory: "/".into(),
//!     columns: 80,
//!     lines: 24,
//!     note: String::new(),
//! })?;
//! // Once `keeper` is readable:
//! for event in keeper.events()? {
//!     if let KeeperEvent::Started { id, master, .. } = event {
//!         println!("{id} is {master:?}");
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # The protocol, version 1
//!
//! The protocol is frozen: a keeper may be older than every server it meets. A message is one line of JSON of at most 1 MiB,
//! followed by as many raw bytes as its `bytes` field says, if it has one. A descriptor goes with the first byte of the line
//! that needs it. Bytes that may not be text (arguments, the environment, directories) are a string if they are UTF-8, and
//! otherwise an array of numbers.
//!
//! | from | message | |
//! |---|---|---|
//! | server | `{"version":1}` | first. If the version differs, the keeper only answers; the server may go on with version 1 |
//! | keeper | `{"version":1,"panes":N}` | the answer, before N messages `pane`. It disconnects the previous server |
//! | keeper | `{"pane":{"id","pid","tty","note","ending","dropped","bytes"}}` | with the master; `bytes` of output follow |
//! | server | `{"start":{"id","argv","environment","directory","columns","lines","note"}}` | pairs of the whole environment |
//! | keeper | `{"started":{"id","pid","tty"}}` | with the master |
//! | keeper | `{"failed":{"id","why"}}` | the answer to any request that is refused or unknown |
//! | server | `{"note":{"id","text"}}` | a text of the server, at most 64 KiB, which `pane` returns |
//! | server | `{"forget":{"id"}}` | hangs up the program and drops the pane |
//! | keeper | `{"ended":{"id","ending"}}` | `ending` is `{"exit":0}` or `{"signal":9}`. The pane stays until it is forgotten |
//!
//! The output of `pane` is from the time without a server, and `dropped` bytes before it are lost. It is dropped with the first
//! request of a server that received it, so a server saves it first. If a server disconnects without a request, the next one
//! receives the same bytes and those that came after them. The third server is the last that receives them.
//!
//! # Bounds
//!
//! There are at most 512 panes, each with 1 MiB of output, 64 KiB of note and 256 bytes of id. A server that does not read is
//! disconnected when 1 MiB is queued for it. A connection that sends nothing is closed after 2 s. The keeper exits when it has
//! had neither a pane nor a connection for 5 s. It only blocks while it starts a program, for as long as the program's
//! directory takes to be entered.

mod client;
mod connection;
mod event_loop;
mod kept_panes;
mod wire;

pub use client::{KeeperClient, KeeperEvent, KeptPane, StartPane};
#[doc(hidden)]
pub use connection::rewrite_requests;
pub use event_loop::serve;

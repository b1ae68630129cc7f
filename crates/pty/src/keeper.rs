//! The keeper: a process that owns PTYs and the programs on them, so that the workspace server can crash or be upgraded while
//! people's programs run on.
//!
//! [`serve`] is the keeper: one thread, one `poll` loop. It starts programs for the one server that is connected, hands it the
//! master of each PTY (`SCM_RIGHTS`), and says how programs end. It never reads a master while a server is connected: a server
//! that is stopped stalls its panes. Without a server it reads them, and keeps the last MiB of each for the next one.
//! [`KeeperClient`] is the server's side.
//!
//! ```no_run
//! use ringer_pty::keeper::{KeeperClient, KeeperEvent, StartPane};
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
//! It is frozen: a keeper may be older than every server it meets. A message is one line of JSON of at most 1 MiB, and then as
//! many raw bytes as its `bytes` says, if it has that. A descriptor comes with the first byte of the line that needs it. Bytes that may be no text
//! (arguments, the environment, directories) are a string where they are UTF-8, else an array of numbers.
//!
//! | from | message | |
//! |---|---|---|
//! | server | `{"version":1}` | first. With another version nothing happens but the answer; the server may go on with version 1 |
//! | keeper | `{"version":1,"panes":N}` | the answer. N messages `pane` follow. A server that was connected is disconnected |
//! | keeper | `{"pane":{"id","pid","tty","note","ending","dropped","bytes"}}` | with the master, and `bytes` of output that came without a server. `dropped` bytes came before them |
//! | server | `{"start":{"id","argv","environment","directory","columns","lines","note"}}` | `environment` is all of it, as pairs |
//! | keeper | `{"started":{"id","pid","tty"}}` | with the master |
//! | keeper | `{"failed":{"id","why"}}` | to any request; also to one that it does not know |
//! | server | `{"note":{"id","text"}}` | a text of the server's own, at most 64 KiB, to be given back in `pane` |
//! | server | `{"forget":{"id"}}` | hangs the program up and drops the pane |
//! | keeper | `{"ended":{"id","ending"}}` | `ending` is `{"exit":0}` or `{"signal":9}`. The pane stays until it is forgotten |
//!
//! The output that came without a server is dropped with the first request of a server that got it: a server saves it first. One that
//! goes without a request leaves it to the next one: the same bytes, and those that came after them. The third server is the last that gets it.
//!
//! # Bounds
//!
//! 512 panes, for each 1 MiB of output, 64 KiB of note and 256 bytes of id. A server that does not read what it is sent is
//! disconnected when 1 MiB waits for it. A connection that says nothing is closed after 2 s. The keeper ends when it has had neither
//! a pane nor a connection for 5 s. It waits for nothing but the start of a program, which takes as long as its directory
//! takes to be entered.

mod client;
mod connection;
mod event_loop;
mod kept_panes;
mod message_buffer;
mod pane_process;
mod server_connection;
mod wire;

pub use client::{KeeperClient, KeeperEvent, KeptPane, StartPane};
pub use event_loop::serve;
#[doc(hidden)]
pub use server_connection::rewrite_requests;

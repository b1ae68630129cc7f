//! Panes: a terminal multiplexer that draws a ring around the pane that needs the person.
//!
//! The work is split among three processes, so that no process that can crash or be upgraded holds the agents. The keeper
//! ([`keeper`]) holds the programs and their PTYs. The server ([`serve`]) holds the screens, the layout and the views
//! of the clients; it draws for each client and is a host on the hub's socket. A client ([`attach`]) lends its terminal to the
//! server.
//!
//! # What it never does
//!
//! It never makes a program wait for the hub or for a client: a client that is behind misses frames. It draws nothing while
//! nothing changes, and never draws what is hidden. Of a program's output, only cells, links and clipboard text reach a client's
//! terminal.
//!
//! # Inside
//!
//! `state` is pure: program output, keys and hub orders go in with the time, and `Effect`s come out. It owns workspaces (each
//! with a `layout`), panes (each with an `emulator`) and a `view` for each window. `draw` fills a `screen`, and only the
//! difference to what a window shows is sent. `server` is the shell around it: one thread that polls the keeper, the PTYs, the
//! windows and the hub. `client` lends its terminal to the server. A server may be killed at any time: the keeper holds the
//! programs, `server/saver` saves screens and layouts, and `server/restoring` puts both together.

#![forbid(unsafe_code)]

mod actions;
mod client;
#[doc(hidden)]
pub mod descriptor_socket;
mod draw;
mod effect;
mod emulator;
mod file_writer;
mod hub_host;
pub mod keeper;
mod layout;
mod link_rule;
mod open_notifications;
mod outer_terminal;
mod pane;
mod paths;
mod protocol;
mod saved_session;
mod screen;
mod server;
mod server_version;
mod sidebar_page;
mod snapshot;
mod state;
mod style;
mod unread_output;
mod view;
mod workspace;

pub use actions::PaneKeys;
pub use client::{ClientError, ClientSettings, Surroundings, attach, request, running_server};
pub use layout::SplitDirection;
pub use paths::PanePaths;
pub use protocol::{Answer, PaneEntry, Request};
#[doc(hidden)]
pub use protocol::{Frame, FrameKind, FrameReader, rewrite_frame};
pub use protocol::{NameError, check_name};
pub use saved_session::saved_panes;
pub use server::{MayType, ServerOptions, Typist, serve};
pub use server_version::{RunningServer, ServerAge};

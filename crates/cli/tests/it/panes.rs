//! Panes as people meet them: the real server and keeper, real shells, and windows in real PTYs.

mod buttons;
mod coming_back;
pub(crate) mod commands;
mod conformance;
mod everyday;
mod half_open;
mod hostile;
mod input;
mod killed;
mod lists;
mod one_server;
mod raw_client;
mod rings;
mod saving;
pub(crate) mod session;
mod terminal;
mod vttest;
mod window;

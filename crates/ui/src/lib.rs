//! The terminal UI: the inbox, and answering in place.
//!
//! Everything but [`run`] is pure: [`Data`], keys and times go in, [`Effect`]s and a drawn buffer come out. [`run`] is the
//! loop that waits for the terminal, the hub and the clock at once, and draws when something has changed.
//!
//! # What it never does
//!
//! It never waits: everything that can take its time runs on a thread, behind [`Backend`]. It draws nothing while nothing
//! changes. It shows no text of others as it came: what a terminal would not show, or would obey, is taken out or escaped.
//!
//! # Inside
//!
//! `inbox` is the state: data, keys and times go in, effects come out. `draw` only reads it. `app` is the loop: it waits for the terminal, the
//! threads and the clock at once, and reaches the rest of Ringer through the `Backend` trait. `input` makes keys of the terminal's bytes.

#![forbid(unsafe_code)]

mod app;
mod backend;
pub mod columns;
mod data;
mod dialog;
mod dialog_layout;
mod draw;
mod inbox;
mod input;
mod keys;
mod row_action;
mod row_list;
mod rows;
mod terminal;
mod text_input;
mod theme;
mod view;

pub use app::{Settings, run};
pub use backend::{Backend, ProgramAnswer, ProgramQuestion, PromptDetails, Request, Response};
pub use data::{Agent, Data, FooterToast, Notification};
pub use inbox::{Effect, Inbox};
pub use input::{Input, InputParser, MAX_PASTE};
pub use keys::{Action, InvalidKey, KEY_EXAMPLES, KeyMap, KeyPress};
pub use rows::age;
pub use theme::{Palette, Theme, kind_sign, state_sign, state_word};

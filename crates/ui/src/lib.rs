//! The terminal UI: the inbox, and answering in place.
//!
//! Everything but [`run`] is pure: [`Data`], keys and times go in, [`Effect`]s and a drawn buffer come out. [`run`] is the
//! loop that waits for the terminal, the hub and the clock at once, and draws when something has changed.
//!
//! # Invariants
//!
//! The loop never blocks, except while the setup or the editor owns the terminal: everything else that is slow runs on a thread,
//! behind [`Backend`]. It draws nothing while nothing changes. Text from outside is never printed raw: control sequences and
//! invisible characters are removed or escaped.
//!
//! # Modules
//!
//! `inbox` is the state, and `draw` only reads it. `app` is the loop; it reaches the rest of Ringer through the `Backend` trait.
//! `input` turns the terminal's bytes into keys.

#![forbid(unsafe_code)]

mod app;
mod backend;
pub mod columns;
mod dialog;
mod draw;
mod inbox;
mod input;
mod keys;
mod row_list;
mod rows;
mod terminal;
mod text_input;
mod theme;
mod view;

pub use app::{Settings, run};
pub use backend::{
    Agent, Backend, Data, FooterToast, Notification, ProgramAnswer, ProgramQuestion, PromptDetails, Request,
    Response,
};
pub use inbox::{Effect, Inbox};
pub use input::{Input, InputParser, MAX_PASTE};
pub use keys::{Action, InvalidKey, KEY_EXAMPLES, KeyMap, KeyPress};
pub use rows::age;
pub use theme::{Palette, Theme, kind_sign, state_sign, state_word};

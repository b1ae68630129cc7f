//! The delivery channels: everything that leaves the process to reach the person, and the hook programs that may change it.
//!
//! | channel | type |
//! |---|---|
//! | the terminal's own notification | [`terminal::write`] |
//! | a desktop popup, over D-Bus or as a banner of macOS | [`Desktop`] |
//! | a sound | [`Sound`] |
//! | the person's command | [`PersonCommand`] |
//! | a service over HTTP, such as ntfy or Slack | [`Webhook`] |
//! | a policy hook, which may change the notification | [`HookProgram`] |
//!
//! ```no_run
//! use ringer_deliver::{Desktop, DesktopEvent, Note, Popup, REPLY_DEADLINE};
//!
//! # async fn tell(note: Note) -> Result<(), ringer_deliver::Error> {
//! let address = std::env::var("DBUS_SESSION_BUS_ADDRESS").ok();
//! let (desktop, mut events) = Desktop::new(address, Vec::new(), REPLY_DEADLINE);
//! let shown = desktop.show(Popup::of(&note)).await?;
//! println!("popup {} of {}", shown.handle.number, shown.handle.server);
//! if let Some(DesktopEvent::Dismissed(id)) = events.recv().await {
//!     println!("{id} was read on the desktop");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What it never does
//!
//! It decides nothing: what is delivered by which channel, and what comes next when one fails, is the engine's business. It
//! puts no text of a message into an argument or through a shell. It writes only to terminals that this user owns. It
//! follows no redirect, and no secret or webhook address appears in an error. It never blocks the runtime it runs in.
//!
//! # Its bounds
//!
//! Everything has a deadline, and dropping a future ends what it began. A program: its timeout, [`MAX_ANSWER`] of
//! answer, [`MAX_STDERR`] of standard error. The desktop: [`MAX_QUEUED`] requests, [`MAX_POPUPS`] popups remembered,
//! [`MAX_EVENTS`] events unread. A webhook: [`ATTEMPT_TIMEOUT`] an attempt, [`MAX_ANSWER_BODY`] of answer,
//! [`MAX_PAUSE`] between attempts.

#![forbid(unsafe_code)]

mod command;
mod desktop;
mod disk;
mod error;
mod hook;
mod note;
mod program;
mod sound;
pub mod terminal;
mod webhook;

pub use command::{COMMAND_TIMEOUT, PersonCommand};
pub use desktop::{
    Desktop, DesktopEvent, DesktopStatus, DisplayedPopup, MAX_EVENTS, MAX_POPUPS, MAX_QUEUED, Popup,
    PopupHandle, PreviousPopup, REPLY_DEADLINE,
};
pub use error::Error;
pub use hook::{DEFAULT_TIMEOUT, HookProgram, MAX_ANSWER};
pub use note::{Note, kind_icon};
pub use program::{DRAIN_AFTER_EXIT, KILL_AFTER, MAX_STDERR, Output, Program, ProgramOutcome};
pub use sound::{SOUND_TIMEOUT, Sound};
pub use webhook::{
    ATTEMPT_TIMEOUT, MAX_ANSWER_BODY, MAX_PAUSE, MAX_SECRET, SecretFile, Webhook, check_address,
    service_names,
};

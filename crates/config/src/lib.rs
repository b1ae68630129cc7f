//! Settings: the person's own TOML file, and an optional small one in each repository.
//!
//! A broken file never takes the hub down and is never applied in part: every problem is reported with its line and column,
//! and the last good settings stay in force ([`LastGood`]). This crate reads neither environment variables nor the clock;
//! paths and texts are arguments, and only [`load`] and [`load_repository`] read settings files.
//!
//! ```
//! use std::path::Path;
//! use ringer_config::{self as config, Rules};
//!
//! let path = Path::new("/people/ada/.config/ringer/config.toml");
//! let config = config::parse(path, Some(Path::new("/people/ada")), "[notify]\nring = false\n", &Rules::default())?;
//! assert!(!config.notify.ring);
//!
//! let errors = config::parse(path, None, "[notify]\nrign = false\n", &Rules::default()).unwrap_err();
//! assert_eq!(errors.to_string(), format!("{}:2:1: unknown key notify.rign", path.display()));
//! assert_eq!(errors.0[0].hint.as_deref(), Some("did you mean \"ring\"?"));
//! # Ok::<(), config::ConfigErrors>(())
//! ```
//!
//! Limits: a file has at most [`MAX_FILE`] bytes, and at most [`MAX_PROBLEMS`] of its problems are reported.

mod documents;
mod entry;
mod file;
mod notify;
mod problem;
mod reader;
mod relay_entry;
mod rules;
mod settings;
mod table;
mod trust;
mod types;

#[cfg(test)]
mod tests;

pub use documents::{example, reference_text, schema_text};
pub use entry::{ChannelEntry, HookEntry, Watch, WebhookEntry, WebhookWhen};
pub use file::{
    Environment, MAX_FILE, REPOSITORY_FILE, load, load_repository, parse, parse_repository, user_path,
};
pub use notify::{Matcher, Notify, QuietHours, SoundSetting, TitleMark};
pub use problem::{ConfigError, ConfigErrors, MAX_PROBLEMS, nearest};
pub use reader::{Origin, Source};
pub use relay_entry::{RelayEntry, RelayLink, RepositoryEntry, TeamLink};
pub use rules::{Rules, TableRule, WebhookRule};
pub use settings::{Answers, Change, Channels, Config, LastGood, OnePane, RepositorySettings, Tmux};
pub use trust::{TrustError, Trustable, Trusted};

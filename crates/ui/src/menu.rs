//! A choice of how long something is to be quiet.

use crate::backend::Request;

/// What is to be quiet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Quiet {
    /// A notification comes back later.
    Snooze { id: String },
    /// An agent is muted.
    Mute { agent: String },
}

/// The menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Menu {
    quiet: Quiet,
    title: String,
}

const SNOOZE: [(&str, &str); 5] = [
    ("10 minutes", "10m"),
    ("20 minutes", "20m"),
    ("1 hour", "1h"),
    ("4 hours", "4h"),
    ("tomorrow 09:00", "tomorrow"),
];
const MUTE: [(&str, &str); 4] =
    [("1 hour", "1h"), ("4 hours", "4h"), ("tomorrow 09:00", "tomorrow"), ("unmute", "")];

impl Menu {
    pub(crate) fn new(quiet: Quiet, label: &str) -> Self {
        let title = match quiet {
            Quiet::Snooze { .. } => format!("Put off: {label}"),
            Quiet::Mute { .. } => format!("Mute: {label}"),
        };
        Self { quiet, title }
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    fn entries(&self) -> &'static [(&'static str, &'static str)] {
        match self.quiet {
            Quiet::Snooze { .. } => &SNOOZE,
            Quiet::Mute { .. } => &MUTE,
        }
    }

    /// What can be chosen, with its number.
    pub(crate) fn lines(&self) -> Vec<String> {
        (1..).zip(self.entries()).map(|(number, (words, _))| format!("[{number}] {words}")).collect()
    }

    /// What a number stands for.
    pub(crate) fn choose(&self, number: u32) -> Option<Request> {
        let (_, until) = self.entries().get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        let until = (*until).to_owned();
        Some(match &self.quiet {
            Quiet::Snooze { id } => Request::Snooze { id: id.clone(), until },
            Quiet::Mute { agent } if until.is_empty() => Request::Unmute { agent: agent.clone() },
            Quiet::Mute { agent } => Request::Mute { agent: agent.clone(), until },
        })
    }
}

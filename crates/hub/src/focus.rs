//! Going to a place: whose it is, and what has to run until the person is there.

use std::time::Duration;

use ringer_core::{Event, MessageId, Place, Priority, Toast};
use serde_json::{Value, json};

use crate::dispatch::Dispatcher;
use crate::host::Focused;
use crate::tmux::{TmuxPane, Unreachable};

/// How long a hub stays only because a popup may be clicked: from one evening to the next.
const WAIT_FOR_CLICKS: Duration = Duration::from_hours(24);

/// What came of wanting to go somewhere.
pub(crate) enum Went {
    /// The person is there, by that host; or it is known at once that they cannot be.
    At(Result<&'static str, Unreachable>),
    /// tmux has to be asked; see [`bring`].
    By(TmuxPane),
}

impl Dispatcher {
    /// Goes to a place.
    pub(crate) fn focus(&mut self, place: &Place) -> Went {
        for host in &mut self.hosts {
            match host.focus(place) {
                Focused::Done => return Went::At(Ok(host.name())),
                Focused::Cannot(why) => return Went::At(Err(Unreachable::new(why))),
                Focused::Pane(pane) => return Went::By(pane),
                Focused::NotMine => {}
            }
        }
        Went::At(Err(Unreachable::new("it came from no terminal")))
    }

    /// The person clicked "Show" on a popup, and this came of it. Only who got there has read it.
    pub(crate) fn shown(&mut self, id: &MessageId, went: Result<(), Unreachable>) {
        let why = match went {
            Ok(()) => match self.read_by_going(id) {
                Ok(()) => return,
                Err(refusal) => refusal.message,
            },
            Err(unreachable) => unreachable.to_string(),
        };
        self.log.line(format!("cannot show {id}: {why}"));
        self.handle(Event::AddTrailStep { id: id.clone(), text: format!("cannot be shown: {why}") });
        // At once: it is the answer to a click.
        let toast = Toast::new(format!("show-{id}"), Priority::Immediate, format!("cannot show it: {why}"));
        self.handle(Event::Toast(toast));
    }

    /// Whether a popup may be on the screen that nobody could hear a click on if the hub ended.
    pub(crate) fn waits_for_clicks(&mut self, now: Duration) -> bool {
        if self.desktop.shown() == 0 {
            return false;
        }
        let since = *self.only_popups_since.get_or_insert(now);
        now.saturating_sub(since) < WAIT_FOR_CLICKS
    }
}

/// Lets tmux bring the person to a pane, off the loop.
pub(crate) async fn bring(pane: TmuxPane) -> Result<&'static str, Unreachable> {
    pane.select().await.map(|()| "tmux")
}

/// As it is answered.
pub(crate) fn view(went: Result<&'static str, Unreachable>) -> Value {
    match went {
        Ok(host) => json!({ "focused": true, "host": host }),
        Err(Unreachable { why, hint: None, .. }) => json!({ "focused": false, "why": why }),
        Err(Unreachable { why, hint: Some(hint), .. }) => {
            json!({ "focused": false, "why": why, "hint": hint })
        }
    }
}

//! Shows notifications in terminals of other programs. The environment of the session leader says which terminal it is.

use std::path::Path;

use ringer_core::MessageId;
use ringer_core::message::{self, ShownKind, SurfaceId, TmuxSurface};
use ringer_deliver::{Error, Note, kind_icon, terminal};
use ringer_journal::{Home, SessionLeader, SessionLeaderError};
use ringer_term::{
    AppleBell, Channel, Detection, Env, Method, Multiplexer, NotificationId, OutgoingNotification,
    Terminator, Urgency, choose_method, close99, detect, wrap,
};

use crate::delivery::part_calls::PartCalls;
use crate::delivery::probed_terminal::ProbedTerminal;

/// A terminal that another program runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// The device. `None` for a tmux pane that is known only by its id; tmux knows the device.
    pub(crate) tty: Option<String>,
    /// The surface. It names the session too, because device names are reused.
    pub(crate) surface: SurfaceId,
}

/// The reason why a terminal showed nothing, in words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotShown {
    /// The terminal was closed.
    Gone(String),
    /// The terminal exists, as far as is known.
    Failed(String),
}

/// A terminal notification that can be withdrawn.
#[derive(Debug, Clone)]
pub(crate) struct ShownInTerminal {
    surface: SurfaceId,
    tty: String,
    close: Vec<u8>,
}

impl ShownInTerminal {
    pub(crate) async fn withdraw(&self) -> Result<(), Error> {
        write(&self.surface, &self.tty, &self.close).await
    }
}

impl Terminal {
    /// Returns the device and the environment of its session leader, if the device still belongs to the surface.
    pub(crate) async fn look(&self, parts: &PartCalls) -> Result<(String, Env), NotShown> {
        if let Some(tty) = self.tty.clone() {
            let environment = self.environment_of(tty.clone()).await;
            // The device of a closed pane may belong to a stranger by now.
            let pane = self.surface.tmux();
            if pane.is_none_or(|pane| environment.as_ref().is_ok_and(|own| is_around(pane, own))) {
                return Ok((tty, environment?));
            }
        }
        if self.surface.tmux().is_none() {
            return Err(NotShown::Failed(format!("the device of {} is not known", self.surface)));
        }
        let tty = parts.tty(self.surface.clone()).await.map_err(|why| {
            if why.is_gone { NotShown::Gone(why.to_string()) } else { NotShown::Failed(why.to_string()) }
        })?;
        let environment = self.environment_of(tty.clone()).await?;
        Ok((tty, environment))
    }

    async fn environment_of(&self, tty: String) -> Result<Env, NotShown> {
        let surface = self.surface.clone();
        let environment = tokio::task::spawn_blocking(move || environment(&surface, &tty)).await;
        environment.map_err(|error| NotShown::Failed(error.to_string()))?
    }

    /// Shows a notification through the terminal's own channel. Returns the method in words, and how to withdraw it.
    pub(crate) async fn show(
        &self,
        note: &Note,
        preferred: Channel,
        home: &Home,
        parts: &PartCalls,
    ) -> Result<(String, Option<ShownInTerminal>), NotShown> {
        let (tty, environment) = self.look(parts).await?;
        let detection = outer(detect(&environment), &environment, parts).await;
        let detection = self.corrected(detection, &environment, home);
        let choice = choose_method(preferred, &detection, AppleBell::default());
        if matches!(choice.method, Method::Disabled | Method::NoMethodAvailable) {
            return Err(NotShown::Failed(format!("{tty}: {}", choice.reason)));
        }
        let id = notification_id(&note.id);
        let body = note.text_below_heading();
        let urgency = urgency(note.kind);
        let notice = OutgoingNotification {
            id: &id,
            title: Some(note.heading()),
            body: &body,
            urgency,
            icon: Some(note.icon.as_deref().unwrap_or_else(|| kind_icon(note.kind))),
        };
        let bytes = notice.encode(choice.method, &detection.multiplexers);
        write(&self.surface, &tty, &bytes).await.map_err(|error| match error {
            Error::OtherSession { .. } => NotShown::Gone(error.to_string()),
            error => NotShown::Failed(error.to_string()),
        })?;
        let close = (choice.method == Method::Kitty).then(|| ShownInTerminal {
            surface: self.surface.clone(),
            tty: tty.clone(),
            close: wrap(close99(&id, Terminator::St).as_bytes(), &detection.multiplexers),
        });
        let terminal = detection.terminal.as_deref().unwrap_or("an unknown terminal");
        let setting = preferred.as_str();
        let how = format!("{} through {tty} in {terminal} ({setting})", choice.method.as_str());
        Ok((how, close))
    }

    /// Corrects the detection with the stored probe reply of the terminal, if there is one.
    fn corrected(&self, detection: Detection, environment: &Env, home: &Home) -> Detection {
        if !detection.multiplexers.is_empty() {
            return detection;
        }
        let term = environment.get("TERM").unwrap_or_default();
        match ProbedTerminal::find(home, self.surface.as_str(), term, environment.leader_parent()) {
            Some(known) => known.correct(detection),
            None => detection,
        }
    }
}

/// Writes to a terminal, if the device still belongs to the surface.
pub(crate) async fn write(surface: &SurfaceId, tty: &str, bytes: &[u8]) -> Result<(), Error> {
    let (own, device) = (surface.clone(), tty.to_owned());
    let is_meant = move || {
        let environment = environment(&own, &device);
        environment.is_ok_and(|environment| own.tmux().is_none_or(|pane| is_around(pane, &environment)))
    };
    terminal::write_if(Path::new(tty), bytes, terminal::WRITE_DEADLINE, is_meant).await
}

/// Returns true if a process with this environment was started in the pane. Its server may have another socket by now.
fn is_around(pane: TmuxSurface<'_>, environment: &Env) -> bool {
    let variables = environment.get("TMUX").zip(environment.get("TMUX_PANE"));
    let own = variables.and_then(|(tmux, pane)| TmuxSurface::of_variables(tmux, pane));
    own.is_some_and(|own| (own.server, own.pane) == (pane.server, pane.pane))
}

/// The environment of the terminal's session leader, which the terminal itself started.
fn environment(surface: &SurfaceId, tty: &str) -> Result<Env, NotShown> {
    let leader = SessionLeader::of(surface, tty).map_err(|error| match error {
        SessionLeaderError::Unknown => NotShown::Failed(error.words(tty)),
        _ => NotShown::Gone(error.words(tty)),
    })?;
    let variables = leader.variables().map_err(|error| NotShown::Failed(error.to_string()))?;
    Ok(Env::new(variables).tty(true).led_by_child_of(leader.parent))
}

/// Asks the multiplexer which terminal it runs in.
async fn outer(detection: Detection, environment: &Env, parts: &PartCalls) -> Detection {
    if detection.multiplexers.first() != Some(&Multiplexer::Tmux) {
        return detection;
    }
    match parts.outer_terminal(environment.clone()).await {
        Some(outer) => detection.with_outer_terminal(outer),
        None => detection,
    }
}

/// Returns true if the locale of the terminal is UTF-8.
pub(crate) fn has_utf8(environment: &Env) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| environment.get(name));
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// The terminal's id of a notification. It stays the same after a restart, so the notification is replaced, not doubled.
fn notification_id(id: &MessageId) -> NotificationId {
    let digits: String = id.as_str().chars().filter(char::is_ascii_alphanumeric).collect();
    NotificationId::new(&digits).unwrap_or_else(|_| NotificationId::four_digits(0))
}

fn urgency(kind: ShownKind) -> Urgency {
    match kind.popup_urgency() {
        message::Urgency::High => Urgency::Critical,
        message::Urgency::Normal => Urgency::Normal,
        message::Urgency::Low => Urgency::Low,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_has_one_id_in_a_terminal() {
        let id = MessageId::new(7, [7; 10]);
        assert_eq!(notification_id(&id), notification_id(&id));
        assert_ne!(notification_id(&id), notification_id(&MessageId::new(8, [7; 10])));
    }
}

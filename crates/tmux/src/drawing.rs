//! Rings and badges: sets and removes the tmux options that show them.
//!
//! A pane that rings has `@ringer_ring`. Its window has a badge (`@ringer_badge`) and a [`Frame`]. No text of a message gets into
//! the options, because tmux would expand it.

use std::collections::{BTreeMap, BTreeSet};

use ringer_config::OnePane;
use ringer_core::message::ShownKind;

use crate::frame::{Frame, begin_frame, end_frame};
use crate::server::{TmuxError, TmuxServer};
use crate::snapshot::{Pane, Snapshot};

/// The ring of a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PaneRing {
    pub(crate) unread: usize,
    pub(crate) kind: Option<ShownKind>,
}

/// The rings and badges that are drawn in a server.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    /// The panes that have a ring.
    panes: BTreeSet<String>,
    /// The badge of each window that has one.
    badges: BTreeMap<String, String>,
    /// The windows with a frame.
    frames: BTreeMap<String, Frame>,
}

/// A change of the drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A tmux command.
    Run(Vec<String>),
    BeginFrame(String, Frame),
    EndFrame(String),
}

impl Step {
    /// The words of the command. For a frame: a description, and its window.
    pub(crate) fn words(self) -> Vec<String> {
        match self {
            Self::Run(words) => words,
            Self::BeginFrame(window, frame) => vec![format!("begin {frame:?}"), window],
            Self::EndFrame(window) => vec!["end".to_owned(), window],
        }
    }
}

fn words(words: &[&str]) -> Step {
    Step::Run(words.iter().map(|word| (*word).to_owned()).collect())
}

/// The badge of a window: the sign of the most urgent kind, and the number of unread notifications.
fn badge(rings: &[PaneRing]) -> String {
    let unread: usize = rings.iter().map(|ring| ring.unread).sum();
    if unread == 0 {
        return String::new();
    }
    let kinds = rings.iter().filter_map(|ring| ring.kind);
    // With a background: the status line may have any colour, and is green by default.
    let (sign, style) = match kinds.max_by_key(|kind| (kind.urgency(), kind.is_prompt())) {
        Some(ShownKind::Permission | ShownKind::Waiting) => ("!", "#[fg=black]#[bg=yellow]"),
        Some(ShownKind::Question) => ("?", "#[fg=white]#[bg=blue]"),
        Some(ShownKind::Error) => ("x", "#[fg=white]#[bg=red]"),
        Some(ShownKind::Stuck) => ("~", "#[fg=white]#[bg=magenta]"),
        Some(ShownKind::Complete) => ("+", "#[fg=black]#[bg=green]"),
        Some(ShownKind::Idle | ShownKind::Status) | None => (".", ""),
    };
    let number = if unread > 99 { "99+".to_owned() } else { unread.to_string() };
    format!("{style}#[bold]{sign}{number}#[default]")
}

impl Drawing {
    /// How to show the ring of a pane, if at all.
    fn frame(&self, pane: &Pane, one_pane: OnePane) -> Option<Frame> {
        let is_above = self.frames.get(&pane.window) == Some(&Frame::Above) && one_pane == OnePane::Border;
        match one_pane {
            _ if pane.panes_in_window > 1 => Some(Frame::Border),
            // The border status was set by Ringer.
            _ if is_above => Some(Frame::Above),
            _ if pane.has_border_status => Some(Frame::Border),
            OnePane::None => None,
            OnePane::Tint => Some(Frame::Tint),
            OnePane::Border => Some(Frame::Above),
        }
    }

    /// The steps that make exactly these rings visible.
    pub(crate) fn steps(
        &mut self,
        snapshot: &Snapshot,
        rings: &BTreeMap<String, PaneRing>,
        one_pane: OnePane,
    ) -> Vec<Step> {
        let mut windows: BTreeMap<&str, Vec<PaneRing>> = BTreeMap::new();
        let shown = rings.iter().filter_map(|(id, ring)| Some((id, snapshot.panes.get(id)?, *ring)));
        let mut panes = BTreeSet::new();
        let mut frames = BTreeMap::new();
        for (id, pane, ring) in shown {
            windows.entry(&pane.window).or_default().push(ring);
            panes.insert(id.clone());
            frames.extend(self.frame(pane, one_pane).map(|frame| (pane.window.clone(), frame)));
        }
        let badges: BTreeMap<String, String> = windows
            .into_iter()
            .map(|(window, rings)| (window.to_owned(), badge(&rings)))
            .filter(|(_, badge)| !badge.is_empty())
            .collect();

        let is_there = |window: &String| snapshot.panes.values().any(|pane| pane.window == *window);
        let mut steps = Vec::new();
        // A frame that changes ends first, so that Ringer never saves its own values as the person's.
        let other = self.frames.iter().filter(|(window, frame)| {
            frames.get(*window).is_some_and(|new| new != *frame) && is_there(window)
        });
        steps.extend(other.map(|(window, _)| Step::EndFrame(window.clone())));
        let new = frames.iter().filter(|(window, frame)| self.frames.get(*window) != Some(frame));
        steps.extend(new.map(|(window, frame)| Step::BeginFrame(window.clone(), *frame)));
        let added = panes.iter().filter(|pane| !self.panes.contains(*pane));
        steps.extend(added.map(|pane| words(&["set-option", "-pq", "-t", pane, "@ringer_ring", "1"])));
        let ended =
            self.panes.iter().filter(|pane| !panes.contains(*pane) && snapshot.panes.contains_key(*pane));
        steps.extend(ended.map(|pane| words(&["set-option", "-pqu", "-t", pane, "@ringer_ring"])));
        let changed = badges.iter().filter(|(window, badge)| self.badges.get(*window) != Some(badge));
        steps.extend(
            changed
                .map(|(window, badge)| words(&["set-option", "-wq", "-t", window, "@ringer_badge", badge])),
        );
        let ended = self.badges.keys().filter(|window| !badges.contains_key(*window) && is_there(window));
        steps.extend(ended.map(|window| words(&["set-option", "-wqu", "-t", window, "@ringer_badge"])));
        let ended = self.frames.keys().filter(|window| !frames.contains_key(*window) && is_there(window));
        steps.extend(ended.cloned().map(Step::EndFrame));
        (self.panes, self.badges, self.frames) = (panes, badges, frames);
        steps
    }

    /// Makes exactly these rings visible.
    pub(crate) fn draw(
        &mut self,
        server: &TmuxServer,
        snapshot: &Snapshot,
        rings: &BTreeMap<String, PaneRing>,
        one_pane: OnePane,
    ) -> Result<(), TmuxError> {
        for step in self.steps(snapshot, rings, one_pane) {
            let result = match &step {
                Step::Run(words) => server.run(words).map(drop),
                Step::BeginFrame(window, frame) => begin_frame(server, window, *frame),
                Step::EndFrame(window) => end_frame(server, window),
            };
            match result {
                // The pane or the window was closed meanwhile.
                Ok(()) | Err(TmuxError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Removes all rings, badges and frames from a server, also those of an earlier process.
pub(crate) fn undraw(server: &TmuxServer) -> Result<(), TmuxError> {
    let listed = server.run(&[
        "list-panes",
        "-a",
        "-F",
        "#{pane_id} #{window_id} #{?@ringer_ring,1,0} #{?@ringer_badge,1,0} #{?@ringer_own,1,0}",
    ])?;
    let mut done = BTreeSet::new();
    for line in listed.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [pane, window, ring, badge, frame] = fields[..] else { continue };
        if ring == "1" {
            server.run(&["set-option", "-pqu", "-t", pane, "@ringer_ring"])?;
        }
        if !done.insert(window.to_owned()) {
            continue;
        }
        if badge == "1" {
            server.run(&["set-option", "-wqu", "-t", window, "@ringer_badge"])?;
        }
        if frame == "1" {
            end_frame(server, window)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        Snapshot::parse(
            "s $0 main\np %0 @0 2 off 11 0 1 $0 1 /dev/pts/1 a\np %1 @0 2 off 11 0 0 $0 1 /dev/pts/2 b\n\
             p %2 @1 1 off 11 0 1 $0 2 /dev/pts/3 c\n",
        )
    }

    fn rings(kinds: &[(&str, ShownKind)]) -> BTreeMap<String, PaneRing> {
        let ring = |kind| PaneRing { unread: 1, kind: Some(kind) };
        kinds.iter().map(|(pane, kind)| ((*pane).to_owned(), ring(*kind))).collect()
    }

    fn told(drawing: &mut Drawing, kinds: &[(&str, ShownKind)]) -> Vec<String> {
        told_of(drawing.steps(&snapshot(), &rings(kinds), OnePane::None))
    }

    fn told_of(steps: Vec<Step>) -> Vec<String> {
        steps.into_iter().map(|step| step.words().join(" ").replace("set-option ", "")).collect()
    }

    /// The frames that begin and end in the window of one pane.
    fn frames(drawing: &mut Drawing, snapshot: &Snapshot, one_pane: OnePane) -> Vec<String> {
        let steps = told_of(drawing.steps(snapshot, &rings(&[("%2", ShownKind::Complete)]), one_pane));
        steps.into_iter().filter(|step| step.starts_with("begin") || step.starts_with("end")).collect()
    }

    #[test]
    fn a_window_with_one_pane_shows_a_ring_as_the_person_chose() {
        for (one_pane, expected) in [
            (OnePane::None, &[][..]),
            (OnePane::Tint, &["begin Tint @1"]),
            (OnePane::Border, &["begin Above @1"]),
        ] {
            let mut drawing = Drawing::default();
            assert_eq!(frames(&mut drawing, &snapshot(), one_pane), expected);
            assert_eq!(frames(&mut drawing, &snapshot(), one_pane), [""; 0], "once");
        }
    }

    #[test]
    fn a_line_above_the_pane_that_is_the_persons_own_is_a_border() {
        let own = Snapshot::parse("s $0 main\np %2 @1 1 top 11 0 1 $0 2 /dev/pts/3 c\n");
        for one_pane in [OnePane::None, OnePane::Tint, OnePane::Border] {
            assert_eq!(frames(&mut Drawing::default(), &own, one_pane), ["begin Border @1"]);
        }
        // Ringer's own is not taken for the person's.
        let mut drawing = Drawing::default();
        assert_eq!(frames(&mut drawing, &snapshot(), OnePane::Border), ["begin Above @1"]);
        assert_eq!(frames(&mut drawing, &own, OnePane::Border), [""; 0]);
    }

    #[test]
    fn a_frame_ends_before_another_one_begins() {
        let split = Snapshot::parse(
            "s $0 main\np %2 @1 2 off 11 0 1 $0 2 /dev/pts/3 c\np %3 @1 2 off 11 0 0 $0 2 /dev/pts/4 d\n",
        );
        let mut drawing = Drawing::default();
        frames(&mut drawing, &snapshot(), OnePane::Tint);
        assert_eq!(frames(&mut drawing, &split, OnePane::Tint), ["end @1", "begin Border @1"]);
        assert_eq!(frames(&mut drawing, &snapshot(), OnePane::Border), ["end @1", "begin Above @1"]);
    }

    #[test]
    fn only_what_changes_is_drawn() {
        let mut drawing = Drawing::default();
        let first = told(&mut drawing, &[("%1", ShownKind::Complete), ("%2", ShownKind::Question)]);
        assert_eq!(
            first,
            [
                "begin Border @0",
                "-pq -t %1 @ringer_ring 1",
                "-pq -t %2 @ringer_ring 1",
                "-wq -t @0 @ringer_badge #[fg=black]#[bg=green]#[bold]+1#[default]",
                "-wq -t @1 @ringer_badge #[fg=white]#[bg=blue]#[bold]?1#[default]",
            ],
            "a window with one pane has no border"
        );
        assert_eq!(told(&mut drawing, &[("%1", ShownKind::Complete), ("%2", ShownKind::Question)]), [""; 0]);
        assert_eq!(
            told(&mut drawing, &[("%0", ShownKind::Permission), ("%1", ShownKind::Complete)]),
            [
                "-pq -t %0 @ringer_ring 1",
                "-pqu -t %2 @ringer_ring",
                "-wq -t @0 @ringer_badge #[fg=black]#[bg=yellow]#[bold]!2#[default]",
                "-wqu -t @1 @ringer_badge",
            ]
        );
        assert_eq!(
            told(&mut drawing, &[]),
            ["-pqu -t %0 @ringer_ring", "-pqu -t %1 @ringer_ring", "-wqu -t @0 @ringer_badge", "end @0"]
        );
    }

    #[test]
    fn panes_that_are_gone_are_not_touched() {
        let mut drawing = Drawing::default();
        assert_eq!(told(&mut drawing, &[("%9", ShownKind::Error)]), [""; 0]);
        told(&mut drawing, &[("%0", ShownKind::Error)]);
        assert_eq!(drawing.steps(&Snapshot::default(), &BTreeMap::new(), OnePane::Tint), []);
    }

    #[test]
    fn a_badge_has_a_sign_and_at_most_two_digits() {
        let many = PaneRing { unread: 70, kind: Some(ShownKind::Error) };
        assert_eq!(badge(&[many, many]), "#[fg=white]#[bg=red]#[bold]x99+#[default]");
        assert_eq!(badge(&[PaneRing { unread: 0, kind: None }]), "");
    }
}

//! Rings and badges: what is set in tmux, and how it is taken away again.
//!
//! A pane that rings has `@ringer_ring`, its window a badge (`@ringer_badge`) and, while anything in it rings, a border style
//! of Ringer's around the person's own. What was there before is kept in options of the window, so that a later hub can
//! restore it, too. No text of a message gets into any of them: tmux would expand it.

use std::collections::{BTreeMap, BTreeSet};

use ringer_core::message::ShownKind;

use crate::look::Look;
use crate::server::{TmuxError, TmuxServer};

/// The styles of a window that a ring changes, with the option that keeps the person's own.
const STYLES: [(&str, &str); 2] =
    [("pane-border-style", "@ringer_border"), ("pane-active-border-style", "@ringer_active_border")];
/// Which of them the window had of its own; the others were the server's.
const OWN: &str = "@ringer_own";

/// A pane's ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PaneRing {
    pub(crate) unread: usize,
    pub(crate) kind: Option<ShownKind>,
}

/// What is drawn in a server.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    /// The panes that have a ring.
    panes: BTreeSet<String>,
    /// The badge of each window that has one.
    badges: BTreeMap<String, String>,
    /// The windows whose border styles are Ringer's.
    borders: BTreeSet<String>,
}

/// What has to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// These words of a command.
    Run(Vec<String>),
    BeginBorder(String),
    EndBorder(String),
}

fn words(words: &[&str]) -> Step {
    Step::Run(words.iter().map(|word| (*word).to_owned()).collect())
}

/// The border style of a window in which something rings. The person's own is expanded as tmux would do it.
fn ring_style(kept: &str) -> String {
    format!("#{{?@ringer_ring,fg=blue#,bold,#{{E:{kept}}}}}")
}

/// The badge of a window: the sign of what is most urgent, and how many are unread.
fn badge(rings: &[PaneRing]) -> String {
    let unread: usize = rings.iter().map(|ring| ring.unread).sum();
    if unread == 0 {
        return String::new();
    }
    let kinds = rings.iter().filter_map(|ring| ring.kind);
    let (sign, colour) = match kinds.max_by_key(|kind| (kind.urgency(), kind.is_prompt())) {
        Some(ShownKind::Permission | ShownKind::Waiting) => ("!", "yellow"),
        Some(ShownKind::Question) => ("?", "blue"),
        Some(ShownKind::Error) => ("x", "red"),
        Some(ShownKind::Stuck) => ("~", "magenta"),
        Some(ShownKind::Complete) => ("+", "green"),
        Some(ShownKind::Idle | ShownKind::Status) | None => (".", "default"),
    };
    let number = if unread > 99 { "99+".to_owned() } else { unread.to_string() };
    format!("#[fg={colour}]#[bold]{sign}{number}#[default]")
}

impl Drawing {
    /// What is to be done so that these rings show, and no others.
    fn steps(&mut self, look: &Look, rings: &BTreeMap<String, PaneRing>) -> Vec<Step> {
        let mut windows: BTreeMap<&str, Vec<PaneRing>> = BTreeMap::new();
        let shown = rings.iter().filter_map(|(id, ring)| Some((id, look.panes.get(id)?, *ring)));
        let mut panes = BTreeSet::new();
        let mut borders = BTreeSet::new();
        for (id, pane, ring) in shown {
            windows.entry(&pane.window).or_default().push(ring);
            panes.insert(id.clone());
            // A window with one pane has no border.
            if pane.panes_in_window > 1 {
                borders.insert(pane.window.clone());
            }
        }
        let badges: BTreeMap<String, String> = windows
            .into_iter()
            .map(|(window, rings)| (window.to_owned(), badge(&rings)))
            .filter(|(_, badge)| !badge.is_empty())
            .collect();

        let is_there = |window: &String| look.panes.values().any(|pane| pane.window == *window);
        let mut steps = Vec::new();
        let new = borders.iter().filter(|window| !self.borders.contains(*window));
        steps.extend(new.cloned().map(Step::BeginBorder));
        let added = panes.iter().filter(|pane| !self.panes.contains(*pane));
        steps.extend(added.map(|pane| words(&["set-option", "-pq", "-t", pane, "@ringer_ring", "1"])));
        let ended = self.panes.iter().filter(|pane| !panes.contains(*pane) && look.panes.contains_key(*pane));
        steps.extend(ended.map(|pane| words(&["set-option", "-pqu", "-t", pane, "@ringer_ring"])));
        let changed = badges.iter().filter(|(window, badge)| self.badges.get(*window) != Some(badge));
        steps.extend(
            changed
                .map(|(window, badge)| words(&["set-option", "-wq", "-t", window, "@ringer_badge", badge])),
        );
        let ended = self.badges.keys().filter(|window| !badges.contains_key(*window) && is_there(window));
        steps.extend(ended.map(|window| words(&["set-option", "-wqu", "-t", window, "@ringer_badge"])));
        let ended = self.borders.iter().filter(|window| !borders.contains(*window) && is_there(window));
        steps.extend(ended.cloned().map(Step::EndBorder));
        (self.panes, self.badges, self.borders) = (panes, badges, borders);
        steps
    }

    /// Draws these rings, and no others. Gives whether tmux answered.
    pub(crate) fn draw(
        &mut self,
        server: &TmuxServer,
        look: &Look,
        rings: &BTreeMap<String, PaneRing>,
    ) -> Result<(), TmuxError> {
        for step in self.steps(look, rings) {
            let done = match &step {
                Step::Run(words) => server.run(words).map(drop),
                Step::BeginBorder(window) => begin_border(server, window),
                Step::EndBorder(window) => end_border(server, window),
            };
            match done {
                // The pane or the window was closed meanwhile.
                Ok(()) | Err(TmuxError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The value that a window has of its own.
fn own_style(server: &TmuxServer, window: &str, style: &str) -> Result<String, TmuxError> {
    let value = server.run(&["show-options", "-wvq", "-t", window, style])?;
    Ok(value.trim_end_matches('\n').to_owned())
}

fn begin_border(server: &TmuxServer, window: &str) -> Result<(), TmuxError> {
    let mut own = String::new();
    let mut steps: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| {
        steps.extend(words.iter().map(|word| (*word).to_owned()));
        steps.push(";".to_owned());
    };
    for (style, kept) in STYLES {
        if !own_style(server, window, style)?.is_empty() {
            own.push_str(style);
            own.push(' ');
        }
        // tmux copies it: a value that is handed over would be read as words of a command.
        add(&["set-option", "-wqF", "-t", window, kept, &format!("#{{{style}}}")]);
        add(&["set-option", "-wq", "-t", window, style, &ring_style(kept)]);
    }
    add(&["set-option", "-wq", "-t", window, OWN, &own]);
    steps.pop();
    server.run(&steps).map(drop)
}

/// Restores the styles of a window. One that was changed while it rang stays as it is.
fn end_border(server: &TmuxServer, window: &str) -> Result<(), TmuxError> {
    let own = own_style(server, window, OWN)?;
    for (style, kept) in STYLES {
        if own_style(server, window, style)? == ring_style(kept) {
            if own.split(' ').any(|one| one == style) {
                server.run(&["set-option", "-wqF", "-t", window, style, &format!("#{{{kept}}}")])?;
            } else {
                server.run(&["set-option", "-wqu", "-t", window, style])?;
            }
        }
        server.run(&["set-option", "-wqu", "-t", window, kept])?;
    }
    server.run(&["set-option", "-wqu", "-t", window, OWN]).map(drop)
}

/// Takes everything away that is drawn in a server, by this process or an earlier one.
pub(crate) fn undraw(server: &TmuxServer) -> Result<(), TmuxError> {
    let listed = server.run(&[
        "list-panes",
        "-a",
        "-F",
        "#{pane_id} #{window_id} #{?@ringer_ring,1,0} #{?@ringer_badge,1,0} #{?@ringer_border,1,0}",
    ])?;
    let mut done = BTreeSet::new();
    for line in listed.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [pane, window, ring, badge, border] = fields[..] else { continue };
        if ring == "1" {
            server.run(&["set-option", "-pqu", "-t", pane, "@ringer_ring"])?;
        }
        if !done.insert(window.to_owned()) {
            continue;
        }
        if badge == "1" {
            server.run(&["set-option", "-wqu", "-t", window, "@ringer_badge"])?;
        }
        if border == "1" {
            end_border(server, window)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look() -> Look {
        Look::parse(
            "s $0 main\np %0 @0 2 $0 1 /dev/pts/1 a\np %1 @0 2 $0 1 /dev/pts/2 b\np %2 @1 1 $0 2 /dev/pts/3 c\n",
        )
    }

    fn rings(kinds: &[(&str, ShownKind)]) -> BTreeMap<String, PaneRing> {
        let ring = |kind| PaneRing { unread: 1, kind: Some(kind) };
        kinds.iter().map(|(pane, kind)| ((*pane).to_owned(), ring(*kind))).collect()
    }

    fn told(drawing: &mut Drawing, kinds: &[(&str, ShownKind)]) -> Vec<String> {
        let steps = drawing.steps(&look(), &rings(kinds)).into_iter();
        steps
            .map(|step| match step {
                Step::Run(words) => words.join(" ").replace("set-option ", ""),
                Step::BeginBorder(window) => format!("begin {window}"),
                Step::EndBorder(window) => format!("end {window}"),
            })
            .collect()
    }

    #[test]
    fn only_what_changes_is_drawn() {
        let mut drawing = Drawing::default();
        let first = told(&mut drawing, &[("%1", ShownKind::Complete), ("%2", ShownKind::Question)]);
        assert_eq!(
            first,
            [
                "begin @0",
                "-pq -t %1 @ringer_ring 1",
                "-pq -t %2 @ringer_ring 1",
                "-wq -t @0 @ringer_badge #[fg=green]#[bold]+1#[default]",
                "-wq -t @1 @ringer_badge #[fg=blue]#[bold]?1#[default]",
            ],
            "a window with one pane has no border"
        );
        assert_eq!(told(&mut drawing, &[("%1", ShownKind::Complete), ("%2", ShownKind::Question)]), [""; 0]);
        assert_eq!(
            told(&mut drawing, &[("%0", ShownKind::Permission), ("%1", ShownKind::Complete)]),
            [
                "-pq -t %0 @ringer_ring 1",
                "-pqu -t %2 @ringer_ring",
                "-wq -t @0 @ringer_badge #[fg=yellow]#[bold]!2#[default]",
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
        assert_eq!(drawing.steps(&Look::default(), &BTreeMap::new()), []);
    }

    #[test]
    fn a_badge_has_a_sign_and_at_most_two_digits() {
        let many = PaneRing { unread: 70, kind: Some(ShownKind::Error) };
        assert_eq!(badge(&[many, many]), "#[fg=red]#[bold]x99+#[default]");
        assert_eq!(badge(&[PaneRing { unread: 0, kind: None }]), "");
    }
}

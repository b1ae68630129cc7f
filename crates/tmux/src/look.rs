//! One look at a server: its panes, its clients, and what the person looks at.

use std::collections::{BTreeMap, BTreeSet};

/// How long after a key a client that does not report focus counts as looked at, in seconds.
const TYPED_LATELY: i64 = 10;

/// What is asked. Free text comes last in a line. (tmux prints tabs as underscores.)
const SESSIONS: &str = "s #{session_id} #{session_name}";
const PANES: &str = "p #{pane_id} #{window_id} #{window_panes} #{pane-border-status} #{pane_pid} #{pane_pipe} #{session_id} #{window_index} #{pane_tty} #{pane_title}";
const CLIENTS: &str = "c #{client_control_mode} #{client_created} #{client_activity} #{client_flags} #{pane_id} #{client_pid} #{session_id} #{client_name}";
/// The home of the hub that is to be the host; clients that reported focus and windows in which a bell rang since the last look;
/// clients that show the inbox in a popup.
const OPTIONS: [&str; 4] =
    ["o #{pid} #{@ringer}", "f #{@ringer_focus}", "b #{@ringer_bell}", "u #{@ringer_popup}"];

/// The words of the commands that look.
pub(crate) fn commands() -> Vec<&'static str> {
    let mut words = vec!["list-sessions", "-F", SESSIONS, ";", "list-panes", "-a", "-F", PANES, ";"];
    words.extend(["list-clients", "-F", CLIENTS]);
    for option in OPTIONS {
        words.extend([";", "display-message", "-p", option]);
    }
    words.extend([";", "set-option", "-gqu", "@ringer_focus", ";", "set-option", "-gqu", "@ringer_bell"]);
    words
}

/// A pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pane {
    pub(crate) window: String,
    /// How many panes its window has.
    pub(crate) panes_in_window: usize,
    /// Whether a line above or below each pane of its window has the style of a border.
    pub(crate) has_border_status: bool,
    /// Its first process.
    pub(crate) pid: u32,
    /// Whether a program reads what is written to it.
    pub(crate) is_piped: bool,
    session: String,
    /// Session and window, in words.
    pub(crate) place: String,
    pub(crate) tty: String,
    pub(crate) title: String,
}

/// A terminal that shows the server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Client {
    name: String,
    created: i64,
    /// When a key was pressed in it last, in seconds since 1970.
    activity: i64,
    is_focused: bool,
    pane: String,
    pid: u32,
    session: String,
}

/// What a server was like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// By their numbers: `%3`.
    pub(crate) panes: BTreeMap<String, Pane>,
    /// The process of the server.
    pub(crate) pid: String,
    /// The home of the hub that is wanted as the host; none if Ringer was removed.
    pub(crate) wanted: String,
    clients: Vec<Client>,
    reported: BTreeSet<String>,
    /// Windows in which a bell rang.
    rang: BTreeSet<String>,
    in_popup: BTreeSet<String>,
}

/// What the person looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Views {
    pub(crate) views: Vec<View>,
    /// Whether all clients report focus. Otherwise a pane may be looked at unnoticed.
    pub(crate) is_complete: bool,
}

/// A client that shows a pane to the person.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct View {
    pub(crate) client: String,
    pub(crate) pane: String,
}

impl Look {
    /// Reads what [`commands`] printed.
    pub(crate) fn parse(text: &str) -> Self {
        let mut look = Self::default();
        let mut sessions = BTreeMap::new();
        for line in text.lines() {
            let Some((kind, rest)) = line.split_once(' ') else { continue };
            match kind {
                "s" => {
                    let (id, name) = rest.split_once(' ').unwrap_or((rest, ""));
                    sessions.insert(id, name);
                }
                "p" => look.add_pane(rest, &sessions),
                "c" => look.add_client(rest),
                "o" => {
                    let (pid, home) = rest.split_once(' ').unwrap_or((rest, ""));
                    (look.pid, look.wanted) = (pid.to_owned(), home.to_owned());
                }
                "f" => look.reported = rest.split_whitespace().map(str::to_owned).collect(),
                "b" => look.rang = rest.split_whitespace().map(str::to_owned).collect(),
                "u" => look.in_popup = rest.split_whitespace().map(str::to_owned).collect(),
                _ => {}
            }
        }
        look
    }

    /// Whether a client is attached that was not before.
    pub(crate) fn has_new_client(&self, before: &Self) -> bool {
        let identities = |look: &Self| {
            look.clients.iter().map(|client| (client.name.clone(), client.created)).collect::<BTreeSet<_>>()
        };
        !identities(self).is_subset(&identities(before))
    }

    /// The process of the client that shows a pane's session, of several the one that was used last.
    pub(crate) fn client_of(&self, pane: &Pane) -> Option<u32> {
        let clients = self.clients.iter().filter(|client| client.session == pane.session);
        clients.max_by_key(|client| client.activity).map(|client| client.pid)
    }

    /// The panes in which a bell rang. tmux names the window alone, so those in a window with others are not known.
    pub(crate) fn bells(&self) -> impl Iterator<Item = &str> {
        let alone = self.panes.iter().filter(|(_, pane)| pane.panes_in_window == 1);
        alone.filter(|(_, pane)| self.rang.contains(&pane.window)).map(|(id, _)| id.as_str())
    }

    /// A pane has a line for each session that its window is in; the first one counts.
    fn add_pane(&mut self, line: &str, sessions: &BTreeMap<&str, &str>) {
        let mut fields = line.splitn(10, ' ');
        let mut next = || fields.next();
        let (Some(pane), Some(window), Some(panes), Some(status)) = (next(), next(), next(), next()) else {
            return;
        };
        if !is_id(pane, '%') || !is_id(window, '@') {
            return;
        }
        let (Some(pid), Some(pipe)) = (next(), next()) else { return };
        let (Some(session), Some(index), Some(tty)) = (next(), next(), next()) else { return };
        let place = format!("{}:{index}", sessions.get(session).unwrap_or(&session));
        self.panes.entry(pane.to_owned()).or_insert_with(|| Pane {
            window: window.to_owned(),
            panes_in_window: panes.parse().unwrap_or(1),
            has_border_status: status != "off",
            pid: pid.parse().unwrap_or(0),
            is_piped: pipe != "0",
            session: session.to_owned(),
            place,
            tty: tty.to_owned(),
            title: fields.next().unwrap_or_default().to_owned(),
        });
    }

    /// One in control mode is a program and shows nothing.
    fn add_client(&mut self, line: &str) {
        let fields: Vec<&str> = line.splitn(8, ' ').collect();
        let [control, created, activity, flags, pane, pid, session, name] = fields[..] else { return };
        if control == "1" || !is_id(pane, '%') {
            return;
        }
        self.clients.push(Client {
            name: name.to_owned(),
            created: created.parse().unwrap_or(0),
            activity: activity.parse().unwrap_or(0),
            is_focused: flags.split(',').any(|flag| flag == "focused"),
            pane: pane.to_owned(),
            pid: pid.parse().unwrap_or(0),
            session: session.to_owned(),
        });
    }
}

/// Ids are words of commands. tmux makes them of a sign and a number, and a line that looks like one of a listing may be a text.
fn is_id(id: &str, sign: char) -> bool {
    let number = id.strip_prefix(sign).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Which clients report focus: those that did so since they were attached. One that never does is always marked as focused,
/// so its mark says nothing; over ssh, everything would be read.
#[derive(Debug, Default)]
pub(crate) struct FocusReports {
    clients: BTreeSet<(String, i64)>,
}

impl FocusReports {
    /// What the person looks at now, and when that has to be found out again because of the time alone, in seconds since
    /// 1970.
    pub(crate) fn views(&mut self, look: &Look, now: i64) -> (Views, Option<i64>) {
        let identity = |client: &Client| (client.name.clone(), client.created);
        let known: BTreeSet<(String, i64)> = look.clients.iter().map(identity).collect();
        let reported = look.clients.iter().filter(|client| look.reported.contains(&client.name));
        self.clients.extend(reported.map(identity));
        self.clients.retain(|client| known.contains(client));
        let is_complete = self.clients.len() == known.len();
        let (mut views, mut again) = (Vec::new(), None);
        for client in look.clients.iter().filter(|client| !look.in_popup.contains(&client.name)) {
            let reports = self.clients.contains(&identity(client));
            let until = client.activity.saturating_add(TYPED_LATELY);
            if !reports && until > now {
                again = Some(again.map_or(until, |other: i64| other.min(until)));
            }
            if if reports { client.is_focused } else { until > now } {
                views.push(View { client: client.name.clone(), pane: client.pane.clone() });
            }
        }
        (Views { views, is_complete }, again)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "s $0 main\ns $1 my work\np %0 @0 2 off 11 0 $0 1 /dev/pts/1 vim a b\np %1 @0 2 off 11 0 $0 1 /dev/pts/2 \n\
                        p %1 @0 2 off 11 0 $1 7 /dev/pts/2 \np %2 @1 1 off 11 0 $1 3 /dev/pts/3 zsh\n\
                        c 0 100 500 attached,focused,UTF-8 %0 21 $0 /dev/pts/9\nc 0 100 500 attached,UTF-8 %2 22 $1 /dev/pts/8\n\
                        c 1 100 500 attached,focused %1 23 $0 control\no 77 /my home\nf /dev/pts/9 /dev/pts/8 \nu \n";

    fn views(reports: &mut FocusReports, look: &Look, now: i64) -> Vec<String> {
        reports
            .views(look, now)
            .0
            .views
            .into_iter()
            .map(|view| format!("{} {}", view.client, view.pane))
            .collect()
    }

    #[test]
    fn panes_are_known_by_their_first_session() {
        let look = Look::parse(TEXT);
        assert_eq!((look.pid.as_str(), look.wanted.as_str(), look.panes.len()), ("77", "/my home", 3));
        let pane = |id: &str| (look.panes[id].place.clone(), look.panes[id].title.clone());
        assert_eq!(pane("%0"), ("main:1".into(), "vim a b".into()));
        assert_eq!(pane("%1"), ("main:1".into(), String::new()));
        assert_eq!(pane("%2"), ("my work:3".into(), "zsh".into()));
    }

    #[test]
    fn a_pane_is_shown_by_the_client_that_was_used_last_in_its_session() {
        let client_of = |text: &str, pane: &str| {
            let look = Look::parse(text);
            look.client_of(&look.panes[pane])
        };
        assert_eq!((client_of(TEXT, "%1"), client_of(TEXT, "%2")), (Some(21), Some(22)));
        let other = TEXT
            .replace("%2 22 $1", "%2 22 $0")
            .replace("c 0 100 500 attached,UTF", "c 0 100 501 attached,UTF");
        assert_eq!((client_of(&other, "%1"), client_of(&other, "%2")), (Some(22), None));
    }

    #[test]
    fn a_client_that_reports_focus_is_believed_and_one_in_control_mode_never() {
        let look = Look::parse(TEXT);
        let mut reports = FocusReports::default();
        assert_eq!(views(&mut reports, &look, 1_000_000), ["/dev/pts/9 %0"]);
        // It is remembered that they report.
        let later = Look::parse(&TEXT.replace("f /dev/pts/9 /dev/pts/8 ", "f "));
        assert_eq!(views(&mut reports, &later, 1_000_000), ["/dev/pts/9 %0"]);
        // Another client under the same name has not reported.
        let other =
            Look::parse(&TEXT.replace("f /dev/pts/9 /dev/pts/8 ", "f ").replace("c 0 100", "c 0 200"));
        assert_eq!(views(&mut reports, &other, 1_000_000), [""; 0]);
    }

    #[test]
    fn a_client_that_never_reports_is_looked_at_while_it_is_typed_in() {
        let look = Look::parse(&TEXT.replace("f /dev/pts/9 /dev/pts/8 ", "f "));
        let mut reports = FocusReports::default();
        assert_eq!(views(&mut reports, &look, 505), ["/dev/pts/9 %0", "/dev/pts/8 %2"]);
        assert_eq!(reports.views(&look, 505).1, Some(510));
        assert_eq!(reports.views(&look, 510), (Views::default(), None));
        assert!(reports.views(&Look::parse(TEXT), 510).0.is_complete, "both report now");
    }

    #[test]
    fn a_time_at_the_end_of_all_times_is_no_panic() {
        let look = Look::parse(&format!("c 0 100 {} attached %0 21 $0 /dev/pts/9\n", i64::MAX));
        assert_eq!(FocusReports::default().views(&look, 505).1, Some(i64::MAX));
    }

    #[test]
    fn a_line_with_other_ids_than_those_of_tmux_is_passed_over() {
        for (id, other) in [
            ("%2 @1", "; @1"),
            ("%2 @1", "%2 @1;"),
            ("%2 @1", "%2 ;"),
            ("%2 @1", "% @1"),
            ("%2 @1", "%+2 @1"),
        ] {
            assert_eq!(Look::parse(&TEXT.replace(id, other)).panes.len(), 2, "{other}");
        }
        let other = Look::parse(&TEXT.replace("%0 21", "; 21"));
        assert_eq!(views(&mut FocusReports::default(), &other, 1_000_000), [""; 0]);
    }

    #[test]
    fn behind_the_inbox_in_a_popup_nothing_is_looked_at() {
        let look = Look::parse(&TEXT.replace("u ", "u /dev/pts/9 "));
        assert_eq!(views(&mut FocusReports::default(), &look, 1_000_000), [""; 0]);
    }

    #[test]
    fn a_client_is_new_by_its_name_and_the_time_it_was_attached() {
        let look = Look::parse(TEXT);
        assert!(look.has_new_client(&Look::default()));
        assert!(!look.has_new_client(&look) && !Look::default().has_new_client(&look));
        assert!(Look::parse(&TEXT.replace("c 0 100", "c 0 101")).has_new_client(&look));
    }

    #[test]
    fn a_bell_is_of_a_pane_that_has_its_window_to_itself() {
        let look = Look::parse(&TEXT.replace("u \n", "b @0 @1 @1 @9 \nu \n"));
        assert_eq!(look.bells().collect::<Vec<_>>(), ["%2"]);
        assert_eq!(Look::parse(TEXT).bells().count(), 0);
    }

    proptest! {
        #[test]
        fn whatever_tmux_prints_is_no_panic(text in "([spcobfu] )?[ -~\\n%$@]{0,200}") {
            let look = Look::parse(&text);
            FocusReports::default().views(&look, 0);
        }
    }
}

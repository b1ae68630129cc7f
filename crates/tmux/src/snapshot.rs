//! A snapshot of a server: its panes, its clients, and what the person looks at.

use std::collections::{BTreeMap, BTreeSet};

/// A client that does not report focus counts as looked at for this long after a key, in seconds.
const TYPED_RECENTLY: i64 = 10;

/// Formats of the listings. Free text comes last in a line. (tmux prints tabs as underscores.)
const SESSIONS: &str = "s #{session_id} #{session_name}";
const PANES: &str = "p #{pane_id} #{window_id} #{window_panes} #{pane-border-status} #{pane_pid} #{pane_pipe} #{pane_active} #{session_id} #{window_index} #{pane_tty} #{pane_title}";
const CLIENTS: &str = "c #{client_control_mode} #{client_created} #{client_activity} #{client_flags} #{pane_id} #{client_pid} #{session_id} #{client_name}";
/// The home of the hub that is the host; since the last snapshot, the clients that reported focus, and the windows with a bell
/// and with activity; clients that show the inbox in a popup.
const OPTIONS: [&str; 5] = [
    "o #{pid} #{@ringer}",
    "f #{@ringer_focus}",
    "b #{@ringer_bell}",
    "a #{@ringer_activity}",
    "u #{@ringer_popup}",
];
/// What hooks record. A snapshot resets it.
const RECORDED: [&str; 3] = ["@ringer_focus", "@ringer_bell", "@ringer_activity"];

/// The commands that print a snapshot and reset what hooks have recorded.
pub(crate) fn commands() -> Vec<&'static str> {
    let mut words = vec!["list-sessions", "-F", SESSIONS, ";", "list-panes", "-a", "-F", PANES, ";"];
    words.extend(["list-clients", "-F", CLIENTS]);
    for option in OPTIONS {
        words.extend([";", "display-message", "-p", option]);
    }
    for option in RECORDED {
        words.extend([";", "set-option", "-gqu", option]);
    }
    words
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pane {
    pub(crate) window: String,
    pub(crate) panes_in_window: usize,
    /// Each pane of its window has a line above or below it in the style of a border.
    pub(crate) has_border_status: bool,
    /// The first process in it.
    pub(crate) pid: u32,
    /// It has a `pipe-pane`.
    pub(crate) is_piped: bool,
    /// The person looks at this pane when they go to its window.
    is_active: bool,
    session: String,
    /// Session name and window index: `main:1`.
    pub(crate) place: String,
    pub(crate) tty: String,
    pub(crate) title: String,
}

/// A client: a terminal that is attached to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Client {
    name: String,
    created: i64,
    /// The time of the last key, in seconds since 1970.
    activity: i64,
    is_focused: bool,
    pane: String,
    pid: u32,
    session: String,
}

/// The state of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// By pane id: `%3`.
    pub(crate) panes: BTreeMap<String, Pane>,
    /// The pid of the server.
    pub(crate) pid: String,
    /// The home of the hub that is the host; empty if Ringer was removed.
    pub(crate) host_home: String,
    clients: Vec<Client>,
    /// Clients that reported focus since the last snapshot.
    focus_reporters: BTreeSet<String>,
    /// Windows in which a bell rang.
    bell_windows: BTreeSet<String>,
    /// Windows for which the person asked tmux to monitor activity or silence, and tmux reported it.
    activity_windows: BTreeSet<String>,
    /// Clients that show the inbox in a popup.
    popup_clients: BTreeSet<String>,
}

/// The panes that the person looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Views {
    pub(crate) views: Vec<View>,
    /// All clients report focus. Otherwise the person may look at further panes.
    pub(crate) is_complete: bool,
}

/// A client that shows a pane to the person.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct View {
    pub(crate) client: String,
    pub(crate) pane: String,
}

impl Snapshot {
    /// Parses the output of [`commands`].
    pub(crate) fn parse(text: &str) -> Self {
        let mut snapshot = Self::default();
        let mut sessions = BTreeMap::new();
        for line in text.lines() {
            let Some((kind, rest)) = line.split_once(' ') else { continue };
            match kind {
                "s" => {
                    let (id, name) = rest.split_once(' ').unwrap_or((rest, ""));
                    sessions.insert(id, name);
                }
                "p" => snapshot.add_pane(rest, &sessions),
                "c" => snapshot.add_client(rest),
                "o" => {
                    let (pid, home) = rest.split_once(' ').unwrap_or((rest, ""));
                    (snapshot.pid, snapshot.host_home) = (pid.to_owned(), home.to_owned());
                }
                "f" => snapshot.focus_reporters = rest.split_whitespace().map(str::to_owned).collect(),
                "b" => snapshot.bell_windows = rest.split_whitespace().map(str::to_owned).collect(),
                "a" => snapshot.activity_windows = rest.split_whitespace().map(str::to_owned).collect(),
                "u" => snapshot.popup_clients = rest.split_whitespace().map(str::to_owned).collect(),
                _ => {}
            }
        }
        snapshot
    }

    /// Returns true if a client has been attached since `before`.
    pub(crate) fn has_new_client(&self, before: &Self) -> bool {
        let identities = |snapshot: &Self| {
            snapshot
                .clients
                .iter()
                .map(|client| (client.name.clone(), client.created))
                .collect::<BTreeSet<_>>()
        };
        !identities(self).is_subset(&identities(before))
    }

    /// The pid of the client that shows the session of a pane; if there are several, the most recently used one.
    pub(crate) fn client_of(&self, pane: &Pane) -> Option<u32> {
        let clients = self.clients.iter().filter(|client| client.session == pane.session);
        clients.max_by_key(|client| client.activity).map(|client| client.pid)
    }

    /// The panes in which a bell rang. tmux names only the window, so this is known only for windows with one pane.
    pub(crate) fn bells(&self) -> impl Iterator<Item = &str> {
        let alone = self.panes.iter().filter(|(_, pane)| pane.panes_in_window == 1);
        alone.filter(|(_, pane)| self.bell_windows.contains(&pane.window)).map(|(id, _)| id.as_str())
    }

    /// The panes that stand for windows with activity. tmux names only the window, and its active pane is looked at first.
    pub(crate) fn activity(&self) -> impl Iterator<Item = &str> {
        let active = self.panes.iter().filter(|(_, pane)| pane.is_active);
        active.filter(|(_, pane)| self.activity_windows.contains(&pane.window)).map(|(id, _)| id.as_str())
    }

    /// Parses the line of a pane. A window that is linked to several sessions has a line for each; the first one counts.
    fn add_pane(&mut self, line: &str, sessions: &BTreeMap<&str, &str>) {
        let mut fields = line.splitn(11, ' ');
        let mut next = || fields.next();
        let (Some(pane), Some(window), Some(panes), Some(status)) = (next(), next(), next(), next()) else {
            return;
        };
        if !is_id(pane, '%') || !is_id(window, '@') {
            return;
        }
        let (Some(pid), Some(pipe), Some(active)) = (next(), next(), next()) else { return };
        let (Some(session), Some(index), Some(tty)) = (next(), next(), next()) else { return };
        let place = format!("{}:{index}", sessions.get(session).unwrap_or(&session));
        self.panes.entry(pane.to_owned()).or_insert_with(|| Pane {
            window: window.to_owned(),
            panes_in_window: panes.parse().unwrap_or(1),
            has_border_status: status != "off",
            pid: pid.parse().unwrap_or(0),
            is_piped: pipe != "0",
            is_active: active == "1",
            session: session.to_owned(),
            place,
            tty: tty.to_owned(),
            title: fields.next().unwrap_or_default().to_owned(),
        });
    }

    /// Parses the line of a client. A client in control mode is a program and shows nothing.
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

/// Checks an id before it is used in a command: a sign and a number. A line of the listing may be part of a name or title.
fn is_id(id: &str, sign: char) -> bool {
    let number = id.strip_prefix(sign).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The clients that have reported focus since they were attached. For other clients the `focused` flag means nothing: tmux always
/// sets it, so over ssh every notification would become read.
#[derive(Debug, Default)]
pub(crate) struct FocusReports {
    clients: BTreeSet<(String, i64)>,
}

impl FocusReports {
    /// The panes that the person looks at, and the time at which this changes without an event, in seconds since 1970.
    pub(crate) fn views(&mut self, snapshot: &Snapshot, now: i64) -> (Views, Option<i64>) {
        let identity = |client: &Client| (client.name.clone(), client.created);
        let known: BTreeSet<(String, i64)> = snapshot.clients.iter().map(identity).collect();
        let reporters =
            snapshot.clients.iter().filter(|client| snapshot.focus_reporters.contains(&client.name));
        self.clients.extend(reporters.map(identity));
        self.clients.retain(|client| known.contains(client));
        let is_complete = self.clients.len() == known.len();
        let (mut views, mut again) = (Vec::new(), None);
        for client in snapshot.clients.iter().filter(|client| !snapshot.popup_clients.contains(&client.name))
        {
            let reports = self.clients.contains(&identity(client));
            let until = client.activity.saturating_add(TYPED_RECENTLY);
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

    const TEXT: &str = "s $0 main\ns $1 my work\np %0 @0 2 off 11 0 1 $0 1 /dev/pts/1 vim a b\np %1 @0 2 off 11 0 0 $0 1 /dev/pts/2 \n\
                        p %1 @0 2 off 11 0 0 $1 7 /dev/pts/2 \np %2 @1 1 off 11 0 1 $1 3 /dev/pts/3 zsh\n\
                        c 0 100 500 attached,focused,UTF-8 %0 21 $0 /dev/pts/9\nc 0 100 500 attached,UTF-8 %2 22 $1 /dev/pts/8\n\
                        c 1 100 500 attached,focused %1 23 $0 control\no 77 /my home\nf /dev/pts/9 /dev/pts/8 \nu \n";

    fn views(reports: &mut FocusReports, snapshot: &Snapshot, now: i64) -> Vec<String> {
        reports
            .views(snapshot, now)
            .0
            .views
            .into_iter()
            .map(|view| format!("{} {}", view.client, view.pane))
            .collect()
    }

    #[test]
    fn panes_are_known_by_their_first_session() {
        let snapshot = Snapshot::parse(TEXT);
        assert_eq!(
            (snapshot.pid.as_str(), snapshot.host_home.as_str(), snapshot.panes.len()),
            ("77", "/my home", 3)
        );
        let pane = |id: &str| (snapshot.panes[id].place.clone(), snapshot.panes[id].title.clone());
        assert_eq!(pane("%0"), ("main:1".into(), "vim a b".into()));
        assert_eq!(pane("%1"), ("main:1".into(), String::new()));
        assert_eq!(pane("%2"), ("my work:3".into(), "zsh".into()));
    }

    #[test]
    fn a_window_with_activity_stands_for_its_active_pane_and_a_bell_for_the_only_one() {
        let snapshot = Snapshot::parse(&format!("{TEXT}a @0 @1 \nb @0 @1 \n"));
        assert_eq!(snapshot.activity().collect::<Vec<_>>(), ["%0", "%2"]);
        assert_eq!(snapshot.bells().collect::<Vec<_>>(), ["%2"]);
    }

    #[test]
    fn a_pane_is_shown_by_the_client_that_was_used_last_in_its_session() {
        let client_of = |text: &str, pane: &str| {
            let snapshot = Snapshot::parse(text);
            snapshot.client_of(&snapshot.panes[pane])
        };
        assert_eq!((client_of(TEXT, "%1"), client_of(TEXT, "%2")), (Some(21), Some(22)));
        let other = TEXT
            .replace("%2 22 $1", "%2 22 $0")
            .replace("c 0 100 500 attached,UTF", "c 0 100 501 attached,UTF");
        assert_eq!((client_of(&other, "%1"), client_of(&other, "%2")), (Some(22), None));
    }

    #[test]
    fn a_client_that_reports_focus_is_believed_and_one_in_control_mode_never() {
        let snapshot = Snapshot::parse(TEXT);
        let mut reports = FocusReports::default();
        assert_eq!(views(&mut reports, &snapshot, 1_000_000), ["/dev/pts/9 %0"]);
        // It is remembered that they report.
        let later = Snapshot::parse(&TEXT.replace("f /dev/pts/9 /dev/pts/8 ", "f "));
        assert_eq!(views(&mut reports, &later, 1_000_000), ["/dev/pts/9 %0"]);
        // Another client under the same name has not reported.
        let other =
            Snapshot::parse(&TEXT.replace("f /dev/pts/9 /dev/pts/8 ", "f ").replace("c 0 100", "c 0 200"));
        assert_eq!(views(&mut reports, &other, 1_000_000), [""; 0]);
    }

    #[test]
    fn a_client_that_never_reports_is_looked_at_while_it_is_typed_in() {
        let snapshot = Snapshot::parse(&TEXT.replace("f /dev/pts/9 /dev/pts/8 ", "f "));
        let mut reports = FocusReports::default();
        assert_eq!(views(&mut reports, &snapshot, 505), ["/dev/pts/9 %0", "/dev/pts/8 %2"]);
        assert_eq!(reports.views(&snapshot, 505).1, Some(510));
        assert_eq!(reports.views(&snapshot, 510), (Views::default(), None));
        assert!(reports.views(&Snapshot::parse(TEXT), 510).0.is_complete, "both report now");
    }

    #[test]
    fn a_time_at_the_end_of_all_times_is_no_panic() {
        let snapshot = Snapshot::parse(&format!("c 0 100 {} attached %0 21 $0 /dev/pts/9\n", i64::MAX));
        assert_eq!(FocusReports::default().views(&snapshot, 505).1, Some(i64::MAX));
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
            assert_eq!(Snapshot::parse(&TEXT.replace(id, other)).panes.len(), 2, "{other}");
        }
        let other = Snapshot::parse(&TEXT.replace("%0 21", "; 21"));
        assert_eq!(views(&mut FocusReports::default(), &other, 1_000_000), [""; 0]);
    }

    #[test]
    fn behind_the_inbox_in_a_popup_nothing_is_looked_at() {
        let snapshot = Snapshot::parse(&TEXT.replace("u ", "u /dev/pts/9 "));
        assert_eq!(views(&mut FocusReports::default(), &snapshot, 1_000_000), [""; 0]);
    }

    #[test]
    fn a_client_is_new_by_its_name_and_the_time_it_was_attached() {
        let snapshot = Snapshot::parse(TEXT);
        assert!(snapshot.has_new_client(&Snapshot::default()));
        assert!(!snapshot.has_new_client(&snapshot) && !Snapshot::default().has_new_client(&snapshot));
        assert!(Snapshot::parse(&TEXT.replace("c 0 100", "c 0 101")).has_new_client(&snapshot));
    }

    #[test]
    fn a_bell_is_of_a_pane_that_has_its_window_to_itself() {
        let snapshot = Snapshot::parse(&TEXT.replace("u \n", "b @0 @1 @1 @9 \nu \n"));
        assert_eq!(snapshot.bells().collect::<Vec<_>>(), ["%2"]);
        assert_eq!(Snapshot::parse(TEXT).bells().count(), 0);
    }

    proptest! {
        #[test]
        fn whatever_tmux_prints_is_no_panic(text in "([spcobfu] )?[ -~\\n%$@]{0,200}") {
            let snapshot = Snapshot::parse(&text);
            FocusReports::default().views(&snapshot, 0);
        }
    }
}

//! OSC 99 in one piece: `99;KEYS;PAYLOAD`. Several pieces are in the properties and in the recordings.

use ringer_term::{
    Actions, MAX_ENCODED, MAX_PLAIN, Notification, NotificationId, Occasion, Osc99Metadata, Protocol, Query,
    TerminalEventKind, Urgency,
};

use super::{check, check_silent, notification};

/// "Ringer" and "Claude" in base64.
const RINGER: &str = "UmluZ2Vy";
const CLAUDE: &str = "Q2xhdWRl";

fn id(text: &str) -> NotificationId {
    NotificationId::new(text).expect("a valid id")
}

/// Checks a notification with the title "done" and these keys.
#[track_caller]
fn check_metadata(sent: &str, metadata: Osc99Metadata) {
    check_done(sent, None, metadata);
}

/// Checks a notification with the title "done" and this id.
#[track_caller]
fn check_id(sent: &str, expect: Option<&str>) {
    check_done(sent, expect.map(id), Osc99Metadata::default());
}

#[track_caller]
fn check_done(sent: &str, id: Option<NotificationId>, metadata: Osc99Metadata) {
    let (title, body) = ("done".to_owned(), String::new());
    let done = TerminalEventKind::Notification(Notification {
        protocol: Protocol::Osc99,
        id,
        title,
        body,
        metadata,
    });
    check(&format!("99;{sent};done"), &[done]);
}

#[test]
fn without_keys_the_payload_is_the_title() {
    for title in ["done", "a;b", "a=b:c=d", "é 🔔", " "] {
        check(&format!("99;;{title}"), &[notification(Protocol::Osc99, title, "")]);
    }
}

#[test]
fn parts() {
    check("99;p=title;done", &[notification(Protocol::Osc99, "done", "")]);
    check("99;p=body;done", &[notification(Protocol::Osc99, "", "done")]);
    check("99;p=?;x", &[TerminalEventKind::Query(Query::Osc99 { id: None })]);
    check("99;i=q1:p=?;", &[TerminalEventKind::Query(Query::Osc99 { id: Some(id("q1")) })]);
    check("99;p=alive;x", &[TerminalEventKind::Query(Query::Alive { id: None })]);
    check("99;i=q1:p=alive;", &[TerminalEventKind::Query(Query::Alive { id: Some(id("q1")) })]);
    check("99;i=n1:p=close;x", &[TerminalEventKind::Close { id: id("n1") }]);
}

/// A notification needs a title or a body, and a close needs an id.
#[test]
fn parts_that_show_nothing_by_themselves() {
    check_silent(&[
        "99;;",
        "99;p=body;",
        "99;p=buttons;yes",
        "99;p=icon;AAAA",
        "99;p=close;x",
        "99",
        "99;",
        "99;i=n1",
    ]);
}

#[test]
fn unknown_parts_have_no_event() {
    check_silent(&["99;p=query;x", "99;p=Title;x", "99;p=footer;x", "99;i=n1:p=footer;x"]);
}

#[test]
fn an_unfinished_piece_has_no_event() {
    check_silent(&["99;d=0;done", "99;i=n1:d=0;done", "99;i=n1:d=0:p=body;done"]);
    for last in ["d=1", "d=2", "d=", "d=maybe"] {
        check_metadata(last, Osc99Metadata::default());
    }
}

#[test]
fn ids() {
    check_id("i=n1", Some("n1"));
    check_id("i=a.B_c+d-9", Some("a.B_c+d-9"));
    check_id("i= n1 ", Some("n1"));
    check_id("other=x:i=n1", Some("n1"));
    // The first one is used, as for every key with a single value.
    check_id("i=n1:i=n2", Some("n1"));
    check_id(" i = n1 : i=n2 ", Some("n1"));
}

#[test]
fn invalid_ids_are_ignored() {
    for metadata in ["", "i=", "i= :", "i", "i=a*b", "i=a b", "I=n1"] {
        check_id(metadata, None);
    }
}

#[test]
fn click_actions() {
    for (metadata, focus, report) in [
        ("a=focus", true, false),
        ("a=report", true, true),
        ("a=report,focus", true, true),
        ("a=focus,report", true, true),
        ("a=report,-focus", false, true),
        ("a=-report,focus", true, false),
        ("a=-focus,-report", false, false),
        ("a=dance", true, false),
    ] {
        check_metadata(
            metadata,
            Osc99Metadata { actions: Actions { focus, report }, ..Osc99Metadata::default() },
        );
    }
}

#[test]
fn close_reports() {
    for (metadata, report_close) in [("c=1", true), ("c=0", false), ("c=", false), ("c=yes", false)] {
        check_metadata(metadata, Osc99Metadata { report_close, ..Osc99Metadata::default() });
    }
}

#[test]
fn a_payload_in_base64() {
    check(&format!("99;e=1;{RINGER}"), &[notification(Protocol::Osc99, "Ringer", "")]);
    check(&format!("99;e=1:p=body;{RINGER}"), &[notification(Protocol::Osc99, "", "Ringer")]);
    // Invalid UTF-8 is replaced, as in every other text.
    check("99;e=1;//4=", &[notification(Protocol::Osc99, "\u{fffd}\u{fffd}", "")]);
    for plain in ["e=0", "e=", "e=yes"] {
        check_metadata(plain, Osc99Metadata::default());
    }
}

#[test]
fn names_in_base64() {
    let ringer = || Some("Ringer".to_owned());
    check_metadata(
        &format!("f={RINGER}"),
        Osc99Metadata { application: ringer(), ..Osc99Metadata::default() },
    );
    check_metadata(
        &format!("c=0:f= {RINGER} "),
        Osc99Metadata { application: ringer(), ..Osc99Metadata::default() },
    );
    check_metadata(&format!("s={RINGER}"), Osc99Metadata { sound: ringer(), ..Osc99Metadata::default() });
}

#[test]
fn repeated_names() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    for (values, expect) in [
        (vec![RINGER], names(&["Ringer"])),
        (vec![RINGER, CLAUDE], names(&["Ringer", "Claude"])),
        (vec![RINGER, RINGER], names(&["Ringer", "Ringer"])),
    ] {
        let keys =
            |key: &str| values.iter().map(|value| format!("{key}={value}")).collect::<Vec<_>>().join(":");
        check_metadata(&keys("n"), Osc99Metadata { icons: expect.clone(), ..Osc99Metadata::default() });
        check_metadata(&keys("t"), Osc99Metadata { types: expect, ..Osc99Metadata::default() });
    }
    // Types are often sent without encoding, surrounded by blanks.
    check_metadata(
        "t=chat: t = mail : t=alert ",
        Osc99Metadata { types: names(&["chat", "mail", "alert"]), ..Osc99Metadata::default() },
    );
}

#[test]
fn the_key_of_an_icon() {
    let key = "0b2e6c0a-5f3d-4a8e-9c1b-77d1f0a3e5c2";
    check_metadata(
        &format!("g={key}"),
        Osc99Metadata { icon_key: Some(id(key)), ..Osc99Metadata::default() },
    );
    check_metadata("g=a*b", Osc99Metadata::default());
    check_metadata("g=", Osc99Metadata::default());
}

#[test]
fn when_it_is_shown() {
    for (metadata, occasion) in [
        ("o=always", Occasion::Always),
        ("o=unfocused", Occasion::Unfocused),
        ("o=invisible", Occasion::Invisible),
        ("o= ", Occasion::Always),
        ("o=never", Occasion::Always),
    ] {
        check_metadata(metadata, Osc99Metadata { occasion, ..Osc99Metadata::default() });
    }
}

#[test]
fn how_urgent_it_is() {
    for (metadata, urgency) in [
        ("u=0", Urgency::Low),
        ("u=1", Urgency::Normal),
        ("u=2", Urgency::Critical),
        ("u=3", Urgency::Normal),
        ("u=high", Urgency::Normal),
        ("u=", Urgency::Normal),
    ] {
        check_metadata(metadata, Osc99Metadata { urgency, ..Osc99Metadata::default() });
    }
}

#[test]
fn how_long_it_is_shown() {
    for (metadata, expires_ms) in [
        ("w=0", Some(0)),
        ("w=5000", Some(5000)),
        ("w=4294967295", Some(u32::MAX)),
        // The system decides.
        ("w=-1", None),
        ("w=-7", None),
        ("w=4294967296", None),
        ("w=soon", None),
        ("w=", None),
    ] {
        check_metadata(metadata, Osc99Metadata { expires_ms, ..Osc99Metadata::default() });
    }
}

#[test]
fn the_length_of_a_payload_is_limited() {
    let longest = "a".repeat(MAX_PLAIN);
    check(&format!("99;;{longest}"), &[notification(Protocol::Osc99, &longest, "")]);
    check_silent(&[&format!("99;;{longest}a")]);
    // Four letters encode three bytes.
    let encoded = "YWFh".repeat(MAX_ENCODED / 4);
    let decoded = "a".repeat(MAX_ENCODED / 4 * 3);
    check(&format!("99;e=1;{encoded}"), &[notification(Protocol::Osc99, &decoded, "")]);
    check_silent(&[&format!("99;e=1;{encoded}Y"), &format!("99;e=1;{encoded}YWFh")]);
}

//! Formats a scanner event: as JSON for programs, as a line for people.

use ringer_term::{NotificationId, Query, TerminalEventKind, sanitise_line};
use serde::Serialize;

/// An event as JSON. `event` and `offset` come first, then the fields of its kind.
#[derive(Serialize)]
pub(super) struct EventView<'a> {
    event: &'static str,
    offset: u64,
    #[serde(flatten)]
    detail: Detail<'a>,
}

/// The fields of each kind of event.
#[derive(Serialize)]
#[serde(untagged)]
enum Detail<'a> {
    Notification(NotificationView<'a>),
    Close { id: &'a str },
    Progress { state: &'static str, value: Option<u8> },
    Title { text: &'a str },
    Bell {},
    Status(StatusView<'a>),
    Query { protocol: &'static str, about: &'static str, id: Option<&'a str> },
    Hyperlink { uri: &'a str, id: Option<&'a str> },
    Cwd { cwd: &'a str },
    Prompt { mark: &'static str, exit_code: Option<i32> },
    Other {},
}

#[derive(Serialize)]
struct NotificationView<'a> {
    protocol: &'static str,
    id: Option<&'a str>,
    title: Option<&'a str>,
    body: &'a str,
    urgency: &'static str,
    occasion: &'static str,
    focus: bool,
    report: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    buttons: &'a [String],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    report_close: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    application: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    icons: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    sound: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    types: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_ms: Option<u32>,
}

#[derive(Serialize)]
struct StatusView<'a> {
    state: &'static str,
    kind: Option<&'static str>,
    app: Option<&'a str>,
    message: Option<&'a str>,
    title: Option<&'a str>,
    id: Option<&'a str>,
    progress: Option<u8>,
}

impl<'a> EventView<'a> {
    pub(super) fn of(event: &'a ringer_term::TerminalEvent) -> Self {
        let (name, detail) = describe(&event.kind);
        Self { event: name, offset: event.offset, detail }
    }
}

fn describe(kind: &TerminalEventKind) -> (&'static str, Detail<'_>) {
    match kind {
        TerminalEventKind::Notification(notification) => {
            let keys = &notification.metadata;
            let view = NotificationView {
                protocol: notification.protocol.as_str(),
                id: notification.id.as_ref().map(NotificationId::as_str),
                title: Some(notification.title.as_str()).filter(|title| !title.is_empty()),
                body: &notification.body,
                urgency: keys.urgency.as_str(),
                occasion: keys.occasion.as_str(),
                focus: keys.actions.focus,
                report: keys.actions.report,
                buttons: &keys.buttons,
                report_close: keys.report_close,
                application: keys.application.as_deref(),
                icons: &keys.icons,
                sound: keys.sound.as_deref(),
                types: &keys.types,
                expires_ms: keys.expires_ms,
            };
            ("notification", Detail::Notification(view))
        }
        TerminalEventKind::Close { id } => ("close", Detail::Close { id: id.as_str() }),
        TerminalEventKind::Progress(progress) => {
            let value = progress.value().map(ringer_term::Percent::get);
            ("progress", Detail::Progress { state: progress.state(), value })
        }
        TerminalEventKind::Title(text) => ("title", Detail::Title { text }),
        TerminalEventKind::Bell => ("bell", Detail::Bell {}),
        TerminalEventKind::Status(status) => {
            let view = StatusView {
                state: status.state.as_str(),
                kind: status.kind.map(ringer_term::BlockedKind::as_str),
                app: status.app.as_deref(),
                message: status.message.as_deref(),
                title: status.title.as_deref(),
                id: status.id.as_deref(),
                progress: status.progress,
            };
            ("status", Detail::Status(view))
        }
        TerminalEventKind::Query(query) => ("query", describe_query(query)),
        TerminalEventKind::Hyperlink { id, uri } => {
            ("hyperlink", Detail::Hyperlink { uri, id: id.as_deref() })
        }
        TerminalEventKind::Cwd(cwd) => ("cwd", Detail::Cwd { cwd }),
        TerminalEventKind::Prompt(prompt) => {
            ("prompt", Detail::Prompt { mark: prompt.mark.as_str(), exit_code: prompt.exit_code })
        }
        _ => ("other", Detail::Other {}),
    }
}

fn describe_query(query: &Query) -> Detail<'_> {
    let (protocol, about, id) = match query {
        Query::Osc99 { id } => ("osc99", "support", id.as_ref()),
        Query::Alive { id } => ("osc99", "alive", id.as_ref()),
        Query::Osc7501 => ("osc7501", "support", None),
        _ => ("other", "other", None),
    };
    Detail::Query { protocol, about, id: id.map(NotificationId::as_str) }
}

/// Formats an event as one safe line.
pub(super) fn format_text(kind: &TerminalEventKind) -> String {
    let (name, detail) = describe(kind);
    let text = match detail {
        Detail::Notification(notification) => match notification.title {
            Some(title) => format!("{}  {title}: {}", notification.protocol, notification.body),
            None => format!("{}  {}", notification.protocol, notification.body),
        },
        Detail::Close { id } => id.to_owned(),
        Detail::Progress { state, value: Some(value) } => format!("{state} {value}"),
        Detail::Progress { state, value: None } => state.to_owned(),
        Detail::Title { text } => text.to_owned(),
        Detail::Bell {} | Detail::Other {} => String::new(),
        Detail::Status(status) => [Some(status.state), status.kind, status.app, status.title, status.message]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("  "),
        Detail::Query { protocol, about, .. } => format!("{protocol}  {about}"),
        Detail::Hyperlink { uri, .. } => uri.to_owned(),
        Detail::Cwd { cwd } => cwd.to_owned(),
        Detail::Prompt { mark, exit_code: Some(code) } => format!("{mark} {code}"),
        Detail::Prompt { mark, exit_code: None } => mark.to_owned(),
    };
    format!("{name:<12}  {}", sanitise_line(&text)).trim_end().to_owned()
}

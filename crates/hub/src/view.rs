//! The JSON forms of answers on the socket.

use ringer_core::Engine;
use ringer_core::attention::{AwayPeriod, Badge, Digest, ReadBy, Record, TrailStep};
use ringer_core::message::{MessageId, WorkspaceId};
use ringer_core::policy::{MuteTarget, RequestedMute};
use ringer_ipc::part::Unreachable;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::clock::Clock;

/// A notification as `ringer list --json` prints it.
#[derive(Debug, Serialize)]
struct NotificationView<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    short_id: Option<&'a str>,
    ts: String,
    from: &'a str,
    /// A short label of the place, if an agent's client reported one.
    label: Option<&'a str>,
    kind: &'static str,
    title: Option<&'a str>,
    subtitle: Option<&'a str>,
    body: &'a str,
    workspace: &'a str,
    surface: Option<&'a str>,
    scope: &'a str,
    is_read: bool,
    is_open: bool,
    /// The reason why it is read or resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_by: Option<&'static str>,
    /// When it returns, if it is snoozed.
    #[serde(skip_serializing_if = "Option::is_none")]
    snoozed_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question_id: Option<&'a str>,
}

/// A notification of the list with its short id.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedNotification {
    /// The notification.
    pub record: Record,
    /// A short form of the id for people to type.
    pub short_id: Option<String>,
}

/// Formats notifications.
pub fn notifications(rows: &[ListedNotification], clock: &Clock) -> Value {
    rows.iter().map(|row| notification(&row.record, row.short_id.as_deref(), clock)).collect()
}

/// Formats a notification. Short ids belong to the list that contains it.
pub fn notification(record: &Record, short_id: Option<&str>, clock: &Clock) -> Value {
    json!(NotificationView {
        id: record.id.as_str(),
        short_id,
        ts: clock.stamp(record.unix_ms),
        from: &record.sender,
        label: record.label.as_deref(),
        kind: record.shown_kind().as_str(),
        title: record.title.as_deref(),
        subtitle: record.subtitle.as_deref(),
        body: &record.body,
        workspace: record.place.workspace.as_str(),
        surface: record.place.surface.as_ref().map(ringer_core::message::SurfaceId::as_str),
        scope: &record.scope,
        is_read: record.is_read,
        is_open: !record.is_resolved,
        read_by: record.read_by.filter(|_| record.is_read).map(ReadBy::as_str),
        snoozed_until: record.snoozed_until.get().map(|until_ms| clock.stamp(until_ms)),
        question_id: record.open_question.as_ref().map(ringer_core::message::QuestionId::as_str),
    })
}

/// Formats a mute, as `ringer mute --list --json` prints it.
pub fn mute(mute: &RequestedMute, clock: &Clock) -> Value {
    let (agent, workspace) = match &mute.target {
        MuteTarget::All => (None, None),
        MuteTarget::Agent(agent) => (Some(agent.as_str()), None),
        MuteTarget::Workspace(workspace) => (None, Some(workspace.as_str())),
    };
    json!({
        "agent": agent,
        "workspace": workspace,
        "all": mute.target == MuteTarget::All,
        "until": mute.until_unix_ms.map(|until| clock.stamp(until)),
        "until_unix_ms": mute.until_unix_ms,
        "allow": mute.allow,
    })
}

/// The most notifications that a digest lists. Its counts include all.
const MAX_IN_DIGEST: usize = 1000;
/// How far back a digest goes if it is unknown when the person was away.
const DIGEST_MS: i64 = 24 * 60 * 60 * 1000;

/// Returns the start of a digest: the requested time, or when the person last went away, or a day ago.
pub fn digest_since(asked_ms: Option<i64>, away: Option<AwayPeriod>, now_ms: i64) -> i64 {
    let away = || away.map(|away| away.since_ms);
    asked_ms.or_else(away).unwrap_or_else(|| now_ms.saturating_sub(DIGEST_MS))
}

/// Formats a digest, as `ringer digest --json` prints it: the most urgent first, then the oldest.
pub fn digest(
    since_ms: i64,
    mut records: Vec<&Record>,
    short_id: impl Fn(&MessageId) -> Option<String>,
    clock: &Clock,
) -> Value {
    records.sort_by(|one, two| one.by_urgency(two));
    let digest = Digest::of(records.iter().copied());
    let counts: Map<String, Value> =
        digest.counts().iter().map(|(kind, count)| (kind.to_string(), json!(count))).collect();
    let rows = records.iter().take(MAX_IN_DIGEST);
    let rows = rows.map(|record| notification(record, short_id(&record.id).as_deref(), clock));
    json!({
        "since": clock.stamp(since_ms),
        "since_unix_ms": since_ms,
        "text": digest.to_string(),
        "counts": counts,
        "notifications": rows.collect::<Vec<_>>(),
    })
}

/// Formats a step of a trail.
pub fn step(step: &TrailStep, clock: &Clock) -> Value {
    json!({ "ts": clock.stamp(step.unix_ms), "text": step.cause.to_string(), "cause": step.cause })
}

/// Formats a workspace, with its badge, its latest text and the number of its surfaces.
pub(crate) fn workspace(engine: &Engine, id: &WorkspaceId, surfaces: usize) -> Value {
    let attention = engine.attention();
    let Badge(badge) = attention.badge(id);
    let latest = attention.store().latest(id);
    json!({
        "id": id,
        "unread": badge,
        "text": Badge(badge).to_string(),
        "latest": latest.map(|record| &*record.body),
        "surfaces": surfaces,
    })
}

/// Formats the result of a focus attempt.
pub(crate) fn focus(result: Result<String, Unreachable>) -> Value {
    match result {
        Ok(host) => json!({ "focused": true, "host": host }),
        Err(Unreachable { why, hint: None, .. }) => json!({ "focused": false, "why": why }),
        Err(Unreachable { why, hint: Some(hint), .. }) => {
            json!({ "focused": false, "why": why, "hint": hint })
        }
    }
}

/// Formats a notification to open. For a jump, `passed_over` is the number of more urgent ones whose places are not reachable.
pub(crate) fn opening(notification: &Value, passed_over: Option<usize>) -> Value {
    let mut opening = json!({ "notification": notification });
    if let Some(passed_over) = passed_over {
        opening["passed_over"] = json!(passed_over);
    }
    opening
}

/// Adds the result of the focus attempt.
pub(crate) fn opened(opening: &Value, focus: &Value) -> Value {
    let mut opened = opening.clone();
    opened["focus"] = focus.clone();
    opened
}

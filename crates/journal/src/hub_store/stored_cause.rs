//! A step of a trail, as it is stored: one line of JSON. Older versions stored a sentence.

use ringer_core::attention::Cause;

/// The column's text.
pub(super) fn write(cause: &Cause) -> String {
    match cause {
        Cause::Text { text } => text.clone(),
        other => serde_json::to_string(other).unwrap_or_else(|_| other.to_string()),
    }
}

/// Reads the column. What is no cause of this version is a sentence.
pub(super) fn read(stored: &str) -> Cause {
    serde_json::from_str(stored).unwrap_or_else(|_| stored.into())
}

#[cfg(test)]
mod tests {
    use ringer_core::MessageId;
    use ringer_core::attention::{PlaceReason, ReadReason, UndoKind};
    use ringer_core::policy::{DeliveryChannel, MuteTarget};

    use super::*;

    #[test]
    fn every_cause_is_read_back() {
        let id = || MessageId::parse("01997a3e-0a1b-7c2d-8e3f-0123456789ab").expect("an id");
        let channels =
            vec![vec![DeliveryChannel::Desktop, DeliveryChannel::Terminal], vec![DeliveryChannel::Command]];
        for cause in [
            Cause::Decided { channels, listed: true, unread: true, effects: vec!["record".to_owned()] },
            Cause::Received { from: "system".to_owned(), place: PlaceReason::Repository },
            Cause::Duplicate { of: None },
            Cause::MarkedRead { by: ReadReason::Newer(id()) },
            Cause::MarkedRead { by: ReadReason::Looked },
            Cause::TakenBack { kind: UndoKind::Clear },
            Cause::Snoozed { until_unix_ms: 7, span_ms: 5 },
            Cause::MutedByPerson { target: MuteTarget::Agent("ci".to_owned()), until_unix_ms: Some(7) },
            Cause::MutedByPerson { target: MuteTarget::All, until_unix_ms: None },
            Cause::Delivered { channel: DeliveryChannel::Desktop, how: "shown".to_owned(), popup: Some(48) },
            Cause::Expired,
            "decided: record, markUnread".into(),
        ] {
            assert_eq!(read(&write(&cause)), cause);
        }
    }

    #[test]
    fn what_this_version_does_not_know_is_a_sentence() {
        for stored in ["arrived from system", "{\"name\":\"of_a_newer_version\"}", "{\"a\":1}", "3", "", "{"]
        {
            assert_eq!(read(stored), Cause::from(stored));
            assert_eq!(read(stored).to_string(), stored);
        }
    }
}

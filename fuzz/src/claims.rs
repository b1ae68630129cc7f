//! Arbitrary files of the drop box: a claim is read as it was written, and comes to a message or question of an unverified process
//! within the limits of any message, or to a listener whose name is a file name.

use ringer_core::message::{MAX_BODY, MessageOrigin, Tag};
use ringer_core::{Draft, MessageId, Sender};
use ringer_ipc::drop_box::{Claim, ClaimedAction};

pub fn run(data: &[u8]) {
    let Ok((claim, action)) = Claim::parse(data) else { return };
    let again = Claim::parse(&claim.to_bytes()).expect("it was read before");
    assert_eq!(again, (claim.clone(), action.clone()));
    // The id is a file name, and one that a journal takes.
    let id = claim.id();
    assert!(MessageId::parse(id.as_str()).is_ok() && !id.as_str().contains('/'));
    match action {
        ClaimedAction::Append(draft) => {
            check(&draft);
            assert_eq!(draft.question_id, None);
        }
        ClaimedAction::Ask { draft, question, .. } => {
            check(&draft);
            assert_eq!(draft.question_id, Some(claim.stamp.question_id()));
            assert_eq!(draft.body, question);
        }
        ClaimedAction::Listen(consumer) => {
            let name = format!("listen-{}@{}.json", consumer.name(), consumer.scope());
            assert!(!name.contains(['/', '\0']) && name.len() < 255, "{name}");
        }
    }
}

fn check(draft: &Draft) {
    assert_eq!(draft.sender, Sender::unverified());
    assert!(matches!(draft.tag, Tag::Notice(_)), "a claim marks nothing");
    assert!(draft.check().is_ok() && draft.body.len() <= MAX_BODY);
    assert_eq!(draft.origin, MessageOrigin::default(), "nothing of a place is believed");
    assert_eq!(draft.about, None);
    assert!(draft.title.as_ref().is_some_and(|title| title.starts_with("an unverified process in ")));
}

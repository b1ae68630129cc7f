//! Any text without a NUL comes back as it was sent.

use std::cell::RefCell;

use proptest::collection::vec;
use proptest::prelude::*;
use ringer_journal::IdSource;

use crate::home::{TestHome, draft};

fn text(most: usize) -> impl Strategy<Value = String> {
    let text = vec(any::<char>(), 1..most).prop_map(|characters| characters.into_iter().collect::<String>());
    text.prop_filter("something in it, and no NUL", |text| !text.trim().is_empty() && !text.contains('\0'))
}

#[test]
fn any_text_comes_back() {
    let test = TestHome::new();
    // One journal for all: each case is a commit.
    let journal = RefCell::new(test.open());
    proptest!(ProptestConfig::with_cases(64), |(body in text(400), title in text(40), subtitle in text(40))| {
        let mut draft = draft("x");
        draft.body = body;
        draft.title = Some(title);
        draft.subtitle = Some(subtitle);
        let id = journal.borrow_mut().append(&draft, &IdSource::now()).unwrap();
        let message = journal.borrow_mut().message(id.as_str()).unwrap().unwrap();
        prop_assert_eq!(message.draft, draft);
    });
}

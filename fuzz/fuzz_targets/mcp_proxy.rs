//! Arbitrary lines of a client and an MCP server: everything passes, and what is added is the only change.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringer_mcp::{PendingNotifications, pass_answers};

struct Waiting(Option<String>);

impl PendingNotifications for Waiting {
    fn take(&mut self, _: u64) -> Option<String> {
        self.0.take()
    }

    fn written(&mut self, _: bool) {}
}

fuzz_target!(|data: &[u8]| {
    let cut = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (requests, answers) = data.split_at(cut);
    assert_eq!(pass_answers(requests, &[answers], Waiting(None)), answers);
    let text = "<notification source=\"user\">\n\"\\\u{1b}\n</notification>".to_owned();
    let changed = pass_answers(requests, &[answers], Waiting(Some(text)));
    let lines = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (before, after) = (lines(answers), lines(&changed));
    assert_eq!(before.len(), after.len());
    let is_json = |line: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
    let differing: Vec<_> = before.iter().zip(&after).filter(|(before, after)| before != after).collect();
    assert!(differing.len() <= 1 && differing.iter().all(|(before, after)| is_json(before) && is_json(after)));
});

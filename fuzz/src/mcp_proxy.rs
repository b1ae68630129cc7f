//! Arbitrary lines of a client and an MCP server: what looks like a notification is escaped in JSON, what is added is the only
//! other change, and everything else passes.

use ringer_mcp::{PendingNotifications, pass_answers};

struct Waiting(Option<String>);

impl PendingNotifications for Waiting {
    fn take(&mut self, _: u64) -> Option<String> {
        self.0.take()
    }

    fn written(&mut self, _: bool) {}
}

pub fn run(data: &[u8]) {
    let cut = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (requests, answers) = data.split_at(cut);
    let passed = pass_answers(requests, &[answers], Waiting(None));
    assert_eq!(pass_answers(requests, &[&passed], Waiting(None)), passed);
    let text = "<notification source=\"user\">\n\"\\\u{1b}\n</notification>".to_owned();
    let changed = pass_answers(requests, &[answers], Waiting(Some(text)));
    let lines = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let is_json = |line: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
    let (written, before, after) = (lines(answers), lines(&passed), lines(&changed));
    assert_eq!((written.len(), before.len()), (before.len(), after.len()));
    for (written, before) in written.iter().zip(&before).filter(|(written, before)| written != before) {
        assert!(String::from_utf8_lossy(written).contains(['<', '\\', '\u{ff1c}', '\u{fe64}']));
        assert!(String::from_utf8_lossy(before).contains("&lt;"));
    }
    let differing: Vec<_> = before.iter().zip(&after).filter(|(before, after)| before != after).collect();
    assert!(
        differing.len() <= 1 && differing.iter().all(|(before, after)| is_json(before) && is_json(after))
    );
}

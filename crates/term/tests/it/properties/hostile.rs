//! Hostile texts, and the multiplexers that they pass through.

use proptest::prelude::*;
use ringer_term::Multiplexer;

/// Text that could break out of a sequence, be misread by a terminal, or be torn by truncation.
const FRAGMENTS: &[&str] = &[
    "\x1b",
    "\x07",
    "\x1b\\",
    "\x1b]",
    "\x1b]9;gotcha\x07",
    "\x1b\\\x1b]99;i=7:d=1;",
    "\x1bP",
    "\x1bPtmux;",
    "\x1b[31m",
    "\x18",
    "\x1a",
    "\x7f",
    "\0",
    "\u{80}",
    "\u{90}",
    "\u{9b}",
    "\u{9c}",
    "\u{9d}",
    "\n",
    "\r\n",
    "\t",
    ";",
    "4;1;50",
    "0",
    "\\",
    "]",
    "P",
    ":",
    "=",
    ",",
    "%1b",
    "\u{2028}",
    "\u{2029}",
    "\u{202e}",
    "\u{200b}",
    "\u{200d}",
    "\u{feff}",
    "\u{e0041}",
    "👩\u{200d}🚀",
    "👩🏽\u{200d}🚀",
    "e\u{301}",
    "é",
    // Their last bytes are 0x9c and 0x9d: ST and OSC to a terminal that reads bytes as 8-bit controls.
    "Ü",
    "✜",
    "✝",
    "日本語",
    // Their code points end in 1B and 07: ESC and BEL to a program that keeps only the low byte.
    "ě",
    "ć",
];

pub(super) fn text() -> impl Strategy<Value = String> {
    let run = (prop::sample::select(vec!["x", "é", "語", "🚀", "👩\u{200d}🚀"]), 100usize..1200)
        .prop_map(|(text, times)| text.repeat(times));
    let fragment = prop_oneof![
        12 => prop::sample::select(FRAGMENTS).prop_map(str::to_owned),
        4 => "[a-z ]{1,12}",
        2 => any::<String>(),
        2 => r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]{1,6}",
        1 => run,
    ];
    prop::collection::vec(fragment, 0..16).prop_map(|fragments| fragments.concat())
}

pub(super) fn stack() -> impl Strategy<Value = Vec<Multiplexer>> {
    prop::sample::select(every_stack())
}

/// Returns every stack of at most three multiplexers, including the empty one.
pub(super) fn every_stack() -> Vec<Vec<Multiplexer>> {
    let all = [Multiplexer::Tmux, Multiplexer::Screen, Multiplexer::Zellij];
    let mut stacks = vec![vec![]];
    for depth in 0..3 {
        let deepest: Vec<Vec<Multiplexer>> =
            stacks.iter().filter(|stack| stack.len() == depth).cloned().collect();
        stacks
            .extend(deepest.iter().flat_map(|stack| all.map(|layer| [stack.as_slice(), &[layer]].concat())));
    }
    assert_eq!(stacks.len(), 1 + 3 + 9 + 27);
    stacks
}

//! Random input of people and output of programs.

use test_support::Random;

/// Input of a client's terminal: keys, most of them after the prefix, the mouse anywhere, pastes, focus, and garbage.
pub(super) fn input(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=random.below(6) {
        match random.below(12) {
            0..=4 => {
                bytes.push(0x07);
                bytes.extend_from_slice(random.pick(AFTER_PREFIX).as_bytes());
            }
            5 | 6 => bytes.extend_from_slice(random.pick(KEYS).as_bytes()),
            7 | 8 => bytes.extend_from_slice(mouse(random).as_bytes()),
            9 => bytes.extend_from_slice(random.pick(PASTES).as_bytes()),
            10 => bytes.extend_from_slice(
                random.pick(&["\x1b[I", "\x1b[O", "\x1b[?1u", "\x1b]11;rgb:0/0/0\x07"]).as_bytes(),
            ),
            _ => bytes.extend(garbage(random)),
        }
    }
    bytes
}

const AFTER_PREFIX: &[&str] = &[
    "|", "-", "c", "n", "i", "h", "j", "k", "l", "o", ")", "(", "z", "H", "L", "K", "J", "[", "/", ",", "r",
    "x", "xy", "b", "?", "\x07", "1", "9", "Q", "/abc\r", ",name\r", "[gy", "d",
];

const KEYS: &[&str] = &[
    "a",
    "y",
    "q",
    "\r",
    "\x1b",
    "\x7f",
    "n",
    "N",
    "漢",
    "\x03",
    "\x15",
    "\x1b[A",
    "\x1b[B",
    "\x1b[5~",
    "\x1b[6~",
    "\x1b[H",
    "\x1b[F",
    "\x1b[97;5:3u",
    "\x1b[57441;2u",
    "\x1bOq",
];

const PASTES: &[&str] =
    &["\x1b[200~text\r\nmore\x1b[201~", "\x1b[200~\x1b[31m漢字\x1b[201~", "\x1b[200~open end"];

fn mouse(random: &mut Random) -> String {
    // Most of them are inside most windows.
    let end = *random.pick(&[10, 45, 45, 300]);
    let (x, y) = (1 + random.below(end), 1 + random.below(end / 3 + 4));
    let code = *random.pick(&[0, 0, 32, 32, 1, 2, 34, 35, 64, 65, 66]);
    let last = *random.pick(&['M', 'M', 'm']);
    format!("\x1b[<{code};{x};{y}{last}")
}

/// Output of a program: text, colours, the cursor, the alternate screen, sequences of all kinds, and garbage.
pub(super) fn output(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=random.below(12) {
        match random.below(10) {
            0..=3 => bytes.extend_from_slice(random.pick(TEXTS).as_bytes()),
            4 | 5 => bytes.extend_from_slice(random.pick(LOOKS).as_bytes()),
            6 => {
                let (x, y) = (random.below(60), random.below(20));
                bytes.extend_from_slice(format!("\x1b[{y};{x}H").as_bytes());
            }
            7 => bytes.extend_from_slice(random.pick(MODES).as_bytes()),
            8 => bytes.extend_from_slice(random.pick(STRINGS).as_bytes()),
            _ => bytes.extend(garbage(random)),
        }
    }
    bytes
}

const TEXTS: &[&str] = &[
    "hello abc ",
    "漢字漢字",
    "e\u{301}o\u{308}",
    "\r\n",
    "\r\n\r\n\r\n\r\n\r\n\r\n",
    "\t",
    "👩‍👩‍👧 ☂️",
    "\u{8}",
    "a line that is long enough to be wrapped in most panes\r\n",
    "──┐█▌",
    "\u{ad}\u{200b}\u{2028}",
    "क्षि ำ",
];

const LOOKS: &[&str] = &[
    "\x1b[0m",
    "\x1b[1;31m",
    "\x1b[38;2;1;2;3;48;5;200m",
    "\x1b[4:3;58:2::9:8:7m",
    "\x1b[7m",
    "\x1b[2;3;9m",
    "\x1b[8m",
    "\x1b[97;104m",
    "\x1b[K",
    "\x1b[2J",
    "\x1b[1@",
    "\x1b[2P",
    "\x1b[L",
    "\x1b[M",
    "\x1b[3S",
    "\x1b[2T",
    "\x1b#8",
    "\x1b[5X",
];

const MODES: &[&str] = &[
    "\x1b[?1049h",
    "\x1b[?1049l",
    "\x1b[?25l",
    "\x1b[?25h",
    "\x1b[4 q",
    "\x1b[?1000h\x1b[?1006h",
    "\x1b[?1002h",
    "\x1b[?1003h",
    "\x1b[?1000l",
    "\x1b[?1004h",
    "\x1b[?2004h",
    "\x1b[?1h",
    "\x1b=",
    "\x1b[>11u",
    "\x1b[<u",
    "\x1b[?2026h",
    "\x1b[?2026l",
    "\x1bc",
    "\x1b[2;5r",
    "\x1b[?6h",
    "\x1b[?7l",
    "\x1b(0",
    "\x1b(B",
    "\x1b[4h",
];

const STRINGS: &[&str] = &[
    "\x1b]2;a title\x07",
    "\x1b]0;漢\x1b\\",
    "\x1b]9;done\x07",
    "\x1b]777;notify;Title;body\x07",
    "\x1b]99;i=1;hello\x1b\\",
    "\x1b]99;i=1:d=0:a=report:c=1;really?\x1b\\\x1b]99;i=1:p=buttons;Yes\u{2028}No\x1b\\",
    "\x1b]99;i=2:d=0:a=report;really?\x1b\\\x1b]99;i=2:p=buttons;Yes\x1b\\",
    "\x1b]99;i=1:p=close;\x1b\\",
    "\x1b]9;4;1;40\x07",
    "\x1b]9;4;0\x07",
    "\x1b]7;file://box/src\x07",
    "\x1b]8;id=x;https://example.com/a;b\x07link\x1b]8;;\x07",
    "\x1b]8;;file:///a\x1b\\",
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1b]52;c;?\x07",
    "\x1b]4;1;rgb:ff/00/00\x07",
    "\x1b]104\x07",
    "\x1b]10;?\x07",
    "\x1b]7501;?\x1b\\",
    "\x1b[c",
    "\x1b[6n",
    "\x1b[18t",
    "\x1b[?u",
    "\x1bP$qm\x1b\\",
    "\x07",
    "\x1b]133;A\x07",
    "\x1b]2;no end",
];

fn garbage(random: &mut Random) -> Vec<u8> {
    (0..random.below(20)).map(|_| if random.one_in(4) { 0x1b } else { random.byte() }).collect()
}

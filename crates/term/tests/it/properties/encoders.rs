//! No encoder outputs a control byte of its input: all control bytes belong to the frames that it writes.

use proptest::prelude::*;
use ringer_term::{
    BEL, BlockedKind, Method, Multiplexer, NotificationId, Osc99Message, OutgoingNotification, Percent,
    ProgramStatus, Progress, StatusState, Terminator, TitleState, Urgency, hyperlink, osc9, osc777, title,
};

use super::hostile::{stack, text};
use super::opened::{payloads, unwrapped};

const ENDS: [Terminator; 2] = [Terminator::St, Terminator::Bel];

/// The output of a terminal's own parser.
#[derive(Default)]
struct Parsed {
    sequences: usize,
    printed: String,
    /// Any control other than an OSC.
    acts: Vec<String>,
}

impl vte::Perform for Parsed {
    fn print(&mut self, character: char) {
        self.printed.push(character);
    }

    fn execute(&mut self, byte: u8) {
        self.acts.push(format!("control {byte:#x}"));
    }

    fn hook(&mut self, _: &vte::Params, _: &[u8], _: bool, action: char) {
        self.acts.push(format!("device control {action}"));
    }

    fn osc_dispatch(&mut self, _: &[&[u8]], _: bool) {
        self.sequences += 1;
    }

    fn csi_dispatch(&mut self, _: &vte::Params, _: &[u8], _: bool, action: char) {
        self.acts.push(format!("control sequence {action}"));
    }

    fn esc_dispatch(&mut self, _: &[u8], _: bool, byte: u8) {
        // The second half of ST arrives here.
        if byte != b'\\' {
            self.acts.push(format!("escape {byte:#x}"));
        }
    }
}

/// Returns the payloads of an output of sequences and harmless text, as both the scanner and a terminal parse it.
fn opened(output: &str) -> Vec<&str> {
    // Terminals that take the UTF-8 form of a C1 control for the control itself exist: kitty 0.26 is one.
    let no_text =
        |c: &char| ('\u{7f}'..='\u{9f}').contains(c) || "\u{ad}\u{61c}\u{feff}\u{10eeee}".contains(*c);
    let turns =
        |c: &char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    let hidden = |c: &char| (no_text(c) || turns(c)) && *c != '\u{200d}';
    assert_eq!(output.chars().find(hidden), None, "{output:?}");
    let (payloads, plain) = payloads(output);
    let (mut parser, mut parsed) = (vte::Parser::new(), Parsed::default());
    parser.advance(&mut parsed, output.as_bytes());
    assert_eq!(parsed.acts, [""; 0], "{output:?}");
    assert_eq!((parsed.sequences, parsed.printed), (payloads.len(), plain), "{output:?}");
    payloads
}

fn only(output: &str) -> &str {
    let payloads = opened(output);
    assert_eq!(payloads.len(), 1, "{output:?}");
    payloads[0]
}

fn check_osc9(output: &str) {
    let text = only(output).strip_prefix("9;").unwrap();
    assert!(!text.contains(';') && !text.starts_with(|first: char| first.is_ascii_digit()), "{output:?}");
}

fn check_osc777(output: &str) {
    let text = only(output).strip_prefix("777;notify;").unwrap();
    let (_, body) = text.split_once(';').unwrap();
    assert!(!body.is_empty() && !body.contains(';'), "{output:?}");
}

/// Checks one notification: unfinished chunks, and an empty last one that finishes it.
fn check_osc99(output: &str) {
    let payloads = opened(output);
    for (index, payload) in payloads.iter().enumerate() {
        let (keys, text) = payload.strip_prefix("99;i=7:").unwrap().split_once(';').unwrap();
        let last = index == payloads.len() - 1;
        assert!(keys.starts_with(if last { "d=1:" } else { "d=0:" }), "{output:?}");
        assert_eq!(text.is_empty(), last, "{output:?}");
    }
}

proptest! {
    #[test]
    fn plain_sequences_have_only_their_own_controls(head in text(), body in text()) {
        for end in ENDS {
            for heading in [None, Some(head.as_str())] {
                check_osc9(&osc9(heading, &body, end));
                check_osc777(&osc777(heading, &body, end));
            }
            for state in [TitleState::Idle, TitleState::Busy { frame: 0 }, TitleState::Busy { frame: 1 }] {
                prop_assert!(only(&title(state, &head, end)).starts_with("0;"));
            }
            let link = hyperlink(&head, &body, end);
            let [start, "8;;"] = opened(&link)[..] else { panic!("{link:?}") };
            prop_assert!(start.starts_with("8;;") && start.is_ascii());
        }
    }

    #[test]
    fn osc99_has_only_its_own_controls_whatever_field_has_the_text(text in text(), other in text()) {
        let id = NotificationId::new("7").unwrap();
        let message = Osc99Message {
            title: &text,
            body: &other,
            buttons: &[&text, &other],
            application: Some(&text),
            icons: &[&text, &other],
            sound: Some(&other),
            types: &[&text, &other],
            ..Osc99Message::new(&id)
        };
        for end in ENDS {
            check_osc99(&message.encode(end));
        }
    }

    #[test]
    fn a_status_has_only_its_own_controls_whatever_field_has_the_text(text in text(), other in text()) {
        let status = ProgramStatus {
            kind: Some(BlockedKind::Question),
            app: Some(text.clone()),
            id: Some(other.clone()),
            progress: Some(200),
            title: Some(text),
            message: Some(other),
            ..ProgramStatus::new(StatusState::Blocked)
        };
        for end in ENDS {
            prop_assert!(only(&status.encode(end)).starts_with("7501;state=blocked:"));
        }
    }

    #[test]
    fn a_wrapped_notice_has_only_its_own_controls(head in text(), body in text(), layers in stack()) {
        let id = NotificationId::new("7").unwrap();
        let notice = OutgoingNotification { id: &id, title: Some(&head), body: &body, urgency: Urgency::Critical, icon: None };
        let arrived = |method| {
            let encoded = notice.encode(method, &layers);
            assert!(std::str::from_utf8(&encoded).is_ok(), "a character torn: {}", encoded.escape_ascii());
            String::from_utf8(unwrapped(&encoded, &layers)).unwrap()
        };
        check_osc9(&arrived(Method::Iterm2));
        check_osc777(&arrived(Method::Ghostty));
        check_osc99(&arrived(Method::Kitty));
        // A bell is never wrapped, so that the multiplexers see it themselves.
        let with_bell = notice.encode(Method::Iterm2WithBell, &layers);
        let bare = notice.encode(Method::Iterm2, &layers);
        prop_assert_eq!(with_bell.strip_suffix(BEL.as_bytes()), Some(bare.as_slice()));
        prop_assert_eq!(notice.encode(Method::TerminalBell, &layers), BEL.as_bytes());
        for silent in [Method::Disabled, Method::NoMethodAvailable] {
            prop_assert_eq!(notice.encode(silent, &layers), b"");
        }
    }

    /// GNU screen truncates each character to the lowest byte of its code point: ESC from ě (U+011B), BEL from ć (U+0107).
    /// Only ASCII and the upper half of Latin-1 pass unchanged.
    #[test]
    fn a_notice_for_screen_has_no_character_that_becomes_a_control(head in text(), body in text(), layers in stack()) {
        prop_assume!(layers.contains(&Multiplexer::Screen));
        let id = NotificationId::new("7").unwrap();
        let notice = OutgoingNotification { id: &id, title: Some(&head), body: &body, urgency: Urgency::Normal, icon: None };
        for method in [Method::Iterm2, Method::Ghostty, Method::Kitty] {
            let encoded = String::from_utf8(notice.encode(method, &layers)).unwrap();
            let mangled = encoded.chars().find(|c| !matches!(c, '\0'..='\x7f' | '\u{a0}'..='\u{ff}'));
            prop_assert_eq!(mangled, None, "{:?} {:?}", method, layers);
        }
    }
}

#[test]
fn progress_has_only_its_own_controls() {
    let values = (0..=100).map(Percent::new).chain([None]);
    let states =
        values.flat_map(|value| [Progress::Set(value), Progress::Error(value), Progress::Paused(value)]);
    for progress in states.chain([Progress::Indeterminate, Progress::Clear]) {
        for end in ENDS {
            let output = progress.encode(end);
            let value = only(&output).strip_prefix("9;4;").unwrap();
            assert!(value.chars().all(|digit| digit.is_ascii_digit() || digit == ';'), "{output:?}");
        }
    }
}

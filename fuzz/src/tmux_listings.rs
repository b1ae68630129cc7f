//! Arbitrary listings of tmux, one after the other: commands name only ids that tmux gives, what is drawn once is not
//! drawn again, and the person looks only at panes in clients that are listed.

use ringer_tmux::{OfflineLook, OfflineTmux};

pub fn run(data: &[u8]) {
    let Some((&[time, ring], listings)) = data.split_first_chunk() else { return };
    let mut tmux = OfflineTmux::default();
    // Each listing is a second later than the last.
    for (number, listing) in listings.split(|byte| *byte == 0).enumerate() {
        let listing = String::from_utf8_lossy(listing);
        let now = i64::from(time) + i64::try_from(number).expect("few listings");
        let is_ringing = ring & 1 << (number % 8) != 0;
        check(&listing, now, &tmux.look(&listing, now, is_ringing));
        let again = tmux.look(&listing, now, is_ringing);
        assert_eq!(again.commands, [[""; 0]; 0]);
    }
}

fn check(listing: &str, now: i64, look: &OfflineLook) {
    for [id, window, .., title] in &look.panes {
        assert!(is_id(id, '%') && is_id(window, '@'), "{id:?} {window:?}");
        assert!(listing.contains(title) && !title.contains('\n'));
    }
    assert!(look.again.is_none_or(|again| again > now));
    assert!(look.bells.iter().all(|bell| look.panes.iter().any(|[id, ..]| id == bell)));
    for (client, pane) in &look.views {
        assert!(listing.lines().any(|line| line.starts_with("c ") && line.ends_with(client.as_str())));
        assert!(is_id(pane, '%'), "{pane:?}");
    }
    for words in &look.commands {
        let target = match &words[..] {
            [_, target] => target,
            [_, _, flag, target, ..] if flag == "-t" => target,
            words => panic!("{words:?}"),
        };
        assert!(is_id(target, '%') || is_id(target, '@'), "{words:?}");
    }
}

fn is_id(id: &str, sign: char) -> bool {
    let number = id.strip_prefix(sign).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

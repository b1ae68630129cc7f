//! Arbitrary answers of kitty: any cut gives the same listing, the person is only where a window is active, and a title
//! that is marked comes back as it was.

use ringer_windows::{read_listing, title_request, wanted_title};
use serde_json::Value;

use crate::input::split;

const BEGIN: &[u8] = b"\x1bP@kitty-cmd";
const END: &[u8] = b"\x1b\\";

pub fn run(data: &[u8]) {
    let Some((stream, pieces)) = split(data) else { return };
    let listing = read_listing([stream]);
    assert_eq!(listing, read_listing(pieces));
    let Ok(Some(listing)) = listing else { return };
    for window in listing.windows() {
        assert!(window.is_active || !window.is_focused);
        assert_ne!(window.os_window, Some(0));
        let title = listing.title(window.id).expect("every window has a title");
        check_marks(window.id, title);
    }
}

fn check_marks(window: u64, title: &str) {
    let Some(marked) = wanted_title(title, true) else { return };
    assert_eq!(wanted_title(&marked, true), None);
    assert_eq!(wanted_title(&marked, false).as_deref(), Some(title));
    let request = title_request(window, &marked);
    let json = request.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END)).expect("a request");
    assert!(!json.contains(&0x1b), "nothing ends it before its end");
    let json: Value = serde_json::from_slice(json).expect("JSON");
    assert_eq!(json["payload"]["title"].as_str(), Some(&marked[..]));
}

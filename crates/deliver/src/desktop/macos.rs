//! The desktop of macOS: its Notification Center, through notify-rust.
//!
//! A program without a bundle may only use the old interface (`NSUserNotificationCenter`), and only in the name of another
//! program. That interface does not report whether the person allows notifications nor, without a main loop, whether a banner was
//! clicked; so "shown" means that the system accepted it.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use notify_rust::{Notification, set_application};
use ringer_term::sanitise_line;
use tokio::sync::mpsc;

use super::center::{self, Banner};
use super::popup::{DesktopEvent, DesktopRequest, PreviousPopup};

/// The program in whose name banners are shown: every Mac has it, and a click opens a terminal. notify-rust would search for a
/// program called `use_default`, and macOS may ask the person where that is.
const APPLICATION: &str = "com.apple.Terminal";

/// The worker. Popups of an earlier hub cannot be replaced, and clicks are not reported.
pub(super) async fn run(
    _address: Option<String>,
    _known: Vec<PreviousPopup>,
    deadline: Duration,
    requests: mpsc::Receiver<DesktopRequest>,
    _events: mpsc::Sender<DesktopEvent>,
    _popup_count: Arc<AtomicUsize>,
) {
    center::run(post, "macos", deadline, requests).await;
}

/// Posts a banner. Takes two seconds, because the system confirms it to a main loop, which this process does not have.
fn post(banner: &Banner) -> Result<(), String> {
    static NAMED: OnceLock<Result<(), String>> = OnceLock::new();
    NAMED.get_or_init(|| set_application(APPLICATION).map_err(|error| error.to_string())).clone()?;
    let mut notification = Notification::new();
    notification.summary(&banner.title).body(&banner.message);
    if let Some(subtitle) = &banner.subtitle {
        notification.subtitle(subtitle);
    }
    // `show` returns a handle; dropping it posts the banner.
    notification.show().map(drop).map_err(|error| sanitise_line(&error.to_string()))
}

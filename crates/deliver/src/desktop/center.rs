//! Banners, as macOS calls its popups. The calls that show them block, so each runs in its own thread and delays no other.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ringer_term::{sanitise_block, sanitise_line};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout_at;

use crate::error::Error;

use super::popup::{DesktopRequest, DesktopStatus, DisplayedPopup, Popup, PopupHandle};

/// How many calls may run at once. A further one waits for a permit until its deadline.
const MAX_AT_ONCE: usize = 16;

/// The worker: runs until the last [`Desktop`](super::Desktop) is dropped. It only posts banners; it never changes one.
pub(super) async fn run(
    post: impl Fn(&Banner) -> Result<(), String> + Send + Sync + 'static,
    server: &'static str,
    deadline: Duration,
    mut requests: mpsc::Receiver<DesktopRequest>,
) {
    let (post, at_once) = (Arc::new(post), Arc::new(Semaphore::new(MAX_AT_ONCE)));
    let mut number = 0_u32;
    while let Some(request) = requests.recv().await {
        let (popup, by, answer) = match request {
            DesktopRequest::Show { popup, by, answer } => (popup, by, answer),
            DesktopRequest::Describe { answer } => {
                let server = Ok("Notification Center shows banners".to_owned());
                let _ = answer.send(DesktopStatus { bus: None, server });
                continue;
            }
            DesktopRequest::Withdraw { .. } | DesktopRequest::UseBus { .. } => continue,
        };
        let Ok(Ok(permit)) = timeout_at(by, Arc::clone(&at_once).acquire_owned()).await else {
            let _ = answer.send(Err(Error::NoAnswer(deadline)));
            continue;
        };
        // The caller has given up and uses another channel instead.
        if answer.is_closed() {
            continue;
        }
        number = number.wrapping_add(1);
        let handle = PopupHandle { number, server: server.to_owned() };
        let displayed = DisplayedPopup { handle, offer: None };
        let post = Arc::clone(&post);
        // The caller has the deadline. A late thread finds the receiver dropped; a thread that cannot be started drops the
        // answer.
        let _ = thread::Builder::new().name("banner".to_owned()).spawn(move || {
            let posted = post(&popup.banner());
            drop(permit);
            let _ = answer.send(posted.map(|()| displayed).map_err(Error::Desktop));
        });
    }
}

/// A popup for Notification Center, which reads no markup.
///
/// There is no urgency. Only a sound could express one, but sound is a separate channel that may be muted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Banner {
    /// The heading, never empty.
    pub(super) title: String,
    /// The line below it.
    pub(super) subtitle: Option<String>,
    /// The text.
    pub(super) message: String,
}

impl Popup {
    pub(super) fn banner(&self) -> Banner {
        let subtitle = sanitise_line(self.subtitle.trim());
        Banner {
            title: self.heading(),
            subtitle: Some(subtitle).filter(|subtitle| !subtitle.trim().is_empty()),
            message: sanitise_block(self.body.trim()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc as blocking};

    use tokio::task::JoinSet;

    use crate::note::example;

    use super::super::{Desktop, MAX_QUEUED, Popup};
    use super::*;

    fn desktop(
        deadline: Duration,
        post: impl Fn(&Banner) -> Result<(), String> + Send + Sync + 'static,
    ) -> Desktop {
        let (requests, queue) = mpsc::channel(MAX_QUEUED);
        tokio::spawn(run(post, "test", deadline, queue));
        Desktop { requests, deadline, popup_count: Arc::default() }
    }

    fn popup(title: &str) -> Popup {
        Popup { title: title.to_owned(), ..Popup::of(&example()) }
    }

    #[tokio::test]
    async fn what_was_posted_is_counted_and_what_was_refused_is_told() {
        let (told, banners) = blocking::channel();
        let desktop = desktop(Duration::from_secs(30), move |banner| {
            let refused = banner.title == "no";
            told.send(banner.clone()).map_err(|error| error.to_string())?;
            if refused { Err("not allowed".to_owned()) } else { Ok(()) }
        });
        assert_eq!(
            desktop.show(popup("a")).await.unwrap().handle,
            PopupHandle { number: 1, server: "test".to_owned() }
        );
        assert_eq!(banners.recv().unwrap(), popup("a").banner());
        let refused = desktop.show(popup("no")).await.unwrap_err();
        assert_eq!(refused.to_string(), "the notification server: not allowed");
        assert_eq!(desktop.show(popup("b")).await.unwrap().handle.number, 3);
    }

    #[tokio::test]
    async fn calls_that_hang_delay_no_other_until_no_permit_is_left() {
        let (arrive, mut arrived) = mpsc::channel(MAX_AT_ONCE);
        let (end, held) = blocking::channel::<()>();
        let held = Mutex::new(held);
        let patient = desktop(Duration::from_secs(30), move |banner| {
            if banner.title == "hangs" {
                arrive.blocking_send(()).map_err(|error| error.to_string())?;
                // The first waits for the end, and the others for the first.
                let _ = held.lock().unwrap().recv();
            }
            Ok(())
        });
        let mut hanging = JoinSet::new();
        for turn in 0..MAX_AT_ONCE {
            assert!(patient.show(popup("a")).await.is_ok(), "{turn} hang");
            let patient = patient.clone();
            hanging.spawn(async move { patient.show(popup("hangs")).await });
            arrived.recv().await.unwrap();
        }
        let hasty = Desktop { deadline: Duration::from_millis(50), ..patient.clone() };
        assert!(matches!(hasty.show(popup("a")).await, Err(Error::NoAnswer(_))));
        drop(end);
        assert!(hanging.join_all().await.iter().all(Result::is_ok));
        assert!(patient.show(popup("a")).await.is_ok());
    }

    #[test]
    fn hostile_text_is_plain_text() {
        let check = |(title, subtitle, body): (&str, &str, &str), expect: (&str, Option<&str>, &str)| {
            let (title, subtitle, body) = (title.to_owned(), subtitle.to_owned(), body.to_owned());
            let banner = Popup { title, subtitle, body, ..Popup::of(&example()) }.banner();
            assert_eq!((banner.title.as_str(), banner.subtitle.as_deref(), banner.message.as_str()), expect);
        };
        check(("Claude", "repo", "done"), ("Claude", Some("repo"), "done"));
        check(
            ("a\x1b[31m\nb", "c\nd\x07", "<b>1 & 2</b>\x07\nnext"),
            ("a[31m b", Some("c d"), "<b>1 & 2</b>\nnext"),
        );
        check(("\x07", "\x1b", " "), ("Ringer", None, ""));
    }
}

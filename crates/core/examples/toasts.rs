//! A footer: toasts come in, the most urgent is shown, each for its time. Prints what a person would see.

use std::time::Duration;

use ringer_core::toast::{Priority, Toast, ToastQueue};

fn main() {
    let mut toasts = ToastQueue::default();
    let mut now = Duration::ZERO;
    toasts.add(now, Toast::new("plugin-autoupdate", Priority::Low, "plugins were updated"));
    toasts.add(now, Toast::new("rate-limit-warning", Priority::High, "80 % of this week's limit is used"));
    show(&toasts, now);
    // Half-way through, something that cannot wait.
    now += Duration::from_secs(4);
    toasts.add(now, Toast::new("limit-reached", Priority::Immediate, "limit reached"));
    show(&toasts, now);
    // A real footer sleeps until the deadline; here time just passes.
    while let Some(deadline) = toasts.next_deadline() {
        now = deadline;
        toasts.tick(now);
        show(&toasts, now);
    }
}

fn show(toasts: &ToastQueue, now: Duration) {
    let line = toasts.current().map_or_else(|| "(nothing)".to_owned(), Toast::text);
    println!("{:>3} s  {line}", now.as_secs());
}

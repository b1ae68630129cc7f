//! Deliveries on their way, the popups that are shown, and the marks in titles.

pub(super) mod popups;
pub(super) mod queue;
pub(super) mod title_marks;

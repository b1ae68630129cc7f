//! Pending deliveries, popups, and title marks.

pub(super) mod popups;
pub(super) mod queue;
pub(super) mod title_marks;

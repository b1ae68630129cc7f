//! Surfaces, who shows them, what hosts report, and going there.

pub(super) mod focus_requests;
pub(super) mod host_focus;
pub(super) mod registry;
pub(super) mod requests;
pub(super) mod surfaces;

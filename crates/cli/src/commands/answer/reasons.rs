//! Why some things cannot be answered from here.

pub(super) const NOT_TOLD: &str = "its client does not tell what it asks";
pub(super) const DIALOG_ONLY: &str = "its client takes answers only in its own terminal";
pub(super) const OVER: &str = "it is over";

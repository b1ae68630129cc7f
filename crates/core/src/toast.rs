//! Toasts: short texts in a host's footer, one at a time, and the catalogue of conditions that show one.

mod queue;
mod sources;

pub(crate) use queue::DEFAULT_TOAST_TIMEOUT;
pub use queue::{Colour, Fold, Priority, Toast, ToastQueue, ToastSpan, fold_named, fold_names};
pub use sources::{
    Observation, SourceNotification, Sources, ToastChange, UnknownSource, names as source_names,
};

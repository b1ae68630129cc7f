//! Toasts: short texts in a host's footer, one at a time, and the catalogue of conditions that show one.

mod fold;
mod queue;
mod sources;

pub use fold::{fold_named, fold_names};
pub(crate) use queue::DEFAULT_TOAST_TIMEOUT;
pub use queue::{Colour, Fold, Priority, Toast, ToastQueue, ToastSpan};
pub use sources::{
    Observation, SourceNotification, Sources, ToastChange, UnknownSource, names as source_names,
};

//! The ways in which a toast is merged into the earlier one of its key, by name.

use super::queue::{Colour, Fold, Toast, ToastSpan};

const FOLDS: [(&str, Fold); 2] = [("replace", replace), ("append", append)];

/// What stands between two texts.
const BETWEEN: &str = " · ";
/// The most pieces that a toast is appended to. A footer shows fewer.
const MAX_SPANS: usize = 32;

/// The fold of a name.
///
/// ```
/// use ringer_core::toast::{Priority, Toast, fold_named};
///
/// let append = fold_named("append").unwrap();
/// let toast = |text: &str| Toast::new("build", Priority::Low, text);
/// assert_eq!(append(&toast("api is green"), &toast("web is red")).text(), "api is green · web is red");
/// assert!(fold_named("sum").is_none());
/// ```
pub fn fold_named(name: &str) -> Option<Fold> {
    FOLDS.iter().find(|(known, _)| *known == name).map(|(_, fold)| *fold)
}

/// The names of the folds.
pub fn fold_names() -> impl Iterator<Item = &'static str> {
    FOLDS.iter().map(|(name, _)| *name)
}

fn replace(_: &Toast, incoming: &Toast) -> Toast {
    incoming.clone()
}

fn append(accumulator: &Toast, incoming: &Toast) -> Toast {
    let mut spans = accumulator.spans.clone();
    spans.push(ToastSpan { text: BETWEEN.to_owned(), colour: Colour::Plain });
    spans.extend(incoming.spans.iter().cloned());
    spans.truncate(MAX_SPANS);
    Toast { spans, ..incoming.clone() }
}

use std::env;

/// Whether this is a machine that decides about a change, and not a developer's.
pub(crate) fn is_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty())
}

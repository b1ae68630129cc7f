use std::env;

/// Returns true on a CI machine.
pub(crate) fn is_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty())
}

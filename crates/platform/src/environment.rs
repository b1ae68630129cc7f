//! Variables of the environment. One that is set to nothing counts as not set, as the XDG specification says.

use std::ffi::OsString;
use std::path::PathBuf;

/// The value of a variable.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The value of a variable, as a path.
pub fn path_variable(name: &str) -> Option<PathBuf> {
    variable(name).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::{path_variable, variable};

    #[test]
    fn a_variable_that_is_not_set_has_no_value() {
        assert!(variable("PATH").is_some() && path_variable("PATH").is_some());
        assert_eq!(variable("RINGER_TEST_NEVER_SET"), None);
    }
}

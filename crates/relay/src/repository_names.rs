//! The names that the person gave to repositories of this machine, as they are now.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ringer_core::policy::RepositoryName;

/// Reads the names, if they may have changed since it was called last.
type ReadNames = Box<dyn FnMut() -> Option<Vec<RepositoryName>> + Send>;

/// The names of repositories, shared by what sets them and the links, which use them while they are connected.
#[derive(Debug, Clone, Default)]
pub struct RepositoryNames(Arc<Mutex<Names>>);

#[derive(Default)]
struct Names {
    current: Arc<[RepositoryName]>,
    read: Option<ReadNames>,
}

impl RepositoryNames {
    /// Names that are read anew whenever they are needed. `read` gives them if they may have changed.
    pub fn read_with(read: impl FnMut() -> Option<Vec<RepositoryName>> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Names { read: Some(Box::new(read)), ..Names::default() })))
    }

    /// These are the names from now on.
    pub(crate) fn set(&self, names: Vec<RepositoryName>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).current = names.into();
    }

    /// The names.
    pub(crate) fn current(&self) -> Arc<[RepositoryName]> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(changed) = names.read.as_mut().and_then(|read| read()) {
            names.current = changed.into();
        }
        Arc::clone(&names.current)
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Names").field("current", &self.current).finish_non_exhaustive()
    }
}

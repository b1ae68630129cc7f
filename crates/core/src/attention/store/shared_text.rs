//! Shared copies of texts that many records have in common.

use std::collections::HashMap;
use std::sync::Arc;

use crate::attention::Record;
use crate::message::{SurfaceId, WorkspaceId};

/// The names in records: senders, repositories, places, categories. With 100,000 unread notifications from a few agents,
/// separate copies would take a fifth of the memory.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedTexts {
    /// The number of uses of each text.
    texts: HashMap<Arc<str>, usize>,
}

impl SharedTexts {
    /// Makes a record share the texts of other records.
    pub(super) fn share(&mut self, record: &mut Record) {
        record.sender = self.get(&record.sender);
        record.scope = self.get(&record.scope);
        record.category = record.category.take().map(|category| self.get(&category));
        record.machine = record.machine.take().map(|machine| self.get(&machine));
        record.place.workspace = WorkspaceId::from(self.get(record.place.workspace.as_str()));
        record.place.surface =
            record.place.surface.take().map(|surface| SurfaceId::from(self.get(surface.as_str())));
    }

    /// Releases the texts of a removed record. Texts that no other record has are forgotten.
    pub(super) fn release(&mut self, record: &Record) {
        let names = [
            Some(&*record.sender),
            Some(&*record.scope),
            record.category.as_deref(),
            record.machine.as_deref(),
        ];
        let places =
            [Some(record.place.workspace.as_str()), record.place.surface.as_ref().map(SurfaceId::as_str)];
        for text in names.into_iter().chain(places).flatten() {
            let Some(uses) = self.texts.get_mut(text) else { continue };
            *uses -= 1;
            if *uses == 0 {
                self.texts.remove(text);
            }
        }
    }

    fn get(&mut self, text: &str) -> Arc<str> {
        let known = self.texts.get_key_value(text).map(|(shared, _)| Arc::clone(shared));
        let shared = known.unwrap_or_else(|| text.into());
        *self.texts.entry(Arc::clone(&shared)).or_default() += 1;
        shared
    }
}

//! Which notifications a list shows if not all fit on it.

use crate::attention::Record;

/// The rows of a list, newest first: those of this machine, then those of other machines. If there are more of both than fit,
/// each gets half, so that neither hides the other.
pub fn local_first<'a>(
    local: impl Iterator<Item = &'a Record>,
    elsewhere: impl Iterator<Item = &'a Record>,
    most: usize,
) -> impl Iterator<Item = &'a Record> {
    let (mut local, mut elsewhere): (Vec<_>, Vec<_>) =
        (local.take(most).collect(), elsewhere.take(most).collect());
    local.truncate(most - elsewhere.len().min(most / 2));
    elsewhere.truncate(most - local.len());
    local.into_iter().chain(elsewhere)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{Kind, MessageId, Place, WorkspaceId};

    fn records(count: usize) -> Vec<Record> {
        let id = MessageId::new(0, [0; 10]);
        let record = Record::new(id, Place::workspace(WorkspaceId::new("w")), Kind::Status, "x", 0);
        vec![record; count]
    }

    proptest! {
        #[test]
        fn neither_hides_the_other(local in 0usize..40, elsewhere in 0usize..40, most in 0usize..40) {
            let (own, others) = (records(local), records(elsewhere));
            let others: Vec<Record> =
                others.into_iter().map(|record| Record { machine: Some("box".into()), ..record }).collect();
            let rows: Vec<&Record> = local_first(own.iter(), others.iter(), most).collect();
            prop_assert_eq!(rows.len(), most.min(local + elsewhere));
            prop_assert!(rows.is_sorted_by_key(|record| record.machine.is_some()));
            let listed = rows.iter().filter(|record| record.machine.is_none()).count();
            prop_assert!(listed >= local.min(most - most / 2));
            prop_assert!(rows.len() - listed >= elsewhere.min(most / 2));
        }
    }
}

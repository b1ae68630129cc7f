//! The cost of one operation on a store with a given number of notifications.
//!
//! `store_cost STORED OPERATION COUNT` fills a store and does the operation so often; `cargo xtask bench store` runs it with
//! and without operations and counts instructions, so that only the operations remain.

use ringer_core::attention::{NotificationStore, ReadReason, Record};
use ringer_core::message::{Place, SurfaceId, WorkspaceId};
use ringer_core::{Kind, MessageId};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |index: usize| arguments.get(index).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let (stored, count) = (number(1), number(3));
    let operation = arguments.get(2).map_or("query", String::as_str);
    // Room for everything from the start: growing a table is part of the filling, not of an operation.
    let mut store = NotificationStore::default();
    for id in 0..stored {
        store.add(record(id), 0);
    }
    let mut found = 0;
    for turn in 0..count {
        let (new, old) = (stored + turn, turn % stored.max(1));
        match operation {
            "add" => found += usize::from(store.add(record(new), 0).is_new),
            "read" => {
                found +=
                    usize::from(store.mark(&id(old), turn / stored.max(1) % 2 == 0, 0, &ReadReason::Person));
            }
            "clear" => {
                store.add(record(new), 0);
                found += store.clear(&place(new)).len();
            }
            _ => found += usize::from(store.has_unread(&place(old))) + store.unread_of(&workspace(old)),
        }
    }
    println!("{found} {}", store.len());
    // The end of the program frees it; freeing a million records one by one is no part of an operation.
    std::mem::forget(store);
}

fn id(number: u64) -> MessageId {
    MessageId::new(number, [7; 10])
}

fn workspace(number: u64) -> WorkspaceId {
    WorkspaceId::new(&format!("workspace-{:07}", number % 1000))
}

/// A surface of its own for each, so that nothing is superseded.
fn place(number: u64) -> Place {
    Place::surface(workspace(number), SurfaceId::new(&format!("surface-{number:09}")))
}

fn record(number: u64) -> Record {
    Record::new(id(number), place(number), Kind::Waiting, "needs you", 0)
}

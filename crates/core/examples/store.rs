//! A sidebar: notifications come in, panes are looked at, badges and rings follow.

use std::time::Duration;

use ringer_core::attention::{Attention, ReadReason, Record, UnreadReason};
use ringer_core::message::{Place, SurfaceId, WorkspaceId};
use ringer_core::{Kind, MessageId};

fn main() {
    let mut attention = Attention::default();
    let api = WorkspaceId::new("api");
    let pane = |name: &str| Place::surface(api.clone(), SurfaceId::new(name));
    let notify = |attention: &mut Attention, number: u64, place: Place, body: &str| {
        attention.add(Record::new(MessageId::new(number, [0; 10]), place, Kind::Waiting, body, 0), 0);
    };
    notify(&mut attention, 1, pane("claude"), "needs permission to run the migrations");
    notify(&mut attention, 2, pane("codex"), "is waiting for input");
    notify(&mut attention, 3, pane("codex"), "is still waiting"); // takes the place of the one before it
    attention.set(UnreadReason::Manual, pane("shell"));
    println!("badge of api: {}", attention.badge(&api));
    for name in ["claude", "codex", "shell"] {
        println!("ring on {name}: {}", attention.has_ring(&pane(name), Duration::ZERO));
    }
    attention.read(&pane("claude"), 0, &ReadReason::Looked);
    println!("after looking at claude: {}", attention.badge(&api));
    for record in attention.store().newest() {
        println!("{} {}", if record.is_read { ' ' } else { '●' }, record.body);
    }
}

//! What commands report while a hub runs, word for word.

use super::world::HubWorld;
use crate::snapshot::check_command;

#[test]
fn reports_of_a_hub() {
    let world = HubWorld::new();
    let id = world.notify(&["--from", "worker-1", "hello"]);
    // The answer to this comes after the hub has processed the message.
    world.run(&["read", &id]);
    let directory = world.environment.path();
    check_command("why", &mut world.ringer(&["why", &id]), directory);
    let other = world.notify(&["--to", "worker-9", "just for you"]);
    world.run(&["read", "--all"]);
    check_command("why-for-an-agent", &mut world.ringer(&["why", &other]), directory);
    check_command("hub-status", &mut world.ringer(&["hub", "status"]), directory);
    check_command("jump-nothing-unread", &mut world.ringer(&["jump"]), directory);
    check_command("error-notification", &mut world.ringer(&["read", &id.replace('0', "1")]), directory);
}

//! In a pane of tmux.

use std::fs::File;
use std::io::Write;

use serde_json::{Value, json};
use test_support::{make_fifo, until};

use super::pane::RINGER;
use crate::hub::environment::HubEnvironment;
use crate::hub::tmux::Tmux;
use crate::hub::tmux_client::{TmuxClient, setup, tell_from};

/// A person with two panes: they are in the first one, and a program runs in the second.
struct TwoPanes<'a> {
    environment: &'a HubEnvironment,
    tmux: Tmux<'a>,
    _client: TmuxClient,
}

impl<'a> TwoPanes<'a> {
    fn open(environment: &'a HubEnvironment) -> Self {
        let tmux = Tmux::start(environment, "set -g remain-on-exit on\n");
        setup(environment, &[]);
        let mut client = TmuxClient::attach(&tmux);
        until("a client", || !tmux.tell(&["list-clients"]).is_empty());
        client.set_focus(true);
        Self { environment, tmux, _client: client }
    }

    fn rings(&self) -> bool {
        self.tmux.tell(&["show-options", "-pqv", "-t", "%1", "@ringer_ring"]) == "1"
    }

    /// What came from the second pane, oldest first.
    fn rows(&self) -> Vec<Value> {
        let rows = self.environment.list(&[]).into_iter().rev();
        rows.filter(|row| row["surface"].as_str().is_some_and(|surface| surface.ends_with(":%1"))).collect()
    }

    /// The person goes to the first pane, and Ringer knows it: what comes there is read.
    fn leave(&self) {
        self.tmux.tell(&["select-pane", "-t", "%0"]);
        let mut count = 0;
        until("what comes where they are is read", || {
            count += 1;
            let text = format!("number {count}");
            tell_from(self.environment, &self.tmux, "%0", &text);
            let mut row = None;
            until("it is listed", || {
                row = self.environment.list(&[]).into_iter().find(|row| row["body"] == *text);
                row.is_some()
            });
            row.is_some_and(|row| row["is_read"] == true)
        });
    }
}

#[test]
fn what_a_program_tells_and_its_end_are_told_once_each_and_ring_until_the_person_goes_there() {
    let environment =
        HubEnvironment::with_settings("[notify]\nrate_limit = \"off\"\npopup = \"off\"\nmin_turn = \"0s\"\n");
    let panes = TwoPanes::open(&environment);
    let fifo = environment.base.path().join("go");
    make_fifo(&fifo);
    let script = format!(
        "exec 3< {}; read go <&3; printf '\\033]777;notify;Build;half way\\007'; read go <&3; exit 2",
        fifo.display()
    );

    panes.tmux.tell(&["split-window", "-d", RINGER, "run", "--name", "build", "--", "sh", "-c", &script]);
    // It opens when the program reads it.
    let mut go = File::options().write(true).open(&fifo).expect("it reads");
    panes.leave();

    go.write_all(b"\n").expect("it reads");
    until("a ring", || panes.rings());
    let rows = panes.rows();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["title"], &rows[0]["body"]), (&json!("Build"), &json!("half way")));
    panes.tmux.tell(&["select-pane", "-t", "%1"]);
    until("no ring", || !panes.rings() && panes.rows()[0]["is_read"] == true);

    panes.leave();
    go.write_all(b"\n").expect("it reads");
    until("a ring", || panes.rings());
    let rows = panes.rows();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!((&rows[1]["kind"], &rows[1]["title"]), (&json!("error"), &json!("build")));
    assert!(
        rows[1]["body"].as_str().is_some_and(|body| body.starts_with("exit status 2 after ")),
        "{rows:?}"
    );
    panes.tmux.tell(&["select-pane", "-t", "%1"]);
    until("no ring", || !panes.rings() && panes.rows()[1]["is_read"] == true);
    assert_eq!(panes.rows().len(), 2);
}

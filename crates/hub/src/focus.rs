//! Going to a place: whose it is, and the program that brings the person there, if it takes one.

use std::time::Duration;

use ringer_core::Place;
use ringer_deliver::{Output, Program};
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use crate::dispatch::Dispatcher;
use crate::host::Focused;

/// How long such a program may take.
const DEADLINE: Duration = Duration::from_secs(2);

/// What came of wanting to go somewhere.
pub(crate) enum Went {
    /// This.
    So(Value),
    /// It takes this program; see [`bring`].
    By(Vec<String>),
}

impl Dispatcher {
    /// Goes to a place.
    pub(crate) fn focus(&mut self, place: &Place) -> Went {
        for host in &mut self.hosts {
            let name = host.name();
            match host.focus(place) {
                Focused::Done => return Went::So(json!({ "focused": true, "host": name })),
                Focused::Cannot(why) => {
                    return Went::So(json!({ "focused": false, "host": name, "why": why }));
                }
                Focused::By(argv) => return Went::By(argv),
                Focused::NotMine => {}
            }
        }
        Went::So(json!({ "focused": false, "why": "it came from no terminal that is known" }))
    }
}

/// Runs the program that brings the person there, and says what came of it.
pub(crate) async fn bring(argv: Vec<String>) -> Value {
    let name = argv.first().cloned().unwrap_or_default();
    let program = Program {
        argv,
        directory: "/".into(),
        environment: Vec::new(),
        input: Vec::new(),
        output: Output::Kept { most: 4096 },
        timeout: DEADLINE,
    };
    let why = match program.run().await.into_result(DEADLINE) {
        // It says nothing where all went well.
        Ok(said) => sanitise_line(String::from_utf8_lossy(&said).trim()),
        Err(why) => why,
    };
    if why.is_empty() {
        json!({ "focused": true, "host": name })
    } else {
        json!({ "focused": false, "host": name, "why": why })
    }
}

//! `ringer observe`.

use serde_json::{Value, json};

use crate::failure::{Exit, Failure, Outcome};
use crate::hub_client;

/// Report a condition to a source: limits, deprecations, servers, plugins
///
/// The second argument is text, or a JSON object with text, subject, active, error,
/// session and remote (docs/footer.md).
///
/// Examples:
///   ringer observe mcp-connectivity "github is not reachable"
///   ringer observe language-server '{"subject":"rust-analyzer","text":"crashed","error":true}'
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Source name; an unknown name lists the valid ones
    source: String,
    /// Condition to report
    #[arg(value_name = "TEXT|JSON")]
    observation: String,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let text = arguments.observation.trim();
    let mut observation = if text.starts_with('{') {
        serde_json::from_str::<Value>(text)
            .map_err(|error| Failure::new(Exit::Data, "the observation is not valid JSON").because(error))?
    } else {
        json!({ "text": text })
    };
    observation["source"] = json!(arguments.source);
    hub_client::call("observe", &observation).map(drop)
}

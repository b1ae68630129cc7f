//! The JSON schema of the file, for editors.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::settings::Config;

/// The schema of the person's file (draft 7, which every editor's TOML extension reads).
pub fn schema() -> Value {
    SchemaSettings::draft07().into_generator().into_root_schema_for::<Config>().to_value()
}

/// The schema as it is printed and committed.
pub fn schema_text() -> String {
    format!("{:#}\n", schema())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::parse::{ANSWERS, CHANNEL, CHANNELS, HOOK, MATCHER, NOTIFY, ROOT, TMUX, WATCH, WEBHOOK};
    use crate::relay_entry::RELAY;
    use crate::repository_entry::REPOSITORY;

    #[test]
    fn the_committed_schema_is_today_s() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.schema.json");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == schema_text(),
            "docs/config.schema.json is not what the settings are now: ringer config schema > docs/config.schema.json"
        );
    }

    #[test]
    fn what_is_read_and_what_is_documented_are_the_same() {
        let schema = schema();
        let check = |of: &Value, keys: &[&str]| {
            let mut keys = keys.to_vec();
            keys.sort_unstable();
            let mut documented: Vec<&str> =
                of["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            documented.sort_unstable();
            assert_eq!(documented, keys);
            assert_eq!(of["additionalProperties"], Value::Bool(false));
            assert!(of["properties"].as_object().unwrap().values().all(|key| key["description"].is_string()));
        };
        check(&schema, &ROOT);
        check(&schema["definitions"]["Notify"], &NOTIFY);
        check(&schema["definitions"]["Tmux"], &TMUX);
        check(&schema["definitions"]["Answers"], &ANSWERS);
        check(&schema["definitions"]["Matcher"], &MATCHER);
        check(&schema["definitions"]["Hook"], &HOOK);
        check(&schema["definitions"]["Webhook"], &WEBHOOK);
        check(&schema["definitions"]["Watch"], &WATCH);
        check(&schema["definitions"]["Channels"], &CHANNELS);
        check(&schema["definitions"]["Channel"], &CHANNEL);
        check(&schema["definitions"]["Relay"], &RELAY);
        check(&schema["definitions"]["Repository"], &REPOSITORY);
    }

    #[test]
    fn the_schema_knows_the_defaults() {
        let schema = schema();
        assert_eq!(schema["properties"]["stuck_threshold_ms"]["default"], 600_000);
        let notify = &schema["definitions"]["Notify"]["properties"];
        assert_eq!(notify["min_turn"]["default"], "10s");
        assert_eq!(notify["idle_reminder"]["default"], "60s");
        assert_eq!(schema["definitions"]["Notify"]["properties"]["rate_limit"]["default"], "30/min");
        assert_eq!(schema["definitions"]["Hook"]["properties"]["timeout_ms"]["default"], 20_000);
        assert_eq!(schema["definitions"]["Hook"]["required"], serde_json::json!(["id", "command"]));
        assert_eq!(schema["definitions"]["Webhook"]["required"], serde_json::json!(["kind", "url"]));
        assert_eq!(schema["definitions"]["Watch"]["required"], serde_json::json!(["paths", "command"]));
    }
}

//! Claude Code's status line: it reports its model and limits with every redraw. Changes are turned into observations.

use ringer_core::toast::Observation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Percentage of a limit that is worth a warning.
const WARN_AT: f64 = 80.0;
/// Percentage at which a limit is used up.
const ALL: f64 = 100.0;

/// The content of a status line.
///
/// ```
/// use ringer_agents::client::StatusLine;
///
/// let read = |json| StatusLine::read(&json);
/// let before = read(serde_json::json!({"model": {"id": "opus", "display_name": "Opus 5.5"}}));
/// let after = read(serde_json::json!({"model": {"id": "haiku", "display_name": "Haiku 5"}}));
/// assert_eq!(after.changes_since(Some(&before), "claude-1")[0].text, "claude-1: the model changed from Opus 5.5 to Haiku 5");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusLine {
    model: Option<String>,
    fast: bool,
    /// Describes limits that are nearly used up.
    near: Option<String>,
    /// Describes limits that are used up.
    over: Option<String>,
}

impl StatusLine {
    /// Reads the input of Claude Code's status line program (recorded from version 2.1.325).
    pub fn read(status: &Value) -> Self {
        let limits = status.get("rate_limits").and_then(Value::as_object);
        let used = limits.into_iter().flatten().filter_map(|(name, limit)| {
            Some((name.replace('_', " "), limit.get("used_percentage")?.as_f64()?.floor()))
        });
        let (over, others): (Vec<_>, Vec<_>) = used.partition(|(_, percent)| *percent >= ALL);
        let near = others.into_iter().filter(|(_, percent)| *percent >= WARN_AT);
        let model = &status["model"];
        Self {
            model: ["display_name", "id"].iter().find_map(|name| model[name].as_str()).map(str::to_owned),
            fast: status["fast_mode"].as_bool().unwrap_or_default(),
            near: words(near.map(|(name, percent)| format!("{percent}% of the {name} limit is used"))),
            over: words(over.into_iter().map(|(name, _)| format!("the {name} limit is reached"))),
        }
    }

    /// The changes since the last status line. Without a last one, no change of the model is reported.
    pub fn changes_since(&self, before: Option<&Self>, agent: &str) -> Vec<Observation> {
        let nothing = Self::default();
        let last = before.unwrap_or(&nothing);
        let mut observations = Vec::new();
        for (source, now, was) in
            [("rate-limit-warning", &self.near, &last.near), ("limit-reached", &self.over, &last.over)]
        {
            // Limits belong to the account: all its sessions report the same.
            if now != was {
                observations.push(condition(source, None, now.clone()));
            }
        }
        if self.fast != last.fast {
            let text = self.fast.then(|| format!("{agent} is in fast mode"));
            observations.push(condition("fast-mode", Some(agent), text));
        }
        if let (Some(from), Some(to)) = (&last.model, &self.model)
            && from != to
        {
            let text = format!("{agent}: the model changed from {from} to {to}");
            observations.push(condition("model-migration", Some(agent), Some(text)));
        }
        observations
    }
}

/// A condition that holds if there is a text, and has ended otherwise.
fn condition(source: &str, subject: Option<&str>, text: Option<String>) -> Observation {
    let active = text.is_some();
    let subject = subject.map(str::to_owned);
    Observation { subject, active, ..Observation::new(source, text.unwrap_or_default()) }
}

fn words(all: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = all.collect();
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn limits(five_hour: f64, week: f64) -> StatusLine {
        StatusLine::read(&json!({"rate_limits": {
            "five_hour": {"used_percentage": five_hour, "resets_at": 1},
            "seven_day": {"used_percentage": week},
        }}))
    }

    /// The observations as short texts: `+` starts or changes, `-` ends.
    fn changes(now: &StatusLine, before: Option<&StatusLine>) -> Vec<String> {
        let word =
            |one: Observation| format!("{}{} {}", if one.active { '+' } else { '-' }, one.source, one.text);
        now.changes_since(before, "claude-1").into_iter().map(word).collect()
    }

    #[test]
    fn only_limits_that_come_near_are_told() {
        assert!(changes(&StatusLine::read(&json!({})), None).is_empty());
        assert!(changes(&StatusLine::read(&json!({"rate_limits": "none", "model": 7})), None).is_empty());
        let calm = limits(20.0, 79.9);
        assert!(changes(&calm, None).is_empty());
        let near = limits(91.5, 80.0);
        let text = "91% of the five hour limit is used; 80% of the seven day limit is used";
        assert_eq!(changes(&near, Some(&calm)), [format!("+rate-limit-warning {text}")]);
        assert!(changes(&near, Some(&near)).is_empty(), "the same again is not worth telling");
        assert_eq!(changes(&calm, Some(&near)), ["-rate-limit-warning "]);
    }

    #[test]
    fn a_limit_that_is_used_up_is_told_as_such() {
        let (near, over) = (limits(99.9, 10.0), limits(100.0, 10.0));
        assert_eq!(
            changes(&over, Some(&near)),
            ["-rate-limit-warning ", "+limit-reached the five hour limit is reached"]
        );
        assert_eq!(changes(&limits(0.0, 10.0), Some(&over)), ["-limit-reached "]);
    }

    #[test]
    fn a_model_is_told_when_it_changes_and_fast_mode_when_it_begins_and_ends() {
        let model =
            |name: &str, fast: bool| StatusLine::read(&json!({"model": {"id": name}, "fast_mode": fast}));
        let (opus, fast) = (model("opus", false), model("opus", true));
        assert!(changes(&opus, None).is_empty(), "the first one is no change");
        assert_eq!(changes(&fast, Some(&opus)), ["+fast-mode claude-1 is in fast mode"]);
        assert_eq!(changes(&opus, Some(&fast)), ["-fast-mode "]);
        assert_eq!(
            changes(&model("haiku", false), Some(&opus)),
            ["+model-migration claude-1: the model changed from opus to haiku"]
        );
        assert!(changes(&StatusLine::read(&json!({})), Some(&opus)).is_empty(), "not said is not changed");
    }

    #[test]
    fn its_sources_are_in_the_catalogue() {
        let all = StatusLine::read(&json!({
            "model": {"id": "b"}, "fast_mode": true,
            "rate_limits": {"a": {"used_percentage": 99}, "b": {"used_percentage": 101}},
        }));
        let before = StatusLine { model: Some("a".into()), ..StatusLine::default() };
        let observations = all.changes_since(Some(&before), "claude-1");
        assert_eq!(observations.len(), 4);
        for one in observations {
            assert!(ringer_core::toast::source_names().any(|name| name == one.source), "{}", one.source);
        }
    }
}

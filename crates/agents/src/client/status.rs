//! The status line of Claude Code: it tells the model and the limits with every redraw.

use ringer_core::Observation;
use serde_json::Value;

/// From how much on a limit is worth a warning, in percent.
const WARN_AT: f64 = 80.0;

/// What the JSON that Claude Code gives its status line says of limits. Nothing, where it says nothing.
///
/// ```
/// use ringer_agents::client::read_status;
///
/// let status = serde_json::json!({"rate_limits": {"five_hour": {"used_percentage": 91.5}}});
/// assert_eq!(read_status(&status)[0].text, "91% of the five hour limit is used");
/// ```
pub fn read_status(status: &Value) -> Vec<Observation> {
    let Some(limits) = status.get("rate_limits").and_then(Value::as_object) else { return Vec::new() };
    let over = limits.iter().filter_map(|(name, limit)| {
        let used = limit.get("used_percentage")?.as_f64()?;
        (used >= WARN_AT).then(|| (name.replace('_', " "), used))
    });
    let text = over.map(|(name, used)| format!("{}% of the {name} limit is used", used.floor()));
    let text: Vec<String> = text.collect();
    if text.is_empty() {
        return Vec::new();
    }
    vec![Observation::new("rate-limit-warning", text.join("; "))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_limits_that_come_near_are_told() {
        let told = |status: Value| read_status(&status).len();
        assert_eq!(told(json!({})), 0);
        assert_eq!(told(json!({"rate_limits": "none"})), 0);
        assert_eq!(told(json!({"rate_limits": {"five_hour": {"used_percentage": 20}}})), 0);
        assert_eq!(
            told(json!({"rate_limits": {"a": {"used_percentage": 99}, "b": {"used_percentage": 85}}})),
            1
        );
    }

    #[test]
    fn its_source_is_in_the_catalogue() {
        let source = &read_status(&json!({"rate_limits": {"a": {"used_percentage": 99}}}))[0].source;
        assert!(ringer_core::source_names().any(|name| name == source), "{source}");
    }
}

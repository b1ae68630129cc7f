//! The arguments of a call, read so that what is wrong with them is said with the parameter's name.

use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::tools::ToolName;

/// The arguments of a tool. The error is for the model.
pub(super) fn read<T: DeserializeOwned>(tool: ToolName, arguments: Option<JsonObject>) -> Result<T, String> {
    let mut arguments = arguments.unwrap_or_default();
    // Models write it for what they leave out.
    arguments.retain(|_, value| !value.is_null());
    check(&tool.schema(), &arguments)?;
    serde_json::from_value(Value::Object(arguments)).map_err(|error| format!("invalid arguments: {error}"))
}

fn check(schema: &JsonObject, arguments: &JsonObject) -> Result<(), String> {
    let no_parameters = JsonObject::new();
    let parameters = schema.get("properties").and_then(Value::as_object).unwrap_or(&no_parameters);
    for (name, value) in arguments {
        let Some(parameter) = parameters.get(name) else {
            let known: Vec<&str> = parameters.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
            return Err(format!("unknown parameter {name:?} (known: {known})"));
        };
        if !fits(parameter, value) {
            return Err(format!("the parameter `{name}` must be {}", words(parameter)));
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let missing = required.filter_map(Value::as_str).find(|name| !arguments.contains_key(*name));
    missing.map_or(Ok(()), |name| Err(format!("the parameter `{name}` is missing")))
}

fn fits(parameter: &Value, value: &Value) -> bool {
    let is_of_type = match parameter["type"].as_str() {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.as_u64().is_some_and(|number| is_in_range(parameter, number)),
        Some("array") => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
        _ => true,
    };
    is_of_type && parameter["enum"].as_array().is_none_or(|known| known.contains(value))
}

fn is_in_range(parameter: &Value, number: u64) -> bool {
    parameter["minimum"].as_u64().is_none_or(|least| number >= least)
        && parameter["maximum"].as_u64().is_none_or(|most| number <= most)
}

fn words(parameter: &Value) -> String {
    if let Some(known) = parameter["enum"].as_array() {
        let known: Vec<&str> = known.iter().filter_map(Value::as_str).collect();
        return format!("one of {}", known.join(", "));
    }
    match (parameter["type"].as_str(), parameter["minimum"].as_u64(), parameter["maximum"].as_u64()) {
        (Some("integer"), least, Some(most)) => {
            format!("a whole number from {} to {most}", least.unwrap_or_default())
        }
        (Some("integer"), ..) => "a whole number, not negative".to_owned(),
        (Some("boolean"), ..) => "true or false".to_owned(),
        (Some("array"), ..) => "a list of texts".to_owned(),
        _ => "a text".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::tools::{AskArguments, ListArguments, NotifyArguments, StatusArguments};
    use serde_json::json;

    fn wrong<T: DeserializeOwned + std::fmt::Debug>(tool: ToolName, arguments: &Value) -> String {
        read::<T>(tool, arguments.as_object().cloned()).unwrap_err()
    }

    #[test]
    fn what_is_wrong_is_said_with_the_name_of_the_parameter() {
        let notify = |arguments: Value| wrong::<NotifyArguments>(ToolName::Notify, &arguments);
        assert_eq!(notify(json!({})), "the parameter `message` is missing");
        assert_eq!(notify(json!({ "message": null })), "the parameter `message` is missing");
        assert_eq!(notify(json!({ "message": 5 })), "the parameter `message` must be a text");
        assert_eq!(
            notify(json!({ "message": "x", "kind": "shout" })),
            "the parameter `kind` must be one of complete, waiting, permission, idle, question, stuck, error, status"
        );
        assert_eq!(
            notify(json!({ "message": "x", "body": "y" })),
            "unknown parameter \"body\" (known: key, kind, message, source, title, to)"
        );
        let ask = |arguments: Value| wrong::<AskArguments>(ToolName::Ask, &arguments);
        assert_eq!(
            ask(json!({ "question": "x", "options": "yes" })),
            "the parameter `options` must be a list of texts"
        );
        assert_eq!(
            ask(json!({ "question": "x", "timeout_seconds": 3601 })),
            "the parameter `timeout_seconds` must be a whole number from 0 to 3600"
        );
        assert_eq!(
            wrong::<StatusArguments>(ToolName::Status, &json!({ "x": 1 })),
            "unknown parameter \"x\" (known: it has none)"
        );
        assert!(wrong::<ListArguments>(ToolName::List, &json!({ "limit": -1 })).contains("`limit`"));
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let arguments = json!({ "message": "x", "title": null });
        let read: NotifyArguments = read(ToolName::Notify, arguments.as_object().cloned()).unwrap();
        assert_eq!(read, NotifyArguments { message: "x".to_owned(), ..NotifyArguments::default() });
        assert!(super::read::<StatusArguments>(ToolName::Status, None).is_ok());
    }
}

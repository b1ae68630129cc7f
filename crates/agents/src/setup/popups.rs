//! Claude Code's own popups: `"preferredNotifChannel": "notifications_disabled"` in its settings turns them off, so that
//! the person sees each notification once. Seen with Claude Code 2.1.325 in a terminal that says it is kitty.

use super::disk::Before;
use super::jsonc::{self, JsoncError};
use super::splice::{self, Formatting, NewValue};

const KEY: &str = "preferredNotifChannel";
const OFF: &str = "notifications_disabled";

/// Whether a text says something about popups.
pub(crate) fn are_set(text: &str) -> bool {
    let document = jsonc::parse(text).ok();
    document.and_then(|document| document.root).is_some_and(|root| root.member(KEY).is_some())
}

/// The text with popups turned off. What the person has set stays.
pub(crate) fn turn_off(text: &str) -> Result<String, JsoncError> {
    let document = jsonc::parse(text)?;
    let Some(root) = document.root.as_ref().filter(|root| root.member(KEY).is_none()) else {
        return Ok(text.to_owned());
    };
    let formatting = Formatting::of(text, Some(root));
    let new = splice::append(text, root, &formatting, Some(KEY), &NewValue::Text(OFF.to_owned()));
    Ok(new.unwrap_or_else(|| text.to_owned()))
}

/// The text without what [`turn_off`] wrote. It stays where it may be the user's: set before the setup, changed since,
/// or not known to be Ringer's.
pub(crate) fn strip(text: &str, original: &Before) -> Result<String, JsoncError> {
    let was_set = match original {
        Before::Unknown => true,
        Before::Absent => false,
        Before::Bytes(bytes) => are_set(&String::from_utf8_lossy(bytes)),
    };
    let document = jsonc::parse(text)?;
    let ours = document.root.as_ref().filter(|_| !was_set).and_then(|root| {
        let (index, value) = root.member(KEY)?;
        (value.text() == Some(OFF)).then_some((root.object()?, index))
    });
    let left = ours.and_then(|(body, index)| splice::remove(text, body, index));
    Ok(left.unwrap_or_else(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_and_back() {
        for text in ["{\n  \"model\": \"opus\"\n}\n", "{ // mine\n\t\"a\": 1,\r\n}", "{\"hooks\": {}}"] {
            let off = turn_off(text).unwrap();
            assert!(off.contains("\"preferredNotifChannel\": \"notifications_disabled\""), "{off}");
            assert_eq!(turn_off(&off).unwrap(), off);
            let before = Before::Bytes(text.as_bytes().to_vec());
            assert_eq!(strip(&off, &before).unwrap(), text);
            assert_eq!(strip(&off, &Before::Unknown).unwrap(), off, "it may be the person's");
        }
    }

    #[test]
    fn what_the_person_set_stays() {
        for text in [
            "{\"preferredNotifChannel\": \"kitty\"}",
            "{\"preferredNotifChannel\": \"notifications_disabled\"}",
        ] {
            assert_eq!(turn_off(text).unwrap(), text);
            assert_eq!(strip(text, &Before::Bytes(text.as_bytes().to_vec())).unwrap(), text);
        }
        let changed = "{\"preferredNotifChannel\": \"kitty\"}";
        assert_eq!(strip(changed, &Before::Bytes(b"{}".to_vec())).unwrap(), changed);
    }
}

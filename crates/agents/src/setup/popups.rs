//! A client's own popups: a setting in its hook file turns them off, so that the person sees each notification once.

use super::disk::Before;
use super::jsonc::{self, JsoncError};
use super::splice::{self, Formatting, NewValue};
use crate::client::PopupSetting;

/// Whether a text says something about popups.
pub(crate) fn are_set(setting: &PopupSetting, text: &str) -> bool {
    let document = jsonc::parse(text).ok();
    document.and_then(|document| document.root).is_some_and(|root| root.member(setting.key).is_some())
}

/// The text with popups turned off. What the person has set stays.
pub(crate) fn turn_off(setting: &PopupSetting, text: &str) -> Result<String, JsoncError> {
    let document = jsonc::parse(text)?;
    let Some(root) = document.root.as_ref().filter(|root| root.member(setting.key).is_none()) else {
        return Ok(text.to_owned());
    };
    let formatting = Formatting::of(text, Some(root));
    let new =
        splice::append(text, root, &formatting, Some(setting.key), &NewValue::Text(setting.off.to_owned()));
    Ok(new.unwrap_or_else(|| text.to_owned()))
}

/// The text without what [`turn_off`] wrote. It stays where it may be the user's: set before the setup, changed since,
/// or not known to be Ringer's.
pub(crate) fn strip(setting: &PopupSetting, text: &str, original: &Before) -> Result<String, JsoncError> {
    let was_set = match original {
        Before::Unknown => true,
        Before::Absent => false,
        Before::Bytes(bytes) => are_set(setting, &String::from_utf8_lossy(bytes)),
    };
    let document = jsonc::parse(text)?;
    let ours = document.root.as_ref().filter(|_| !was_set).and_then(|root| {
        let (index, value) = root.member(setting.key)?;
        (value.text() == Some(setting.off)).then_some((root.object()?, index))
    });
    let left = ours.and_then(|(body, index)| splice::remove(text, body, index));
    Ok(left.unwrap_or_else(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;

    fn setting() -> &'static PopupSetting {
        Client::Claude.adapter().settings.own_popups.as_ref().unwrap()
    }

    #[test]
    fn off_and_back() {
        for text in ["{\n  \"model\": \"opus\"\n}\n", "{ // mine\n\t\"a\": 1,\r\n}", "{\"hooks\": {}}"] {
            let off = turn_off(setting(), text).unwrap();
            assert!(off.contains("\"preferredNotifChannel\": \"notifications_disabled\""), "{off}");
            assert_eq!(turn_off(setting(), &off).unwrap(), off);
            let before = Before::Bytes(text.as_bytes().to_vec());
            assert_eq!(strip(setting(), &off, &before).unwrap(), text);
            assert_eq!(strip(setting(), &off, &Before::Unknown).unwrap(), off, "it may be the person's");
        }
    }

    #[test]
    fn what_the_person_set_stays() {
        for text in [
            "{\"preferredNotifChannel\": \"kitty\"}",
            "{\"preferredNotifChannel\": \"notifications_disabled\"}",
        ] {
            assert_eq!(turn_off(setting(), text).unwrap(), text);
            assert_eq!(strip(setting(), text, &Before::Bytes(text.as_bytes().to_vec())).unwrap(), text);
        }
        let changed = "{\"preferredNotifChannel\": \"kitty\"}";
        assert_eq!(strip(setting(), changed, &Before::Bytes(b"{}".to_vec())).unwrap(), changed);
    }
}

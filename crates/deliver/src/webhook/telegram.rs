//! Telegram, or a self-hosted server of its Bot API.

use std::time::Duration;

use ringer_core::message::Urgency;
use serde_json::{Value, json};
use ureq::http::{StatusCode, Uri};

use super::secret::Secret;
use super::service::{Refusal, Request, Service, plain_text};
use crate::note::Note;

/// Telegram's limit, in characters.
const MAX_TEXT: usize = 4096;

const METHOD: &str = "/sendMessage";

const NO_CHAT: &str =
    "it names no chat; write the chat's number at its end, as in https://api.telegram.org/?chat_id=42";
const INVALID_CHAT: &str = "its chat_id is neither a number nor the @name of a channel";
const INVALID_THREAD: &str = "its message_thread_id is not a number";
const NO_TOKEN: &str = "it has no token of a bot; write the token into a file, name the file in secret_file, \
                        and set url = \"https://api.telegram.org/?chat_id=42\"";
const INVALID_TOKEN: &str =
    "it has no valid token between /bot and /sendMessage, as in /bot123456:ABC-DEF/sendMessage";
const TWO_TOKENS: &str = "it has the token of a bot, and so has secret_file; remove one of them";

/// A bot of the Bot API. Its token is part of the path, so each address is a password.
pub(super) struct Telegram;

impl Service for Telegram {
    fn name(&self) -> &'static str {
        "telegram"
    }

    fn check(&self, address: &Uri, has_secret: bool) -> Result<(), &'static str> {
        let target = Target::of(address);
        match (&target.token, has_secret) {
            (Some(token), _) if !is_token(token) => return Err(INVALID_TOKEN),
            (Some(_), true) => return Err(TWO_TOKENS),
            (None, false) => return Err(NO_TOKEN),
            (Some(_), false) | (None, true) => {}
        }
        let chat = target.chat.ok_or(NO_CHAT)?;
        if !chat.starts_with('@') && !is_number(&chat) {
            return Err(if chat.is_empty() { NO_CHAT } else { INVALID_CHAT });
        }
        if target.thread.is_none_or(|thread| is_number(&thread)) { Ok(()) } else { Err(INVALID_THREAD) }
    }

    fn check_secret(&self, secret: &str) -> Result<(), &'static str> {
        if is_token(secret) {
            Ok(())
        } else {
            Err("it is not the token of a bot, which looks like 123456:ABC-DEF")
        }
    }

    /// Without `parse_mode`, so nothing of the text is markup.
    fn request(&self, address: &Uri, secret: Option<&Secret>, note: &Note) -> Request {
        let target = Target::of(address);
        let token = secret.map(|secret| secret.as_str().to_owned()).or(target.token).unwrap_or_default();
        let mut body = json!({
            "chat_id": target.chat.map(number_or_text),
            "text": plain_text(note, MAX_TEXT),
            "link_preview_options": { "is_disabled": true },
            "disable_notification": note.kind.urgency() < Urgency::High,
        });
        if let Some(thread) = target.thread {
            body["message_thread_id"] = number_or_text(thread);
        }
        Request {
            url: format!("{}/bot{token}{METHOD}", target.server),
            body,
            authorization: None,
            hidden: vec![token],
        }
    }

    fn read_answer(&self, status: StatusCode, body: &[u8]) -> Result<(), Refusal> {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        if status.is_success() && answer["ok"] != false {
            return Ok(());
        }
        let pause = answer["parameters"]["retry_after"].as_u64().map(Duration::from_secs);
        let mut why = match answer["description"].as_str() {
            Some(description) => description.to_owned(),
            None => String::from_utf8_lossy(body).into_owned(),
        };
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND) {
            why += " (is it the token that @BotFather gave you?)";
        }
        Err(Refusal { why, pause })
    }
}

/// The parts of an address. They may be invalid.
struct Target {
    /// Everything before `/bot`.
    server: String,
    token: Option<String>,
    chat: Option<String>,
    thread: Option<String>,
}

impl Target {
    /// Reads an address with the token, as `https://api.telegram.org/bot123456:ABC/sendMessage?chat_id=42`, or without it, as
    /// `https://api.telegram.org/?chat_id=42`. Other parameters, such as `text`, are ignored.
    fn of(address: &Uri) -> Self {
        let path = address.path().trim_end_matches('/');
        let (method, path) = path.strip_suffix(METHOD).map_or((false, path), |before| (true, before));
        let (before, last) = path.rsplit_once('/').unwrap_or_default();
        let token = last.strip_prefix("bot").map(decoded);
        // Without the method, a directory may have such a name.
        let token = token.filter(|token| method || is_token(token));
        let scheme = address.scheme_str().unwrap_or("https");
        let authority = address.authority().map_or("", |authority| authority.as_str());
        let before = if token.is_some() { before } else { path };
        let parameter = |name: &str| {
            let pairs =
                address.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
            pairs.into_iter().find(|(own, _)| *own == name).map(|(_, value)| decoded(value))
        };
        Self {
            server: format!("{scheme}://{authority}{before}"),
            token,
            chat: parameter("chat_id"),
            thread: parameter("message_thread_id"),
        }
    }
}

/// Decodes the characters that a browser encodes in a token or in the name of a chat.
fn decoded(text: &str) -> String {
    text.replace("%3A", ":").replace("%3a", ":").replace("%40", "@")
}

/// Returns true for the number of a bot, a colon, and letters. Nothing else gets into the path.
fn is_token(text: &str) -> bool {
    let is_key = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    text.split_once(':').is_some_and(|(bot, key)| {
        let is_bot = !bot.is_empty() && bot.chars().all(|character| character.is_ascii_digit());
        is_bot && !key.is_empty() && key.chars().all(is_key)
    })
}

fn is_number(text: &str) -> bool {
    text.parse::<i64>().is_ok()
}

fn number_or_text(text: String) -> Value {
    text.parse::<i64>().map_or(Value::String(text), Value::from)
}

#[cfg(test)]
mod tests {
    use ringer_core::message::ShownKind;

    use super::*;
    use crate::note::example;
    use crate::webhook::service::request_of;

    const TOKEN: &str = "123456:ABC-def_7";

    #[test]
    fn the_token_comes_from_the_file_or_the_address() {
        let check = |url: &str, secret: Option<&str>, expected: &str| {
            let request = request_of(&Telegram, url, secret, &example());
            assert_eq!(request.url, expected);
            assert_eq!((request.authorization, request.hidden), (None, vec![TOKEN.to_owned()]));
            assert_eq!(request.body["chat_id"], 42);
        };
        let plain = "https://api.telegram.org/bot123456:ABC-def_7/sendMessage";
        check("https://api.telegram.org/?chat_id=42", Some(TOKEN), plain);
        check("https://api.telegram.org?chat_id=42", Some(TOKEN), plain);
        check("https://api.telegram.org/sendMessage?chat_id=42", Some(TOKEN), plain);
        check(&format!("{plain}?chat_id=42&parse_mode=HTML&text=Hello"), None, plain);
        check("https://api.telegram.org/bot123456%3AABC-def_7?chat_id=42", None, plain);
        let own = "http://[::1]:8081/a/bot123456:ABC-def_7/sendMessage";
        check("http://[::1]:8081/a/?chat_id=42", Some(TOKEN), own);
        check("http://[::1]:8081/a/bot123456:ABC-def_7/sendMessage/?chat_id=42", None, own);
        let bots = "https://h/bots/bot123456:ABC-def_7/sendMessage";
        check("https://h/bots?chat_id=42", Some(TOKEN), bots);
    }

    #[test]
    fn what_is_missing_is_said() {
        let check = |url: &str, has_secret: bool, expected: Result<(), &str>| {
            let address: Uri = format!("https://api.telegram.org{url}").parse().unwrap();
            assert_eq!(Telegram.check(&address, has_secret), expected, "{url}");
        };
        check("/?chat_id=-100123", true, Ok(()));
        check("/?chat_id=@channel", true, Ok(()));
        check("/?chat_id=%40channel&message_thread_id=7", true, Ok(()));
        check("/?chat_id=42", false, Err(NO_TOKEN));
        check("/", true, Err(NO_CHAT));
        check("/?chatid=42", true, Err(NO_CHAT));
        check("/?chat_id=", true, Err(NO_CHAT));
        check("/?chat_id=me", true, Err(INVALID_CHAT));
        check("/?chat_id=42&message_thread_id=x", true, Err(INVALID_THREAD));
        check("/bot1:A/sendMessage?chat_id=42", false, Ok(()));
        check("/bot1:A/sendMessage", false, Err(NO_CHAT));
        check("/bot1:A/sendMessage?chat_id=42", true, Err(TWO_TOKENS));
        for token in ["", "TOKEN", "1:", ":A", "1:A%2F..", "x:A"] {
            check(&format!("/bot{token}/sendMessage?chat_id=42"), false, Err(INVALID_TOKEN));
        }
        check("/bot1:A/getUpdates?chat_id=42", false, Err(NO_TOKEN));
    }

    #[test]
    fn a_secret_that_is_no_token_is_not_put_into_the_path() {
        assert_eq!(Telegram.check_secret(TOKEN), Ok(()));
        for secret in ["hunter2", "1:a/../../getMe", "1:a?chat_id=7", "bot1:a", "1:a#", "1:ä"] {
            assert!(Telegram.check_secret(secret).is_err(), "{secret}");
        }
    }

    #[test]
    fn the_text_is_plain_and_no_longer_than_the_limit() {
        let hostile = "<b>x</b> *y* [z](https://evil.example) \\_ \u{1b}[31m\u{202e}\"}";
        let note =
            Note { title: String::new(), subtitle: hostile.into(), body: "é😀".repeat(4000), ..example() };
        let url = "https://api.telegram.org/?chat_id=@news&message_thread_id=7";
        let body = request_of(&Telegram, url, Some(TOKEN), &note).body;
        let text = body["text"].as_str().unwrap();
        assert!(text.starts_with("<b>x</b> *y* [z](https://evil.example) \\_ "), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.chars().count() == MAX_TEXT);
        let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
        let expected =
            ["chat_id", "disable_notification", "link_preview_options", "message_thread_id", "text"];
        assert_eq!(keys, expected, "nothing that makes markup of it");
        assert_eq!((&body["chat_id"], &body["message_thread_id"]), (&json!("@news"), &json!(7)));
        assert_eq!(body["link_preview_options"], json!({ "is_disabled": true }));
    }

    #[test]
    fn what_can_wait_makes_no_sound() {
        for kind in ShownKind::all() {
            let note = Note { kind, ..example() };
            let body = request_of(&Telegram, "https://h/?chat_id=42", Some(TOKEN), &note).body;
            let waits = matches!(kind, ShownKind::Complete | ShownKind::Idle | ShownKind::Status);
            assert_eq!(body["disable_notification"], waits, "{kind}");
        }
    }

    #[test]
    fn answers() {
        let check = |status: u16, body: &str, expected: Result<(), (&str, Option<u64>)>| {
            let expected = expected.map_err(|(why, pause)| Refusal {
                why: why.to_owned(),
                pause: pause.map(Duration::from_secs),
            });
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(Telegram.read_answer(status, body.as_bytes()), expected, "{body}");
        };
        check(200, r#"{"ok":true,"result":{"message_id":1}}"#, Ok(()));
        check(200, "", Ok(()));
        check(200, r#"{"ok":false,"description":"no"}"#, Err(("no", None)));
        let busy = "Too Many Requests: retry after 7";
        let body = format!(
            r#"{{"ok":false,"error_code":429,"description":"{busy}","parameters":{{"retry_after":7}}}}"#
        );
        check(429, &body, Err((busy, Some(7))));
        let body = r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#;
        check(400, body, Err(("Bad Request: chat not found", None)));
        let body = r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#;
        check(401, body, Err(("Unauthorized (is it the token that @BotFather gave you?)", None)));
        check(502, "<html>Bad Gateway", Err(("<html>Bad Gateway", None)));
    }
}

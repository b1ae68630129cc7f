//! Webhooks against a server on this machine that behaves well, badly, and not at all.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use ringer_deliver::{Error, SecretFile, Webhook};
use serde_json::Value;
use test_support::{BOT_TOKEN, DEADLINE, WebResponse, in_time, serve};

use crate::wait::note;

const OK: WebResponse = WebResponse::Status("200 OK\r\n");

fn webhook(kind: &'static str, url: &str) -> Webhook {
    Webhook { timeout: DEADLINE, ..Webhook::new(kind, url) }
}

async fn send(webhook: &Webhook) -> Result<(), Error> {
    in_time("an attempt", webhook.send(&note("m1", "May I?"))).await
}

async fn deliver(webhook: &Webhook, attempts: u32) -> Result<(), Error> {
    in_time("a delivery", webhook.deliver(&note("m1", "May I?"), attempts)).await
}

#[tokio::test]
async fn what_is_sent_arrives_with_its_secret() {
    let home = tempfile::tempdir().expect("a directory");
    let token = home.path().join("token");
    fs::write(&token, "hunter2\n").expect("a secret");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("its mode");
    let (address, sent) = serve(vec![OK]);
    let webhook =
        Webhook { secret: Some(SecretFile::new(&token)), ..webhook("ntfy", &format!("{address}/my-topic")) };
    send(&webhook).await.expect("taken");
    let sent = sent.recv().expect("a request");
    assert_eq!(sent.line, "POST / HTTP/1.1");
    assert_eq!(sent.header("authorization"), Some("Bearer hunter2"));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.header("x-ringer-id"), Some("m1"));
    let agent = sent.header("user-agent").expect("a name");
    assert!(agent.starts_with("ringer/0."), "{agent}");
    let body: Value = serde_json::from_str(&sent.body).expect("JSON");
    assert_eq!((body["topic"].as_str(), body["message"].as_str()), (Some("my-topic"), Some("May I?")));
}

#[tokio::test]
async fn a_secret_that_others_can_read_is_not_used() {
    let home = tempfile::tempdir().expect("a directory");
    let token = home.path().join("token");
    fs::write(&token, "hunter2\n").expect("a secret");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).expect("its mode");
    let webhook = Webhook { secret: Some(SecretFile::new(&token)), ..webhook("json", "http://127.0.0.1:9/") };
    let error = deliver(&webhook, 5).await.expect_err("refused").to_string();
    assert!(error.contains("chmod 600") && !error.contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_refusal_and_a_redirect_are_not_tried_again() {
    for head in ["404 Not Found\r\n", "302 Found\r\nlocation: http://127.0.0.1:9/elsewhere\r\n"] {
        let (address, sent) = serve(vec![WebResponse::Status(head), OK]);
        let error = deliver(&webhook("slack", &format!("{address}/T/secret")), 5).await;
        let Err(error @ Error::Refused { .. }) = error else { panic!("{error:?}") };
        let words = error.to_string();
        assert!(words.starts_with("127.0.0.1 rejected it: ") && !words.contains("secret"), "{words}");
        assert_eq!(sent.recv().expect("a request").line, "POST /T/secret HTTP/1.1");
        assert!(sent.try_recv().is_err(), "once only");
    }
}

#[tokio::test]
async fn an_answer_that_repeats_the_request_shows_no_secret() {
    let home = tempfile::tempdir().expect("a directory");
    let token = home.path().join("token");
    fs::write(&token, "hunter2\n").expect("a secret");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("its mode");
    let body = format!("{} cannot POST /T00/B00/secret with Bearer hunter2", " ".repeat(50));
    let (address, _sent) = serve(vec![WebResponse::Body("404 Not Found", body)]);
    let webhook = Webhook {
        secret: Some(SecretFile::new(&token)),
        ..webhook("slack", &format!("{address}/T00/B00/secret"))
    };
    let error = send(&webhook).await.expect_err("refused").to_string();
    assert_eq!(error, "127.0.0.1 rejected it: 404 Not Found: cannot POST … with Bearer …");
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let (address, sent) = serve(vec![
        WebResponse::Status("429 Too Many Requests\r\nretry-after: 0\r\n"),
        WebResponse::Status("503 Service Unavailable\r\nretry-after: 0.1\r\n"),
        WebResponse::Status("500 Internal Server Error\r\nretry-after: 0\r\n"),
        OK,
    ]);
    deliver(&webhook("discord", &address), 5).await.expect("taken at last");
    assert_eq!(sent.try_iter().count(), 4);
}

#[tokio::test]
async fn without_a_word_from_the_server_the_pause_is_our_own() {
    let (address, sent) = serve(vec![WebResponse::Status("500 Internal Server Error\r\n"), OK]);
    let begun = std::time::Instant::now();
    deliver(&webhook("json", &address), 2).await.expect("taken the second time");
    assert!(begun.elapsed() >= Duration::from_secs(1), "a second later");
    assert_eq!(sent.try_iter().count(), 2);
}

#[tokio::test]
async fn it_gives_up_in_the_end() {
    let busy = || WebResponse::Status("503 Service Unavailable\r\nretry-after: 0\r\n");
    let (address, _sent) = serve(vec![busy(), busy(), busy()]);
    let error = deliver(&webhook("json", &address), 3).await.expect_err("never taken");
    assert_eq!(
        error.to_string(),
        "gave up after 3 attempts: 127.0.0.1 did not accept it: 503 Service Unavailable: no"
    );
    let (address, sent) =
        serve(vec![WebResponse::Status("429 Too Many Requests\r\nretry-after: 86400\r\n"), OK]);
    let error = deliver(&webhook("json", &address), 3).await.expect_err("not today");
    assert!(matches!(error, Error::GaveUp { attempts: 1, .. }), "{error}");
    assert_eq!(sent.try_iter().count(), 1);
}

#[tokio::test]
async fn a_server_that_never_answers_costs_one_timeout() {
    let (address, _sent) = serve(vec![WebResponse::Never]);
    let webhook =
        Webhook { timeout: Duration::from_millis(500), ..webhook("json", &format!("{address}/secret")) };
    let error = send(&webhook).await.expect_err("no answer");
    assert_eq!(error.to_string(), "127.0.0.1 did not accept it: no answer in time");
}

#[tokio::test]
async fn a_refused_connection_is_worth_another_attempt() {
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}/", listener.local_addr().expect("its address"))
    };
    let error = send(&webhook("json", &address)).await.expect_err("no server");
    assert!(matches!(error, Error::Later { after: None, .. }), "{error}");
}

#[tokio::test]
async fn an_endless_answer_is_cut() {
    let (address, _sent) = serve(vec![WebResponse::Endless]);
    let error = send(&webhook("json", &address)).await.expect_err("refused");
    assert_eq!(error.to_string(), "127.0.0.1 rejected it: 400 Bad Request: full");
}

#[tokio::test]
async fn telegram_gets_plain_text_after_the_pause_that_it_asks_for() {
    let home = tempfile::tempdir().expect("a directory");
    let token = home.path().join("token");
    fs::write(&token, format!("{BOT_TOKEN}\n")).expect("a secret");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("its mode");
    let busy =
        r#"{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{"retry_after":1}}"#;
    let busy = WebResponse::Body("429 Too Many Requests\r\nretry-after: 300\r\n", busy.to_owned());
    let (address, sent) = serve(vec![busy, WebResponse::BotApi]);
    let webhook = Webhook {
        secret: Some(SecretFile::new(&token)),
        ..webhook("telegram", &format!("{address}/?chat_id=42&message_thread_id=7"))
    };
    let text = "<b>May</b> *I* [run](http://evil.example) this? \"}&parse_mode=HTML";
    let begun = std::time::Instant::now();
    in_time("a delivery", webhook.deliver(&note("m1", text), 2)).await.expect("taken the second time");
    assert!(begun.elapsed() >= Duration::from_secs(1), "a second later, and not five minutes");
    for sent in sent.try_iter() {
        assert_eq!(sent.line, format!("POST /bot{BOT_TOKEN}/sendMessage HTTP/1.1"));
        assert_eq!(sent.header("authorization"), None);
        let body: Value = serde_json::from_str(&sent.body).expect("JSON");
        assert!(body["text"].as_str().expect("a text").ends_with(text), "{body}");
        assert!(body.get("parse_mode").is_none() && body.get("entities").is_none(), "{body}");
        assert_eq!((&body["chat_id"], &body["message_thread_id"]), (&42.into(), &7.into()));
    }
    assert!(!format!("{webhook:?}").contains("123456"));
}

#[tokio::test]
async fn telegram_refuses_without_the_token_in_the_error() {
    let wrong = "123456:wrong-token";
    let check = async |response, url: &str, expected: &str| {
        let (address, sent) = serve(vec![response, WebResponse::BotApi]);
        let error = deliver(&webhook("telegram", &format!("{address}{url}")), 5).await.expect_err("refused");
        assert_eq!(error.to_string(), format!("127.0.0.1 rejected it: {expected}"));
        assert_eq!(sent.try_iter().count(), 1, "once only");
    };
    let url = format!("/bot{wrong}/sendMessage?chat_id=42");
    let unauthorized = "401 Unauthorized: Unauthorized (is it the token that @BotFather gave you?)";
    check(WebResponse::BotApi, &url, unauthorized).await;
    let url_of_other_chat = format!("/bot{BOT_TOKEN}/sendMessage?chat_id=7");
    check(WebResponse::BotApi, &url_of_other_chat, "400 Bad Request: Bad Request: chat not found").await;
    let repeats = format!(r#"{{"ok":false,"description":"no bot {wrong} at /bot{wrong}/sendMessage"}}"#);
    let expected = "200 OK: no bot … at /bot…/sendMessage";
    check(WebResponse::Body("200 OK", repeats), &url, expected).await;
}

//! A web server on loopback with scripted responses.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// The response to one connection.
#[derive(Debug, Clone)]
pub enum WebResponse {
    /// A status (without `HTTP/1.1`) and headers, separated by `\r\n`, and the body `no`.
    Status(&'static str),
    /// A status and headers as above, and a body.
    Body(&'static str, String),
    /// The answer of Telegram's Bot API, for the bot with the token [`BOT_TOKEN`] and the chat 42.
    BotApi,
    /// Status 400 with a body that never ends.
    Endless,
    /// No response: the request is read and the connection stays open.
    Never,
}

/// A received request.
#[derive(Debug, Default)]
pub struct WebRequest {
    /// The request line.
    pub line: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl WebRequest {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    fn read(stream: &TcpStream) -> io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut headers = Vec::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            match header.trim_end().split_once(": ") {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
                None => break,
            }
        }
        let request = Self { line: line.trim_end().to_owned(), headers, body: String::new() };
        let length = request.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(Self { body: String::from_utf8_lossy(&body).into_owned(), ..request })
    }
}

/// The token of the only bot of [`WebResponse::BotApi`].
pub const BOT_TOKEN: &str = "123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11";

/// Returns the status and the body with which the Bot API answers.
fn bot_api(request: &WebRequest) -> (&'static str, &'static str) {
    let path =
        request.line.strip_prefix("POST /bot").and_then(|rest| rest.strip_suffix("/sendMessage HTTP/1.1"));
    match path {
        None => ("404 Not Found", r#"{"ok":false,"error_code":404,"description":"Not Found"}"#),
        Some(token) if token != BOT_TOKEN => {
            ("401 Unauthorized", r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#)
        }
        Some(_) if !request.body.contains(r#""chat_id":42,"#) => (
            "400 Bad Request",
            r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#,
        ),
        Some(_) if !request.body.contains(r#""text":""#) => {
            let body = r#"{"ok":false,"error_code":400,"description":"Bad Request: message text is empty"}"#;
            ("400 Bad Request", body)
        }
        Some(_) => ("200 OK", r#"{"ok":true,"result":{"message_id":1,"chat":{"id":42,"type":"private"}}}"#),
    }
}

fn answer(mut stream: &TcpStream, lines: &str, body: &str) {
    let (head, length) = (lines.trim_end(), body.len());
    let _ = write!(stream, "HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
}

/// Serves one connection per response, then refuses connections. Returns the URL and the requests.
///
/// # Panics
///
/// If no port is free.
#[track_caller]
pub fn serve(responses: Vec<WebResponse>) -> (String, Receiver<WebRequest>) {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = bound.unwrap_or_else(|error| panic!("no port: {error}"));
    let (sender, requests) = sync_channel(64);
    thread::spawn(move || {
        let mut open = Vec::new();
        for response in responses {
            let Ok((stream, _)) = listener.accept() else { return };
            let Ok(request) = WebRequest::read(&stream) else { return };
            let of_bot_api = bot_api(&request);
            // Errors are ignored: the test may have ended, and in some tests the client does not read the response.
            let _ = sender.send(request);
            match response {
                WebResponse::Status(lines) => answer(&stream, lines, "no\n"),
                WebResponse::Body(lines, body) => answer(&stream, lines, &body),
                WebResponse::BotApi => answer(&stream, of_bot_api.0, of_bot_api.1),
                WebResponse::Endless => {
                    let _ =
                        (&stream).write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\nfull\n");
                    while (&stream).write_all(&[b'x'; 4096]).is_ok() {}
                }
                WebResponse::Never => open.push(stream),
            }
        }
        // Connections without a response stay open until the test drops the receiver.
        drop(listener);
        while !open.is_empty() && sender.send(WebRequest::default()).is_ok() {}
    });
    (format!("http://{address}"), requests)
}

//! A web server on this machine that gives the responses that a test wants.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// How to respond to a connection.
#[derive(Debug, Clone)]
pub enum WebResponse {
    /// With this status line and these headers, divided by `\r\n`, and the body `no`.
    Status(&'static str),
    /// With a refusal whose body never ends.
    Endless,
    /// Accept, read, and never respond.
    Never,
}

/// A request that was received.
#[derive(Debug, Default)]
pub struct WebRequest {
    /// The request line.
    pub line: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl WebRequest {
    /// The value of a header.
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

/// Serves one connection per response, then refuses. Gives its address and the requests.
///
/// # Panics
///
/// If no port can be had.
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
            // The test may have ended. A client that does not read the response is what some tests are about.
            let _ = sender.send(request);
            match response {
                WebResponse::Status(lines) => {
                    let head = lines.trim_end();
                    let _ = write!(
                        &stream,
                        "HTTP/1.1 {head}\r\ncontent-length: 3\r\nconnection: close\r\n\r\nno\n"
                    );
                }
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

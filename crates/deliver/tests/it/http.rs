//! A web server that answers as it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// What to do with a connection.
pub(crate) enum Reply {
    /// Answer with this status line and these headers, each ended with `\r\n`.
    Head(&'static str),
    /// Answer with a refusal that never ends.
    Endless,
    /// Accept, read, and never answer.
    Tarpit,
}

/// What was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    /// The request line.
    pub(crate) line: String,
    /// The headers, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: String,
}

impl Sent {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// Serves one connection per reply, then refuses. Gives its address and what it was sent.
pub(crate) fn serve(replies: Vec<Reply>) -> (String, Receiver<Sent>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    let (tell, sent) = sync_channel(16);
    thread::spawn(move || {
        let mut held = Vec::new();
        for reply in replies {
            let Ok((stream, _)) = listener.accept() else { return };
            // The test may be over and not interested.
            let _ = tell.send(read(&stream));
            match reply {
                Reply::Head(lines) => {
                    let _ =
                        write!(&stream, "HTTP/1.1 {lines}content-length: 3\r\nconnection: close\r\n\r\nno\n");
                }
                Reply::Endless => {
                    let _ =
                        (&stream).write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\nfull\n");
                    while (&stream).write_all(&[b'x'; 4096]).is_ok() {}
                }
                Reply::Tarpit => held.push(stream),
            }
        }
        // Keeps the tarpits open as long as the test wants answers.
        drop(listener);
        while !held.is_empty()
            && tell.send(Sent { line: String::new(), headers: Vec::new(), body: String::new() }).is_ok()
        {
        }
    });
    (address, sent)
}

fn read(stream: &TcpStream) -> Sent {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("a request");
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).expect("a header");
        match header.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None => break,
        }
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    Sent { line: line.trim_end().to_owned(), headers, body: String::from_utf8(body).expect("text") }
}

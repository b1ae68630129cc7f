//! A web server that answers as it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// What was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    /// The request line.
    pub(crate) line: String,
    /// The body.
    pub(crate) body: String,
}

/// Answers one connection per status line, then refuses. Gives its address and what it was sent.
pub(crate) fn serve(statuses: &'static [&'static str]) -> (String, Receiver<Sent>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    let (tell, sent) = sync_channel(64);
    thread::spawn(move || {
        for status in statuses {
            let Ok((stream, _)) = listener.accept() else { return };
            // The test may be over and not interested.
            let _ = tell.send(read(&stream));
            let _ = write!(&stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    (address, sent)
}

fn read(stream: &TcpStream) -> Sent {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("a request");
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).expect("a header");
        match header.trim_end().to_ascii_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().expect("a number"),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    Sent { line: line.trim_end().to_owned(), body: String::from_utf8(body).expect("text") }
}

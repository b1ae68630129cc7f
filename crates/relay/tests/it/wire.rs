//! A TCP proxy between a machine and a server, which can be cut, and can swallow data.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The proxy. Its threads end with the connections, and the listening one with the test.
pub(crate) struct Wire {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    swallows: AtomicBool,
    /// The number of swallowed bytes.
    swallowed: AtomicUsize,
    is_cut: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl Wire {
    /// Returns a proxy to a port on loopback.
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let own = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared {
            swallows: AtomicBool::new(false),
            swallowed: AtomicUsize::new(0),
            is_cut: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if accepting.is_cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
                    let shared = Arc::clone(&accepting);
                    thread::spawn(move || forward(&shared, from, to));
                }
                accepting.connections.lock().expect("no panic").extend([near, far]);
            }
        });
        Self { port: own, shared }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Discards all data from now on. Both connections stay open.
    pub(crate) fn swallow(&self) {
        self.shared.swallows.store(true, Ordering::SeqCst);
    }

    /// Returns the number of swallowed bytes.
    pub(crate) fn swallowed(&self) -> usize {
        self.shared.swallowed.load(Ordering::SeqCst)
    }

    /// Ends all connections, and refuses new ones.
    pub(crate) fn cut(&self) {
        self.shared.is_cut.store(true, Ordering::SeqCst);
        for connection in self.shared.connections.lock().expect("no panic").drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Lets connections through again.
    pub(crate) fn mend(&self) {
        self.shared.swallows.store(false, Ordering::SeqCst);
        self.shared.is_cut.store(false, Ordering::SeqCst);
    }
}

fn forward(shared: &Shared, mut from: TcpStream, mut to: TcpStream) {
    let mut chunk = [0; 4096];
    while let Ok(read) = from.read(&mut chunk) {
        if read == 0 {
            break;
        }
        if shared.swallows.load(Ordering::SeqCst) {
            shared.swallowed.fetch_add(read, Ordering::SeqCst);
        } else if to.write_all(&chunk[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

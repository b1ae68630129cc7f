use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

use ringer_journal::Home;
use tempfile::TempDir;

use super::*;

/// A started server accepts no connections, because another process is about to be the server.
struct NothingStarts;

impl Surroundings for NothingStarts {
    fn start_server(&self) -> Result<(), String> {
        Ok(())
    }

    fn show_inbox(&self) -> io::Result<()> {
        Ok(())
    }
}

fn paths() -> (TempDir, PanePaths) {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::new(directory.path().join("home"));
    std::fs::create_dir(home.path()).unwrap();
    let paths = PanePaths::of(&home).unwrap();
    (directory, paths)
}

#[test]
fn a_server_that_hangs_while_it_starts_is_told_of() {
    let (_directory, paths) = paths();
    let until = Instant::now() + POLL_INTERVAL * 3;
    let connected = connect_until(until, &paths, &ClientSettings::default(), None, &NothingStarts);
    let error = connected.err().unwrap().to_string();
    assert!(error.contains("cannot start: another one starts"), "{error}");
}

/// A server of another version, for one client. It ends when it is told to, or the client disconnects. Returns the request.
fn other_server(paths: &PanePaths, program: &str, version: u32) -> JoinHandle<Vec<Request>> {
    let socket = paths.server();
    std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let welcome = Welcome { version, program: program.to_owned(), takes_terminal: false };
    thread::spawn(move || {
        let stream = listener.accept().unwrap().0;
        let mut link = Link { stream, reader: FrameReader::default(), has_lent_terminal: false };
        link.wait_for(FrameKind::Hello).unwrap();
        link.send(&Frame::json(FrameKind::Welcome, &welcome)).unwrap();
        let asked: Vec<Request> =
            link.wait_for(FrameKind::Request).iter().map(|frame| frame.read().unwrap()).collect();
        drop(listener);
        std::fs::remove_file(socket).unwrap();
        asked
    })
}

#[test]
fn only_a_newer_program_takes_over() {
    let own = env!("CARGO_PKG_VERSION");
    for (server, is_replaced) in
        [("0.0.9", true), (&*format!("{own}-rc.1"), true), (own, false), ("1000.0.0", false)]
    {
        // Even from a server with another protocol.
        for version in [VERSION, VERSION + 1] {
            let (_directory, paths) = paths();
            let asked = other_server(&paths, server, version);
            take_over(&paths, &ClientSettings::default()).unwrap();
            let expected: &[Request] = if is_replaced { &[Request::Replace] } else { &[] };
            assert_eq!(asked.join().unwrap(), expected, "{server}");
        }
    }
}

#[test]
fn an_older_program_goes_on_with_a_newer_server_or_says_that_it_is_too_old() {
    let show = |version: u32| {
        let (_directory, paths) = paths();
        let _asked = other_server(&paths, "1000.0.0", version);
        connect_or_start(&paths, &ClientSettings::default(), None, &NothingStarts).map(|_| ())
    };
    show(VERSION).unwrap();
    let error = show(VERSION + 1).unwrap_err();
    assert!(matches!(error, ClientError::NewerServer { .. }), "{error}");
    assert!(error.to_string().contains("1000.0.0, which is newer than this program"), "{error}");
}

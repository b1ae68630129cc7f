//! A listener in the middle of its work: it has read, has begun to print, and has not moved its cursor.

use std::io::{Read, Write};
use std::process::{Child, ChildStdout, Stdio};

use crate::home::TestEnvironment;

/// Its line is longer than a pipe holds, and the test reads no further: it cannot finish until the test lets it.
pub(crate) struct HalfPrinted {
    child: Child,
    out: ChildStdout,
    printed: Vec<u8>,
}

impl HalfPrinted {
    /// What is in the message: 120 KiB once it is JSON.
    pub(crate) fn text() -> String {
        "\"".repeat(60 * 1024)
    }

    /// Sends the message and starts the listener. From here on it is in the middle.
    pub(crate) fn begin(environment: &TestEnvironment) -> Self {
        let mut notify =
            environment.ringer(&["notify", "-"]).stdin(Stdio::piped()).spawn().expect("it starts");
        notify.stdin.take().expect("piped").write_all(Self::text().as_bytes()).expect("it reads");
        assert!(notify.wait().expect("it ends").success());
        let mut child =
            environment.ringer(&["listen"]).stdout(Stdio::piped()).spawn().expect("the listener starts");
        let mut out = child.stdout.take().expect("piped");
        let mut first = [0];
        out.read_exact(&mut first).expect("it begins to print");
        Self { child, out, printed: first.to_vec() }
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is dead");
    }

    /// The reader leaves after its first byte. Gives the listener's exit code.
    pub(crate) fn cut_off(mut self) -> Option<i32> {
        drop(self.out);
        self.child.wait().expect("it ends").code()
    }

    /// Reads on to the end. Gives everything that was printed.
    pub(crate) fn finish(mut self) -> String {
        self.out.read_to_end(&mut self.printed).expect("it prints on");
        assert!(self.child.wait().expect("it ends").success());
        String::from_utf8(self.printed).expect("text")
    }
}

//! A real ssh to a real sshd. Each connection starts an sshd of its own on a pipe, so no port is needed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The keys and settings of both sides, and a directory with an `ssh` that uses them.
pub(crate) struct SshServer {
    directory: TempDir,
}

impl SshServer {
    /// A server whose sessions have this home of Ringer, and `ringer` on their PATH.
    pub(crate) fn new(home: &Path) -> Self {
        let server = Self { directory: tempfile::tempdir().expect("a temporary directory") };
        fs::create_dir(server.path("bin")).expect("a directory");
        fs::create_dir(server.path("far")).expect("a directory");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ringer"), server.path("far/ringer")).expect("a link");
        server.make_key("key");
        server.make_key("host");
        server.make_key("other");
        server.authorize("", "key");
        server.trust("host");
        // Only root needs it, and the service makes it when it starts.
        let separation = Path::new("/run/sshd");
        if rustix::process::geteuid().is_root() && !separation.is_dir() {
            fs::create_dir(separation).expect("a directory for sshd");
        }
        let far = server.path("far");
        let settings = format!(
            "HostKey {host}\nAuthorizedKeysFile {keys}\nUsePAM no\nStrictModes no\nPidFile none\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             SetEnv RINGER_HOME={home} RINGER_HUB=off PATH={far}:/usr/bin:/bin\n",
            host = server.path("host").display(),
            keys = server.path("authorized_keys").display(),
            home = home.display(),
            far = far.display(),
        );
        fs::write(server.path("sshd_config"), settings).expect("a file");
        let client = format!(
            "Host box\n  HostKeyAlias box\n  IdentityFile {key}\n  IdentitiesOnly yes\n  IdentityAgent none\n  \
             UserKnownHostsFile {known}\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n  \
             ProxyCommand /usr/sbin/sshd -i -f {settings}\n",
            key = server.path("key").display(),
            known = server.path("known_hosts").display(),
            settings = server.path("sshd_config").display(),
        );
        fs::write(server.path("ssh_config"), client).expect("a file");
        let program = server.path("bin/ssh");
        let script =
            format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", server.path("ssh_config").display());
        fs::write(&program, script).expect("a file");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
        server
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn make_key(&self, name: &str) {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(self.path(name))
            .status()
            .expect("ssh-keygen runs");
        assert!(made.success());
    }

    fn public(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}.pub"))).expect("a key")
    }

    /// Lets one key in, with these options.
    pub(crate) fn authorize(&self, options: &str, key: &str) {
        let line = format!("{options} {}", self.public(key));
        fs::write(self.path("authorized_keys"), line.trim_start()).expect("a file");
    }

    /// The key that the client takes for the server's.
    pub(crate) fn trust(&self, key: &str) {
        fs::write(self.path("known_hosts"), format!("box {}", self.public(key))).expect("a file");
    }

    /// A PATH on which that `ssh` comes first.
    pub(crate) fn search_path(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.path("bin").display())
    }
}

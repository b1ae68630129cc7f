//! Recognises programs that hold terminals by their executables.

/// The suffix that the kernel appends to the path of a removed file.
pub(crate) const DELETED: &str = " (deleted)";

/// The file that a process executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// The path of the file.
    pub path: String,
    /// Who can change it.
    pub owner: Owner,
}

/// Who can change an executable, by the file and every directory above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Only root.
    Root,
    /// Root and this user.
    User,
    /// Other users.
    Others,
}

/// The role of a program that holds a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A terminal emulator, if it has a display.
    Emulator,
    /// A login: sshd, login, getty.
    Login,
    /// Runs commands as another user, in its own terminal inside the caller's: sudo, su.
    Relay,
    /// The tmux server.
    Tmux,
    /// Ringer itself: `ringer run`, or the keeper or server of panes.
    Ringer,
    /// A program whose viewers cannot be seen.
    Opaque,
    /// Anything else.
    Other,
}

const EMULATORS: &[&str] = &[
    "alacritty",
    "blackbox",
    "contour",
    "cool-retro-term",
    "deepin-terminal",
    "foot",
    "ghostty",
    "gnome-terminal-server",
    "io.elementary.terminal",
    "kgx",
    "kitty",
    "konsole",
    "lxterminal",
    "mate-terminal",
    "mlterm",
    "ptyxis-agent",
    "qterminal",
    "rio",
    "roxterm",
    "rxvt",
    "sakura",
    "st",
    "terminology",
    "tilix",
    "urxvt",
    "urxvtd",
    "warp",
    "wezterm-gui",
    "xfce4-terminal",
    "xterm",
    "yakuake",
];
const LOGINS: &[&str] =
    &["agetty", "dropbear", "getty", "in.telnetd", "login", "sshd", "sshd-auth", "sshd-session", "telnetd"];
const RELAYS: &[&str] = &["doas", "su", "sudo"];
const OPAQUE: &[&str] = &[
    "abduco",
    "code",
    "code-insiders",
    "codium",
    "cursor",
    "dtach",
    "mosh-server",
    "screen",
    "shpool",
    "tmate",
    "ttyd",
    "wezterm-mux-server",
    "windsurf",
    "zed-editor",
    "zellij",
];
/// Parts of the paths of programs with generic names, such as `node` and `java`.
const OPAQUE_PATHS: &[&str] = &[
    "/.vscode-server/",
    "/.vscode-server-insiders/",
    "/.cursor-server/",
    "/.windsurf-server/",
    "/jbr/bin/java",
];

impl Executable {
    /// Returns the file name. A program that was replaced while it runs keeps its name.
    pub fn name(&self) -> &str {
        let path = self.path.strip_suffix(DELETED).unwrap_or(&self.path);
        path.rsplit('/').next().unwrap_or(path)
    }

    pub(crate) fn role(&self) -> Role {
        let name = self.name();
        match name {
            "tmux" => Role::Tmux,
            "ringer" => Role::Ringer,
            _ if EMULATORS.contains(&name) => Role::Emulator,
            // These count only if nobody but root can change the file.
            _ if LOGINS.contains(&name) && self.owner == Owner::Root => Role::Login,
            _ if RELAYS.contains(&name) && self.owner == Owner::Root => Role::Relay,
            _ if OPAQUE.contains(&name) || is_versioned(name) => Role::Opaque,
            _ if OPAQUE_PATHS.iter().any(|part| self.path.contains(part)) => Role::Opaque,
            _ => Role::Other,
        }
    }
}

/// Returns true for Emacs and screen, whose file names may carry a version: `emacs-29.1`, `screen-4.9.0`.
fn is_versioned(name: &str) -> bool {
    let versions = ["emacs", "screen"].iter().filter_map(|program| name.strip_prefix(program));
    versions.into_iter().any(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Returns true if a root process with this name is one through which a person logs in. The executable of a root process cannot
/// be read, but this user cannot set its name.
pub(crate) fn is_login_name(name: &str) -> bool {
    LOGINS.contains(&name) || RELAYS.contains(&name)
}

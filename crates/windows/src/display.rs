//! An X11 display: finds the active window and the windows of terminals, and activates a window.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ringer_platform::owned;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use x11rb::connection::Connection;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ClientMessageEvent, ConnectionExt, EventMask, GetPropertyReply,
};
use x11rb::protocol::{ErrorKind, Event};
use x11rb::rust_connection::{DefaultStream, PollMode, RustConnection, Stream};
use x11rb::utils::RawFdContainer;
use x11rb::x11_utils::X11Error;
use x11rb::{CURRENT_TIME, NONE};

use crate::display_name::DisplayName;

/// The timeout of a request. A server answers within a millisecond unless it hangs.
const DEADLINE: Duration = Duration::from_secs(1);

pub(crate) type WindowId = u32;

/// The most windows between the one that a terminal names and the root. Usually there are three: the terminal's, its top-level
/// window and the frame of the window manager.
const MAX_DEPTH: usize = 16;
/// How much of a property is read, in units of four bytes. `_NET_SUPPORTED` has about a hundred entries.
const MAX_PROPERTY: u32 = 4096;
/// The source indication of pagers and taskbars (EWMH). Window managers may ignore requests from ordinary programs.
const BY_THE_PERSON: u32 = 2;

x11rb::atom_manager! {
    pub(crate) Atoms: AtomsCookie {
        _NET_ACTIVE_WINDOW,
        _NET_SUPPORTED,
        _NET_SUPPORTING_WM_CHECK,
        _NET_WM_NAME,
        _NET_WM_PID,
        WM_STATE,
    }
}

/// Why a display cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct DisplayError(String);

impl DisplayError {
    fn of(error: impl std::error::Error) -> Self {
        Self(error.to_string())
    }
}

/// The active window of a display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActiveWindow {
    /// No window manager reports it.
    Unknown,
    /// The id; 0 for none.
    Known(WindowId),
}

/// An event on a display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DisplayEvent {
    /// Another window is active.
    Active,
    /// The title of a watched window changed.
    Title(WindowId),
    /// A watched window was closed.
    Closed(WindowId),
}

/// The top-level window of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopLevel {
    pub(crate) id: WindowId,
    /// The process that it claims to belong to (`_NET_WM_PID`).
    pub(crate) pid: Option<u32>,
    /// The class of its program: `XTerm`.
    pub(crate) class: String,
}

/// A connection to a display.
#[derive(Debug)]
pub(crate) struct Display {
    connection: RustConnection<DeadlineStream>,
    root: WindowId,
    atoms: Atoms,
    /// The window that proves that the window manager is running. Without one, the properties of the root window may be stale.
    manager: Option<WindowId>,
    active: ActiveWindow,
}

impl Display {
    pub(crate) fn connect(name: &DisplayName) -> Result<Self, DisplayError> {
        let stream = owned::connect_to_system(&name.socket())
            .and_then(DeadlineStream::new)
            .map_err(DisplayError::of)?;
        let cookie = name.cookie();
        let connection =
            RustConnection::connect_to_stream_with_auth_info(stream, name.screen(), cookie.kind, cookie.data)
                .map_err(DisplayError::of)?;
        let screen = connection.setup().roots.get(name.screen());
        let root = screen.ok_or_else(|| DisplayError("it has no such screen".to_owned()))?.root;
        let atoms = Atoms::new(&connection).map_err(DisplayError::of)?.reply().map_err(DisplayError::of)?;
        let mut display = Self { connection, root, atoms, manager: None, active: ActiveWindow::Unknown };
        display.select(root, EventMask::PROPERTY_CHANGE)?;
        display.read_manager()?;
        Ok(display)
    }

    pub(crate) fn active(&self) -> ActiveWindow {
        self.active
    }

    /// The top-level window around a window, if that exists.
    pub(crate) fn top_level(&self, window: WindowId) -> Result<Option<TopLevel>, DisplayError> {
        let mut id = window;
        for _ in 0..MAX_DEPTH {
            let Some(state) = self.property(id, self.atoms.WM_STATE, AtomEnum::ANY.into())? else {
                return Ok(None);
            };
            let tree = self.connection.query_tree(id).map_err(DisplayError::of)?.reply();
            let Some(tree) = unless_gone(tree)? else { return Ok(None) };
            // Without a window manager no window has a `WM_STATE`.
            if state.type_ != NONE || tree.parent == self.root {
                return self.describe(id).map(Some);
            }
            if tree.parent == NONE {
                return Ok(None);
            }
            id = tree.parent;
        }
        Ok(None)
    }

    fn describe(&self, id: WindowId) -> Result<TopLevel, DisplayError> {
        let class = self.property(id, AtomEnum::WM_CLASS.into(), AtomEnum::STRING.into())?;
        let class = class.map(|class| class.value).unwrap_or_default();
        let class = class.split(|byte| *byte == 0).nth(1).unwrap_or_default();
        Ok(TopLevel { id, pid: self.pid(id)?, class: String::from_utf8_lossy(class).into_owned() })
    }

    /// The process that a window claims to belong to.
    pub(crate) fn pid(&self, window: WindowId) -> Result<Option<u32>, DisplayError> {
        self.number(window, self.atoms._NET_WM_PID, AtomEnum::CARDINAL)
    }

    /// Subscribes to the closing of a window, and to changes of its title if `titles` is set.
    pub(crate) fn watch(&self, window: WindowId, titles: bool) -> Result<(), DisplayError> {
        let title = if titles { EventMask::PROPERTY_CHANGE } else { EventMask::NO_EVENT };
        self.select(window, EventMask::STRUCTURE_NOTIFY | title)
    }

    /// Asks the window manager to bring a window to the front. The inner error says that there is no such window manager.
    pub(crate) fn activate(&self, window: WindowId) -> Result<Result<(), &'static str>, DisplayError> {
        if self.manager.is_none() {
            return Ok(Err("no window manager runs that brings windows to the front (_NET_ACTIVE_WINDOW)"));
        }
        let data = [BY_THE_PERSON, CURRENT_TIME, 0, 0, 0];
        let message = ClientMessageEvent::new(32, window, self.atoms._NET_ACTIVE_WINDOW, data);
        let mask = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
        self.connection.send_event(false, self.root, mask, message).map_err(DisplayError::of)?;
        self.connection.flush().map_err(DisplayError::of)?;
        Ok(Ok(()))
    }

    /// The events since the last call. Call this before polling the connection: events may have arrived together with replies.
    pub(crate) fn events(&mut self) -> Result<Vec<DisplayEvent>, DisplayError> {
        let mut events = Vec::new();
        let (mut read_active, mut read_manager) = (false, false);
        while let Some(event) = self.connection.poll_for_event().map_err(DisplayError::of)? {
            match event {
                Event::PropertyNotify(change) if change.window == self.root => {
                    read_active |= change.atom == self.atoms._NET_ACTIVE_WINDOW;
                    read_manager |= [self.atoms._NET_SUPPORTED, self.atoms._NET_SUPPORTING_WM_CHECK]
                        .contains(&change.atom);
                }
                Event::PropertyNotify(change)
                    if [self.atoms._NET_WM_NAME, AtomEnum::WM_NAME.into()].contains(&change.atom) =>
                {
                    events.push(DisplayEvent::Title(change.window));
                }
                Event::DestroyNotify(closed) if Some(closed.window) == self.manager => read_manager = true,
                Event::DestroyNotify(closed) => events.push(DisplayEvent::Closed(closed.window)),
                _ => {}
            }
        }
        let before = self.active;
        if read_manager {
            self.read_manager()?;
        } else if read_active {
            self.read_active()?;
        }
        if self.active != before {
            events.push(DisplayEvent::Active);
        }
        Ok(events)
    }

    fn read_manager(&mut self) -> Result<(), DisplayError> {
        let check = self.atoms._NET_SUPPORTING_WM_CHECK;
        let named = self.number(self.root, check, AtomEnum::WINDOW)?;
        // A window manager that was killed leaves its properties behind, but not its check window.
        let runs = match named {
            Some(window) => self.number(window, check, AtomEnum::WINDOW)? == named,
            None => false,
        };
        let supported = self.property(self.root, self.atoms._NET_SUPPORTED, AtomEnum::ATOM.into())?;
        let mut supported = supported.iter().filter_map(GetPropertyReply::value32).flatten();
        self.manager = named.filter(|_| runs && supported.any(|atom| atom == self.atoms._NET_ACTIVE_WINDOW));
        if let Some(window) = self.manager {
            self.watch(window, false)?;
        }
        self.read_active()
    }

    fn read_active(&mut self) -> Result<(), DisplayError> {
        let active = self.number(self.root, self.atoms._NET_ACTIVE_WINDOW, AtomEnum::WINDOW)?;
        self.active = match self.manager {
            Some(_) => ActiveWindow::Known(active.unwrap_or(NONE)),
            None => ActiveWindow::Unknown,
        };
        Ok(())
    }

    fn select(&self, window: WindowId, mask: EventMask) -> Result<(), DisplayError> {
        let wanted = ChangeWindowAttributesAux::new().event_mask(mask);
        let request = self.connection.change_window_attributes(window, &wanted).map_err(DisplayError::of)?;
        unless_gone(request.check()).map(drop)
    }

    /// The first number of a property.
    fn number(&self, window: WindowId, atom: u32, kind: AtomEnum) -> Result<Option<u32>, DisplayError> {
        let property = self.property(window, atom, kind.into())?;
        Ok(property.and_then(|property| property.value32()?.next()))
    }

    /// A property; `None` if the window has gone. A property that is not set has no type.
    fn property(
        &self,
        window: WindowId,
        atom: u32,
        kind: u32,
    ) -> Result<Option<GetPropertyReply>, DisplayError> {
        let request = self.connection.get_property(false, window, atom, kind, 0, MAX_PROPERTY);
        unless_gone(request.map_err(DisplayError::of)?.reply())
    }
}

impl AsFd for Display {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.stream().as_fd()
    }
}

/// Turns the error for a window that has gone into `None`.
fn unless_gone<T>(answer: Result<T, ReplyError>) -> Result<Option<T>, DisplayError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ReplyError::X11Error(X11Error { error_kind: ErrorKind::Window, .. })) => Ok(None),
        Err(error) => Err(DisplayError::of(error)),
    }
}

/// A connection to an X server that waits for [`DEADLINE`] at most.
#[derive(Debug)]
struct DeadlineStream(DefaultStream);

impl DeadlineStream {
    fn new(stream: UnixStream) -> io::Result<Self> {
        DefaultStream::from_unix_stream(stream).map(|(stream, _)| Self(stream))
    }
}

impl AsFd for DeadlineStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Stream for DeadlineStream {
    fn poll(&self, mode: PollMode) -> io::Result<()> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, mode.readable());
        flags.set(PollFlags::OUT, mode.writable());
        let deadline = Timespec::try_from(DEADLINE).map_err(io::Error::other)?;
        loop {
            match poll(&mut [PollFd::new(&self.0, flags)], Some(&deadline)) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer")),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn read(&self, buffer: &mut [u8], descriptors: &mut Vec<RawFdContainer>) -> io::Result<usize> {
        self.0.read(buffer, descriptors)
    }

    fn write(&self, buffer: &[u8], descriptors: &mut Vec<RawFdContainer>) -> io::Result<usize> {
        self.0.write(buffer, descriptors)
    }

    fn write_vectored(
        &self,
        buffers: &[IoSlice<'_>],
        descriptors: &mut Vec<RawFdContainer>,
    ) -> io::Result<usize> {
        self.0.write_vectored(buffers, descriptors)
    }
}

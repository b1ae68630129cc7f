//! The loop: waits for the terminal, the hub and the clock at once, and draws when something has changed.

use std::io::{self, stdout};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crossterm::event::{Event, KeyCode, KeyModifiers};
use crossterm::execute;
use crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;

use crate::backend::{Backend, Data, Request, Response};
use crate::draw::{Header, draw};
use crate::inbox::{Effect, Inbox};
use crate::input::InputParser;
use crate::keys::KeyMap;
use crate::terminal::{OwnedTerminal, Waiter, Waker, read_input};
use crate::theme::Theme;

/// The shortest interval between two loads. A person sees no difference.
const MIN_LOAD_INTERVAL: Duration = Duration::from_millis(50);
const MINUTE_MS: i64 = 60_000;
/// Timeout for the rest of a key's escape sequence. If nothing follows, the key was Escape itself.
const SEQUENCE_TIMEOUT: Duration = Duration::from_millis(25);
/// The shortest and the longest pause before following the hub again after its event stream ended.
const RECONNECT_DELAYS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// Settings of the UI, and facts about its surroundings.
pub struct Settings {
    /// The key bindings.
    pub keys: KeyMap,
    /// Colours and signs.
    pub theme: Theme,
    /// True if the UI handles clicks and the wheel.
    pub mouse: bool,
    /// True if the UI quits after jumping to a terminal, as in a tmux popup.
    pub quit_after_jump: bool,
    /// The name of this machine, shown in the header.
    pub machine: String,
    /// Formats the time of day; the argument is in milliseconds since 1970.
    pub time_of_day: fn(i64) -> String,
    /// The name of the person's editor, if one is configured.
    pub editor: Option<String>,
    /// A problem with the settings, shown at the start.
    pub warning: Option<String>,
}

/// Opens the UI. Returns when the person leaves it, or the terminal is gone.
pub fn run(backend: &Arc<dyn Backend>, settings: Settings) -> io::Result<()> {
    let size = crossterm::terminal::size()?;
    let (waiter, waker) = Waiter::new()?;
    let owned = OwnedTerminal::take(settings.mouse)?;
    let (responses, received) = channel();
    let loader = Arc::new(Loader::default());
    let mailbox = Mailbox { responses, data: Arc::default(), waker };
    start_loading(backend, &loader, mailbox.try_clone()?);
    start_following(backend, &loader);
    start_following_tools(backend, &loader);
    start_following_machines(backend, &loader);
    let inbox = Inbox::new(settings.keys.clone(), size, settings.quit_after_jump);
    let mut inbox = inbox.ascii(settings.theme.ascii).editor(settings.editor.clone());
    if let Some(warning) = &settings.warning {
        inbox.warn(warning.clone(), now_ms());
    }
    let screen = Terminal::new(CrosstermBackend::new(stdout()))?;
    let mut app = App { backend, settings, inbox, screen, owned, mailbox, loader };
    app.run(&waiter, &received)
}

/// Carries data and responses from other threads to the loop.
struct Mailbox {
    responses: Sender<Response>,
    /// Only the newest data is kept: older data is of no use, and the loop may be busy for long.
    data: Arc<Mutex<Option<Data>>>,
    waker: Waker,
}

impl Mailbox {
    fn send(&self, response: Response) {
        // Fails only after the loop has ended.
        let _ = self.responses.send(response);
        self.waker.wake();
    }

    fn put(&self, data: Data) {
        *self.data.lock().unwrap_or_else(PoisonError::into_inner) = Some(data);
        self.waker.wake();
    }

    fn take(&self) -> Option<Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn try_clone(&self) -> io::Result<Self> {
        let (responses, data) = (self.responses.clone(), Arc::clone(&self.data));
        Ok(Self { responses, data, waker: self.waker.try_clone()? })
    }
}

/// The part of the data that must be loaded again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StaleData {
    /// The agents' current tools. They change often, and are loaded without asking the hub.
    Tools,
    All,
}

/// Notifies the loading thread that data is stale.
#[derive(Debug, Default)]
struct Loader {
    stale: Mutex<Option<StaleData>>,
    changed: Condvar,
}

impl Loader {
    fn mark_stale(&self, what: StaleData) {
        let mut stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        *stale = (*stale).max(Some(what));
        self.changed.notify_one();
    }

    fn wait(&self) -> StaleData {
        let mut stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(what) = stale.take() {
                return what;
            }
            stale = self.changed.wait(stale).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn start_loading(backend: &Arc<dyn Backend>, loader: &Arc<Loader>, mailbox: Mailbox) {
    let (backend, loader) = (Arc::clone(backend), Arc::clone(loader));
    loader.mark_stale(StaleData::All);
    thread::spawn(move || {
        loop {
            let stale = loader.wait();
            let start = Instant::now();
            mailbox.put(match stale {
                StaleData::All => backend.load(),
                StaleData::Tools => backend.load_tools(),
            });
            thread::sleep(MIN_LOAD_INTERVAL.saturating_sub(start.elapsed()));
        }
    });
}

fn start_following(backend: &Arc<dyn Backend>, loader: &Arc<Loader>) {
    let (backend, loader) = (Arc::clone(backend), Arc::clone(loader));
    thread::spawn(move || {
        let (shortest, longest) = RECONNECT_DELAYS;
        let mut pause = shortest;
        loop {
            let start = Instant::now();
            backend.follow(&|| loader.mark_stale(StaleData::All));
            loader.mark_stale(StaleData::All);
            let lasted = start.elapsed() > longest;
            pause = if lasted { shortest } else { (pause * 2).min(longest) };
            thread::sleep(pause);
        }
    });
}

fn start_following_tools(backend: &Arc<dyn Backend>, loader: &Arc<Loader>) {
    let (backend, loader) = (Arc::clone(backend), Arc::clone(loader));
    thread::spawn(move || backend.follow_tools(&|| loader.mark_stale(StaleData::Tools)));
}

fn start_following_machines(backend: &Arc<dyn Backend>, loader: &Arc<Loader>) {
    let (backend, loader) = (Arc::clone(backend), Arc::clone(loader));
    thread::spawn(move || backend.follow_machines(&|| loader.mark_stale(StaleData::All)));
}

struct App<'a> {
    backend: &'a Arc<dyn Backend>,
    settings: Settings,
    inbox: Inbox,
    screen: Terminal<CrosstermBackend<io::Stdout>>,
    owned: OwnedTerminal,
    mailbox: Mailbox,
    loader: Arc<Loader>,
}

impl App<'_> {
    fn run(&mut self, waiter: &Waiter, responses: &Receiver<Response>) -> io::Result<()> {
        let mut minute = now_ms() / MINUTE_MS;
        let mut input = InputParser::default();
        // The time of the last input, while a sequence is incomplete.
        let mut last_input: Option<Instant> = None;
        loop {
            self.draw()?;
            self.inbox.mark_drawn();
            let timeout = u64::try_from(self.inbox.next_change_in(now_ms())).unwrap_or(1000);
            let timeout = Duration::from_millis(timeout);
            let sequence_timeout = last_input.map(|came| SEQUENCE_TIMEOUT.saturating_sub(came.elapsed()));
            let timeout = sequence_timeout.map_or(timeout, |rest| rest.min(timeout));
            let wakeup = waiter.wait(timeout)?;
            if wakeup.terminate {
                return Ok(());
            }
            let mut effects = Vec::new();
            if let Some(data) = self.mailbox.take() {
                effects.extend(self.inbox.update(data, now_ms()));
            }
            while let Ok(response) = responses.try_recv() {
                effects.extend(self.inbox.respond(response, now_ms()));
            }
            if wakeup.resized {
                effects.extend(self.inbox.resize(crossterm::terminal::size()?));
            }
            let mut inputs = Vec::new();
            if wakeup.input {
                inputs = input.feed(&read_input()?);
                last_input = Some(Instant::now());
            } else if last_input.is_some_and(|came| came.elapsed() >= SEQUENCE_TIMEOUT) {
                inputs = input.flush();
            }
            last_input = last_input.filter(|_| input.is_waiting());
            for event in inputs.iter().filter_map(|input| input.event.as_ref()) {
                effects.extend(self.handle_event(event)?);
            }
            if !self.perform(effects)? {
                return Ok(());
            }
            let now = now_ms();
            if now / MINUTE_MS != minute {
                // The loaded texts contain durations.
                minute = now / MINUTE_MS;
                self.loader.mark_stale(StaleData::All);
            }
            self.inbox.tick(now);
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let header =
            Header { machine: self.settings.machine.clone(), time: (self.settings.time_of_day)(now_ms()) };
        let (inbox, theme) = (&self.inbox, self.settings.theme);
        execute!(stdout(), BeginSynchronizedUpdate)?;
        self.screen.draw(|frame| draw(frame, inbox, theme, &header))?;
        execute!(stdout(), EndSynchronizedUpdate)
    }

    /// Redraws everything. Uses `resize` instead of `clear`, which asks the terminal for its cursor position.
    fn redraw(&mut self) -> io::Result<Vec<Effect>> {
        let (columns, lines) = crossterm::terminal::size()?;
        self.screen.resize(Rect::new(0, 0, columns, lines))?;
        Ok(self.inbox.resize((columns, lines)))
    }

    fn handle_event(&mut self, event: &Event) -> io::Result<Vec<Effect>> {
        Ok(match event {
            Event::Key(key)
                if key.code == KeyCode::Char('z') && key.modifiers.contains(KeyModifiers::CONTROL) =>
            {
                self.owned.suspend()?;
                self.redraw()?
            }
            Event::Key(key) => self.inbox.press(key, now_ms()),
            Event::Mouse(mouse) => self.inbox.mouse(*mouse, now_ms()),
            Event::Paste(text) => {
                self.inbox.paste(text, now_ms());
                Vec::new()
            }
            Event::Resize(..) | Event::FocusGained | Event::FocusLost => Vec::new(),
        })
    }

    /// Returns false if the loop should end.
    fn perform(&mut self, effects: Vec<Effect>) -> io::Result<bool> {
        for effect in effects {
            match effect {
                Effect::Request(request) => self.ask(request)?,
                Effect::Setup => {
                    let backend = Arc::clone(self.backend);
                    self.owned.release_during(|| backend.setup())?;
                    // Setup starts from the list and the editor from a dialog, so no agent page has to be loaded again.
                    let _ = self.redraw()?;
                    self.loader.mark_stale(StaleData::All);
                }
                Effect::Edit(text) => {
                    let backend = Arc::clone(self.backend);
                    let edited = self.owned.release_during(|| backend.edit(&text))?;
                    let _ = self.redraw()?;
                    match edited {
                        Ok(text) => self.inbox.edited(&text, now_ms()),
                        Err(why) => self.inbox.warn(why, now_ms()),
                    }
                }
                Effect::Quit => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Runs on its own thread: an agent may take seconds to accept an answer.
    fn ask(&self, request: Request) -> io::Result<()> {
        let (backend, loader) = (Arc::clone(self.backend), Arc::clone(&self.loader));
        let mailbox = self.mailbox.try_clone()?;
        thread::spawn(move || {
            mailbox.send(backend.perform(&request));
            if request.changes_data() {
                loader.mark_stale(StaleData::All);
            }
        });
        Ok(())
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

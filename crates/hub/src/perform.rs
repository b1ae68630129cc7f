//! Carrying orders out: whatever can hang happens here, each by itself and with a deadline, and never on the loop.

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringer_core::{Delivery, DeliveryChannel, Envelope, HookAnswer, MessageId, SurfaceId, Ticket};
use ringer_deliver::{DesktopEvent, Error as DesktopError, HookProgram, MAX_QUEUED, Note, PopupHandle};
use ringer_journal::Home;
use ringer_term::Channel;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

use crate::delivery_setup::{DeliverySetup, WEBHOOK_ATTEMPTS};
use crate::focus::bring;
use crate::input::Input;
use crate::session_bus::SessionDesktop;
use crate::terminals::{InTerminal, NotShown, Terminal};
use crate::title_writer::{RETRY_AFTER, TitleChange, TitleOutcome};
use crate::tmux::TmuxPane;

/// Deliveries that may be under way. The hub takes no more messages while there are that many; they wait in the journal.
pub(crate) const MAX_UNDER_WAY: usize = 1024;
/// Programs of one kind that may run at once. The others wait for their turn.
const MAX_AT_ONCE: usize = 16;
/// Popups that may be asked for at once. The others wait for their turn, and the queue keeps room for what is taken back.
const MAX_POPUPS_AT_ONCE: usize = MAX_QUEUED / 2;
/// How long a popup or a terminal may take before the next way out is tried.
const POPUP_DEADLINE: Duration = Duration::from_millis(4500);
/// Notifications in terminals that can still be taken back; the oldest are forgotten.
const MAX_IN_TERMINALS: usize = 256;

/// Something to carry out.
#[derive(Debug)]
pub(crate) enum Job {
    /// Run a hook. Without a program nothing runs, and the hook has failed.
    Hook { ticket: Ticket, program: Option<Arc<HookProgram>>, envelope: Box<Envelope> },
    /// Send a notification out; to the first of these terminals that is there, or to the desktop of these processes if the
    /// hub's own does not work.
    Deliver { delivery: Box<Delivery>, terminals: Vec<Terminal>, callers: Vec<u32>, under_way: UnderWay },
    /// Take back what was shown of one, and stop what is on its way.
    Withdraw(MessageId),
    /// The settings changed.
    Equip(Arc<DeliverySetup>),
    /// Set a mark in a terminal's title, or take it away again.
    Title(TitleChange),
    /// Bring the person to the pane where a notification rang.
    Show { id: MessageId, pane: TmuxPane },
}

/// What a delivery did.
#[derive(Debug)]
pub(crate) struct Report {
    /// In words.
    pub(crate) result: Result<String, String>,
    /// Where the desktop shows it.
    pub(crate) shown: Option<PopupHandle>,
    /// How it can be taken back from a terminal.
    in_terminal: Option<InTerminal>,
    /// Terminals that turned out to be gone.
    pub(crate) gone: Vec<SurfaceId>,
}

impl Report {
    fn of(result: Result<String, String>) -> Self {
        Self { result, shown: None, in_terminal: None, gone: Vec::new() }
    }
}

/// Counts what is under way, however it ends.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    pub(crate) fn begin(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Carries jobs out.
pub(crate) struct Performer {
    outfit: Arc<DeliverySetup>,
    desktop: SessionDesktop,
    inputs: mpsc::Sender<Input>,
    sounds_at_once: Arc<Semaphore>,
    commands_at_once: Arc<Semaphore>,
    popups_at_once: Arc<Semaphore>,
    tasks: JoinSet<()>,
    /// What can be stopped: deliveries that have not reached anybody yet.
    on_their_way: HashMap<MessageId, Vec<AbortHandle>>,
    in_terminals: VecDeque<(MessageId, InTerminal)>,
    /// What terminals answered about themselves is kept there.
    home: Home,
    /// What the desktop was asked to show and was not asked to take back: all others it need not be told of.
    on_desktop: HashSet<MessageId>,
}

impl Performer {
    /// The desktop may show popups of an earlier hub.
    pub(crate) fn new(
        outfit: DeliverySetup,
        desktop: SessionDesktop,
        inputs: mpsc::Sender<Input>,
        on_desktop: HashSet<MessageId>,
        home: Home,
    ) -> Self {
        Self {
            outfit: Arc::new(outfit),
            desktop,
            inputs,
            sounds_at_once: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            commands_at_once: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            popups_at_once: Arc::new(Semaphore::new(MAX_POPUPS_AT_ONCE)),
            tasks: JoinSet::new(),
            on_desktop,
            home,
            on_their_way: HashMap::new(),
            in_terminals: VecDeque::new(),
        }
    }

    /// Takes jobs until nobody gives any.
    pub(crate) async fn run(
        mut self,
        mut jobs: mpsc::Receiver<Job>,
        mut clicks: mpsc::Receiver<DesktopEvent>,
    ) {
        let (terminals, mut shown_in_terminals) = mpsc::channel(MAX_IN_TERMINALS);
        loop {
            tokio::select! {
                job = jobs.recv() => match job {
                    Some(job) => self.take(job, &terminals),
                    None => return,
                },
                Some(event) = clicks.recv() => {
                    // The loop is there as long as we are.
                    let _ = self.inputs.send(Input::Desktop(event)).await;
                }
                Some(shown) = shown_in_terminals.recv() => {
                    if self.in_terminals.len() == MAX_IN_TERMINALS {
                        self.in_terminals.pop_front();
                    }
                    self.in_terminals.push_back(shown);
                }
                Some(_) = self.tasks.join_next() => {
                    self.on_their_way.retain(|_, handles| {
                        handles.retain(|handle| !handle.is_finished());
                        !handles.is_empty()
                    });
                }
            }
        }
    }

    fn take(&mut self, job: Job, terminals: &mpsc::Sender<(MessageId, InTerminal)>) {
        match job {
            Job::Equip(outfit) => self.outfit = outfit,
            Job::Hook { ticket, program, envelope } => self.run_hook(ticket, program, envelope),
            Job::Withdraw(id) => self.withdraw(&id),
            Job::Title(change) => self.change_title(change),
            Job::Show { id, pane } => {
                let inputs = self.inputs.clone();
                self.tasks.spawn(async move {
                    let went = bring(pane).await.map(drop);
                    let _ = inputs.send(Input::Shown { id, went }).await;
                });
            }
            Job::Deliver { delivery, terminals: tried, callers, under_way } => {
                let (id, way) = (delivery.id.clone(), delivery.channel);
                if way == DeliveryChannel::Desktop {
                    self.on_desktop.insert(id.clone());
                }
                let work = self.deliver(&delivery, tried, callers);
                let (inputs, terminals) = (self.inputs.clone(), terminals.clone());
                let told = id.clone();
                let handle = self.tasks.spawn(async move {
                    let report = work.await;
                    if let Some(shown) = report.in_terminal.clone() {
                        let _ = terminals.send((told.clone(), shown)).await;
                    }
                    drop(under_way);
                    let _ = inputs.send(Input::Delivered { id: told, way, report }).await;
                });
                // A command that runs is let run: nobody expects it to be killed by a glance at the screen.
                if way != DeliveryChannel::Command {
                    self.on_their_way.entry(id).or_default().push(handle);
                }
            }
        }
    }

    fn run_hook(&mut self, ticket: Ticket, program: Option<Arc<HookProgram>>, envelope: Box<Envelope>) {
        let inputs = self.inputs.clone();
        self.tasks.spawn(async move {
            let answer = match program {
                Some(program) => program.run(&envelope).await,
                None => HookAnswer::Failed("no trusted program is known under its identity".to_owned()),
            };
            let _ = inputs.send(Input::Answered { ticket, answer }).await;
        });
    }

    /// Each in a task of its own: a terminal that is stopped makes no other wait.
    fn change_title(&mut self, change: TitleChange) {
        let inputs = self.inputs.clone();
        self.tasks.spawn(async move {
            let outcome = change.carry_out().await;
            let surface = change.surface;
            let _ = inputs.send(Input::TitleTried { surface: surface.clone(), outcome }).await;
            if outcome == TitleOutcome::NotYet {
                tokio::time::sleep(RETRY_AFTER).await;
                let _ = inputs.send(Input::RetryTitle(surface)).await;
            }
        });
    }

    fn withdraw(&mut self, id: &MessageId) {
        for handle in self.on_their_way.remove(id).into_iter().flatten() {
            handle.abort();
        }
        if self.on_desktop.remove(id) {
            let (withdrawal, inputs) = (self.desktop.withdraw(id.clone()), self.inputs.clone());
            let told = id.clone();
            self.tasks.spawn(async move {
                // Otherwise, as without a bus, it stays written down, and the next hub tries again.
                if matches!(withdrawal.await, Ok(()) | Err(DesktopError::CannotWithdraw)) {
                    let _ = inputs.send(Input::Withdrawn(told)).await;
                }
            });
        }
        let shown = std::mem::take(&mut self.in_terminals);
        let (gone, kept): (VecDeque<_>, VecDeque<_>) = shown.into_iter().partition(|(own, _)| own == id);
        self.in_terminals = kept;
        for (_, shown) in gone {
            self.tasks.spawn(async move {
                let _ = shown.withdraw().await;
            });
        }
    }

    fn deliver(
        &self,
        delivery: &Delivery,
        terminals: Vec<Terminal>,
        callers: Vec<u32>,
    ) -> impl Future<Output = Report> + use<> {
        let note = Note::from(delivery);
        let way = delivery.channel;
        let (outfit, desktop, home) = (Arc::clone(&self.outfit), self.desktop.clone(), self.home.clone());
        let popups_at_once = Arc::clone(&self.popups_at_once);
        let (sounds_at_once, commands_at_once) =
            (Arc::clone(&self.sounds_at_once), Arc::clone(&self.commands_at_once));
        async move {
            match way {
                DeliveryChannel::Desktop => {
                    let _turn = popups_at_once.acquire().await;
                    within(POPUP_DEADLINE, show_on_desktop(&desktop, &note, callers)).await
                }
                DeliveryChannel::Terminal => {
                    within(POPUP_DEADLINE, show_in_terminal(terminals, &note, outfit.channel, &home)).await
                }
                DeliveryChannel::Sound => {
                    let permit = sounds_at_once.acquire_owned().await.ok();
                    let played = outfit.sound.play_with_permit(&outfit.search_path, permit).await;
                    Report::of(played.map(|()| "played".to_owned()).map_err(|error| error.to_string()))
                }
                DeliveryChannel::Command => {
                    let permit = commands_at_once.acquire_owned().await.ok();
                    let Some(command) = &outfit.command else {
                        return Report::of(Ok("there is none any more".to_owned()));
                    };
                    let ran = command.run_with_permit(&note, permit).await;
                    Report::of(ran.map(|()| "ran".to_owned()).map_err(|error| error.to_string()))
                }
                DeliveryChannel::Webhook => Report::of(call_webhooks(&outfit, &note).await),
            }
        }
    }
}

async fn within(deadline: Duration, work: impl Future<Output = Report>) -> Report {
    let done = tokio::time::timeout(deadline, work).await;
    done.unwrap_or_else(|_| Report::of(Err(format!("it took longer than {deadline:?}"))))
}

async fn show_on_desktop(desktop: &SessionDesktop, note: &Note, callers: Vec<u32>) -> Report {
    match desktop.show(note, callers).await {
        Ok((shown, elsewhere)) => {
            let how = format!("shown as number {}{elsewhere}", shown.number);
            Report { shown: Some(shown), ..Report::of(Ok(how)) }
        }
        Err(error) => Report::of(Err(error.to_string())),
    }
}

async fn show_in_terminal(terminals: Vec<Terminal>, note: &Note, channel: Channel, home: &Home) -> Report {
    let (mut gone, mut whys) = (Vec::new(), Vec::new());
    for terminal in terminals {
        match terminal.show(note, channel, home).await {
            Ok((how, in_terminal)) => return Report { in_terminal, gone, ..Report::of(Ok(how)) },
            Err(NotShown::Gone(why)) => {
                gone.push(terminal.surface);
                whys.push(why);
            }
            Err(NotShown::Failed(why)) => whys.push(why),
        }
    }
    let why = if whys.is_empty() {
        "it did not come from a terminal, and none is known in its workspace".to_owned()
    } else {
        whys.join("; ")
    };
    Report { gone, ..Report::of(Err(why)) }
}

/// Calls all of them at once; the failure of one is its own.
async fn call_webhooks(outfit: &DeliverySetup, note: &Note) -> Result<String, String> {
    let mut calls = JoinSet::new();
    for (name, webhook) in outfit.webhooks.iter().filter(|(_, webhook)| webhook.wants(note.kind)) {
        let (name, webhook, note) = (name.clone(), webhook.clone(), note.clone());
        calls.spawn(async move { (name, webhook.deliver(&note, WEBHOOK_ATTEMPTS).await) });
    }
    let (mut told, mut failed) = (Vec::new(), Vec::new());
    while let Some(call) = calls.join_next().await {
        match call {
            Ok((name, Ok(()))) => told.push(name),
            Ok((name, Err(error))) => failed.push(format!("{name}: {error}")),
            Err(error) => failed.push(error.to_string()),
        }
    }
    match (told.is_empty(), failed.is_empty()) {
        (true, true) => Ok("no webhook wants this kind".to_owned()),
        (_, true) => Ok(format!("told {}", told.join(", "))),
        (true, false) => Err(failed.join("; ")),
        (false, false) => Err(format!("{}; but told {}", failed.join("; "), told.join(", "))),
    }
}

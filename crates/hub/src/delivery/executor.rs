//! Executes jobs, which can hang: each in its own task with a deadline, never on the loop.

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ringer_core::MessageId;
use ringer_core::agent::{PopupAnswer, PromptContent};
use ringer_core::engine::{Delivery, Ticket};
use ringer_core::policy::{DeliveryChannel, HookAnswer, HookInput};
use ringer_deliver::{DesktopEvent, Error as DesktopError, HookProgram, Note, Popup, Webhook};
use ringer_ipc::part::{AnsweredQuestion, TitleOutcome};
use ringer_journal::{Home, IdSource};
use ringer_term::Channel;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use crate::delivery::part_calls::PartCalls;
use crate::delivery::session_bus::SessionDesktop;
use crate::delivery::setup::{DeliverySetup, WEBHOOK_ATTEMPTS};
use crate::delivery::terminals::{NotShown, ShownInTerminal, Terminal};
use crate::delivery::titles::{RETRY_AFTER, TitleMarkChange};
use crate::delivery::turns::Turns;
use crate::journal_maintenance::{JournalMaintenance, JournalTasks, JournalTasksDone};
use crate::message::{DeliveryReport, Input, Job, LoopEvent};

/// The most programs of one kind that run at once; the others wait. Enough for a burst, and few enough for a laptop if each
/// is a shell script.
const MAX_AT_ONCE: usize = 16;
/// The most popups that are requested at once; the others wait. The desktop shows them one by one, and each one's deadline runs
/// from its request, so a slow desktop can show the last of a small group in time. With a desktop that hangs, each group falls
/// through to the terminal after [`POPUP_DEADLINE`].
const MAX_POPUPS_AT_ONCE: usize = 32;
/// Deadline of a popup or terminal notification, after which the next channel is tried. Just below the 5 s after which the
/// desktop client gives up, so that this side decides and the popup is withdrawn.
const POPUP_DEADLINE: Duration = Duration::from_millis(4500);
/// The most terminal notifications that can still be withdrawn. The oldest are forgotten first.
const MAX_IN_TERMINALS: usize = 256;

/// The result of a delivery, and how to withdraw it from a terminal.
#[derive(Debug)]
struct Executed {
    report: DeliveryReport,
    in_terminal: Option<ShownInTerminal>,
}

impl Executed {
    fn of(result: Result<String, String>) -> Self {
        Self { report: DeliveryReport::of(result), in_terminal: None }
    }
}

pub(crate) struct JobExecutor {
    setup: Arc<DeliverySetup>,
    desktop: SessionDesktop,
    inputs: mpsc::Sender<Input>,
    sounds_at_once: Arc<Semaphore>,
    commands_at_once: Arc<Semaphore>,
    command_turns: Turns,
    popups_at_once: Arc<Semaphore>,
    tasks: JoinSet<()>,
    /// Deliveries that can still be aborted.
    abort_handles: HashMap<MessageId, Vec<AbortHandle>>,
    /// Deliveries in flight.
    delivering: HashMap<Id, (MessageId, DeliveryChannel)>,
    in_terminals: VecDeque<(MessageId, ShownInTerminal)>,
    /// Holds the probe replies of terminals.
    home: Home,
    journal_maintenance: Arc<Mutex<JournalMaintenance>>,
    parts: PartCalls,
    /// Notified with each delivery.
    deliveries: Arc<Notify>,
    /// Popups that may have to be closed. Skipping the rest saves one D-Bus call for each cleared notification.
    on_desktop: HashSet<MessageId>,
}

impl JobExecutor {
    /// The desktop may show popups of an earlier hub.
    pub(crate) fn new(
        setup: DeliverySetup,
        desktop: SessionDesktop,
        inputs: mpsc::Sender<Input>,
        on_desktop: HashSet<MessageId>,
        home: Home,
        parts: PartCalls,
    ) -> Self {
        Self {
            setup: Arc::new(setup),
            desktop,
            inputs,
            sounds_at_once: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            commands_at_once: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            command_turns: Turns::default(),
            popups_at_once: Arc::new(Semaphore::new(MAX_POPUPS_AT_ONCE)),
            tasks: JoinSet::new(),
            on_desktop,
            journal_maintenance: Arc::new(Mutex::new(JournalMaintenance::new(home.clone()))),
            home,
            parts,
            deliveries: Arc::default(),
            abort_handles: HashMap::new(),
            delivering: HashMap::new(),
            in_terminals: VecDeque::new(),
        }
    }

    /// Returns the [`Notify`] that is notified on each delivery.
    pub(crate) fn deliveries(&self) -> Arc<Notify> {
        Arc::clone(&self.deliveries)
    }

    /// Executes jobs until the loop has ended.
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
                    // Fails only once the loop has ended.
                    let _ = self.inputs.send(Input::Event(LoopEvent::Desktop(event))).await;
                }
                Some(shown) = shown_in_terminals.recv() => {
                    if self.in_terminals.len() == MAX_IN_TERMINALS {
                        self.in_terminals.pop_front();
                    }
                    self.in_terminals.push_back(shown);
                }
                Some(joined) = self.tasks.join_next_with_id() => {
                    self.report_panic(joined).await;
                    self.abort_handles.retain(|_, handles| {
                        handles.retain(|handle| !handle.is_finished());
                        !handles.is_empty()
                    });
                }
            }
        }
    }

    fn take(&mut self, job: Job, terminals: &mpsc::Sender<(MessageId, ShownInTerminal)>) {
        match job {
            Job::UpdateSetup(setup) => self.setup = setup,
            Job::Hook { ticket, program, hook_input } => self.run_hook(ticket, program, hook_input),
            Job::Withdraw(id) => self.withdraw(&id),
            Job::ChangeTitle(change) => self.change_title(change),
            Job::FocusPane { surface, waiter } => {
                let (inputs, parts) = (self.inputs.clone(), self.parts.clone());
                self.tasks.spawn(async move {
                    let result = parts.focus(surface).await;
                    if let Some(waiter) = waiter {
                        let _ = inputs.send(Input::Event(LoopEvent::PaneFocused { waiter, result })).await;
                    }
                });
            }
            Job::Answer { id, asked, answer } => self.give_answer(id, asked, answer),
            Job::MaintainJournal { tasks, ids } => self.maintain_journal(tasks, ids),
            Job::Deliver { delivery, terminals: tried, senders, prompt } => {
                self.deliveries.notify_one();
                let (id, channel) = (delivery.id.clone(), delivery.channel);
                if channel == DeliveryChannel::Desktop {
                    self.on_desktop.insert(id.clone());
                }
                let work = self.deliver(&delivery, tried, senders, prompt);
                let (inputs, terminals) = (self.inputs.clone(), terminals.clone());
                let told = id.clone();
                let handle = self.tasks.spawn(async move {
                    let Executed { report, in_terminal } = work.await;
                    if let Some(shown) = in_terminal {
                        let _ = terminals.send((told.clone(), shown)).await;
                    }
                    let _ =
                        inputs.send(Input::Event(LoopEvent::Delivered { id: told, channel, report })).await;
                });
                self.delivering.insert(handle.id(), (id.clone(), channel));
                // The person's command is not aborted when the notification is read: it may have side effects.
                if channel != DeliveryChannel::Command {
                    self.abort_handles.entry(id).or_default().push(handle);
                }
            }
        }
    }

    /// Reports a delivery whose task panicked as failed, because the loop counts the deliveries in flight.
    async fn report_panic(&mut self, joined: Result<(Id, ()), JoinError>) {
        let task = joined.as_ref().map_or_else(JoinError::id, |(id, ())| *id);
        let Some((id, channel)) = self.delivering.remove(&task) else { return };
        if joined.is_err_and(|error| error.is_panic()) {
            let report = DeliveryReport::of(Err("an error in Ringer; see the hub's log".to_owned()));
            let _ = self.inputs.send(Input::Event(LoopEvent::Delivered { id, channel, report })).await;
        }
    }

    fn run_hook(&mut self, ticket: Ticket, program: Option<Arc<HookProgram>>, hook_input: Box<HookInput>) {
        let inputs = self.inputs.clone();
        self.tasks.spawn(async move {
            let answer = match program {
                Some(program) => program.run(&hook_input).await,
                None => HookAnswer::Failed("no trusted program is known under its identity".to_owned()),
            };
            let _ = inputs.send(Input::Event(LoopEvent::HookAnswered { ticket, answer })).await;
        });
    }

    fn give_answer(&mut self, id: MessageId, asked: AnsweredQuestion, answer: PopupAnswer) {
        let (inputs, parts) = (self.inputs.clone(), self.parts.clone());
        self.tasks.spawn(async move {
            let outcome = parts.answer(asked, answer.clone()).await;
            let _ = inputs.send(Input::Event(LoopEvent::AnswerTried { id, answer, outcome })).await;
        });
    }

    /// Always reports the end, also after a panic: the loop orders no other maintenance before that.
    fn maintain_journal(&mut self, tasks: JournalTasks, ids: IdSource) {
        let (inputs, maintenance) = (self.inputs.clone(), Arc::clone(&self.journal_maintenance));
        self.tasks.spawn(async move {
            let work = tokio::task::spawn_blocking(move || {
                maintenance.lock().unwrap_or_else(PoisonError::into_inner).perform(tasks, &ids)
            });
            let done = work.await.unwrap_or_else(|_| JournalTasksDone {
                problems: vec!["the journal was not tidied up: an error in Ringer".to_owned()],
                ..JournalTasksDone::default()
            });
            let _ = inputs.send(Input::Event(LoopEvent::JournalMaintained(done))).await;
        });
    }

    /// Uses a task for each change, so that a stopped terminal delays no other.
    fn change_title(&mut self, change: TitleMarkChange) {
        let (inputs, parts) = (self.inputs.clone(), self.parts.clone());
        self.tasks.spawn(async move {
            let outcome = change.carry_out(&parts).await;
            let surface = change.surface;
            let _ =
                inputs.send(Input::Event(LoopEvent::TitleTried { surface: surface.clone(), outcome })).await;
            if outcome == TitleOutcome::NotYet {
                tokio::time::sleep(RETRY_AFTER).await;
                let _ = inputs.send(Input::Event(LoopEvent::RetryTitle(surface))).await;
            }
        });
    }

    fn withdraw(&mut self, id: &MessageId) {
        for handle in self.abort_handles.remove(id).into_iter().flatten() {
            handle.abort();
        }
        if self.on_desktop.remove(id) {
            let (withdrawal, inputs) = (self.desktop.withdraw(id.clone()), self.inputs.clone());
            let told = id.clone();
            self.tasks.spawn(async move {
                // After any other error, such as a missing bus, the store keeps the popup, and the next hub tries again.
                if matches!(withdrawal.await, Ok(()) | Err(DesktopError::CannotWithdraw)) {
                    let _ = inputs.send(Input::Event(LoopEvent::PopupGone(told))).await;
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
        &mut self,
        delivery: &Delivery,
        terminals: Vec<Terminal>,
        senders: Vec<u32>,
        prompt: Option<Box<PromptContent>>,
    ) -> impl Future<Output = Executed> + use<> {
        let note = Note::from(delivery);
        let channel = delivery.channel;
        let (setup, desktop, home) = (Arc::clone(&self.setup), self.desktop.clone(), self.home.clone());
        let parts = self.parts.clone();
        let popups_at_once = Arc::clone(&self.popups_at_once);
        let (sounds_at_once, commands_at_once) =
            (Arc::clone(&self.sounds_at_once), Arc::clone(&self.commands_at_once));
        let turn = (channel == DeliveryChannel::Command).then(|| self.command_turns.next(&delivery.place));
        async move {
            match channel {
                DeliveryChannel::Desktop => {
                    let _turn = popups_at_once.acquire().await;
                    let popup = Popup { prompt, ..Popup::of(&note) };
                    within(POPUP_DEADLINE, show_on_desktop(&desktop, popup, senders)).await
                }
                DeliveryChannel::Terminal => {
                    within(POPUP_DEADLINE, show_in_terminal(terminals, &note, setup.channel, &home, &parts))
                        .await
                }
                DeliveryChannel::Sound => {
                    let permit = sounds_at_once.acquire_owned().await.ok();
                    let played = setup.sound_of(note.kind).play_with_permit(&setup.search_path, permit).await;
                    Executed::of(played.map(|()| "played".to_owned()).map_err(|error| error.to_string()))
                }
                DeliveryChannel::Command => {
                    let mut turn = turn;
                    if let Some(turn) = &mut turn {
                        turn.begin().await;
                    }
                    let permit = commands_at_once.acquire_owned().await.ok();
                    let Some(command) = &setup.command else {
                        return Executed::of(Ok("there is none any more".to_owned()));
                    };
                    let ran = command.run_with_permit(&note, permit).await;
                    Executed::of(ran.map(|()| "ran".to_owned()).map_err(|error| error.to_string()))
                }
                DeliveryChannel::Webhook => Executed::of(call_webhooks(&setup.webhooks, &note).await),
                DeliveryChannel::AwayWebhook => {
                    Executed::of(call_webhooks(&setup.away_webhooks, &note).await)
                }
            }
        }
    }
}

async fn within(deadline: Duration, work: impl Future<Output = Executed>) -> Executed {
    let done = tokio::time::timeout(deadline, work).await;
    done.unwrap_or_else(|_| Executed::of(Err(format!("no answer within {deadline:?}"))))
}

async fn show_on_desktop(desktop: &SessionDesktop, popup: Popup, senders: Vec<u32>) -> Executed {
    match desktop.show(popup, senders).await {
        Ok((shown, elsewhere)) => {
            let how = format!("shown{elsewhere}");
            Executed {
                report: DeliveryReport { popup: Some(shown), ..DeliveryReport::of(Ok(how)) },
                in_terminal: None,
            }
        }
        Err(error) => Executed::of(Err(error.to_string())),
    }
}

async fn show_in_terminal(
    terminals: Vec<Terminal>,
    note: &Note,
    channel: Channel,
    home: &Home,
    parts: &PartCalls,
) -> Executed {
    let (mut closed, mut whys) = (Vec::new(), Vec::new());
    for terminal in terminals {
        match terminal.show(note, channel, home, parts).await {
            Ok((how, in_terminal)) => {
                return Executed {
                    report: DeliveryReport { closed, ..DeliveryReport::of(Ok(how)) },
                    in_terminal,
                };
            }
            Err(NotShown::Gone(why)) => {
                closed.push(terminal.surface);
                whys.push(why);
            }
            Err(NotShown::Failed(why)) => whys.push(why),
        }
    }
    let why = if whys.is_empty() {
        "no terminal to write to: the sender had none".to_owned()
    } else {
        whys.join("; ")
    };
    Executed { report: DeliveryReport { closed, ..DeliveryReport::of(Err(why)) }, in_terminal: None }
}

/// Calls all webhooks at once. They fail independently.
async fn call_webhooks(webhooks: &[(String, Webhook)], note: &Note) -> Result<String, String> {
    let mut calls = JoinSet::new();
    for (name, webhook) in webhooks.iter().filter(|(_, webhook)| webhook.wants(note.kind)) {
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
        (_, true) => Ok(format!("sent to {}", told.join(", "))),
        (true, false) => Err(failed.join("; ")),
        (false, false) => Err(format!("{}; sent to {}", failed.join("; "), told.join(", "))),
    }
}

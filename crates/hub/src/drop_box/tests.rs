use std::fs;
use std::os::unix::fs::symlink;

use ringer_core::message::QuestionId;
use ringer_core::{Recipient, Scope, Sender};
use ringer_ipc::drop_box::{ClaimRequest, ClaimedNotice, MAX_CLAIM, MAX_CLAIMS, QuestionState};
use ringer_journal::{Consumer, SenderClaim};
use rustix::fs::Mode;
use test_support::until;

use super::*;

struct Place {
    directory: tempfile::TempDir,
    home: Home,
    places: DropBox,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("home"));
        drop(Journal::open(&home).unwrap());
        let places = DropBox::of(&home);
        for directory in [places.outbox().directory(), places.directory()] {
            make_directory(directory).unwrap();
        }
        Self { directory, home, places }
    }

    /// Returns the server of a hub that has just started.
    fn server(&self) -> Server {
        let log = Log::new(self.home.path().join("hub.log"), false);
        Server::new(self.home.clone(), self.places.clone(), log)
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.home).unwrap()
    }

    fn leave(&self, request: ClaimRequest) -> Claim {
        let claim = Claim::new(IdSource::now(), "/src/api".to_owned(), Scope::global(), request);
        self.places.leave(&claim).unwrap();
        claim
    }

    fn bodies(&self) -> Vec<String> {
        let messages = self.journal().messages_after(0, usize::MAX).unwrap();
        messages.into_iter().map(|message| message.draft.body).collect()
    }

    fn waiting(&self) -> usize {
        claim_names(self.places.directory()).unwrap().len()
    }
}

fn notice(body: &str) -> ClaimRequest {
    ClaimRequest::Notify(ClaimedNotice {
        body: body.to_owned(),
        kind: "status".to_owned(),
        to: Recipient::Default,
        title: None,
        subtitle: None,
        key: None,
        ttl_ms: None,
    })
}

fn question(text: &str) -> ClaimRequest {
    ClaimRequest::Ask { question: text.to_owned(), options: Vec::new() }
}

fn lead() -> Consumer {
    Consumer::new("lead", Scope::global()).unwrap()
}

fn answer(journal: &mut Journal, id: &QuestionId, text: &str) {
    journal.answer(id, Some(text), &Sender::person(), &IdSource::now()).unwrap();
}

#[test]
fn claims_are_applied_in_their_order_and_removed() {
    let place = Place::new();
    for body in ["one", "two", "three"] {
        let mut stamp = IdSource::now();
        stamp.unix_ms += i64::try_from(body.len()).unwrap();
        let claim = Claim::new(stamp, "/src".to_owned(), Scope::global(), notice(body));
        place.places.leave(&claim).unwrap();
    }
    let mut server = place.server();
    assert_eq!(server.turn().unwrap(), None);
    assert_eq!(place.bodies().len(), 3);
    assert_eq!(place.waiting(), 0);
    assert!(server.connection.is_none(), "the journal is closed when there is nothing to do");
    let senders = place.journal().messages_after(0, usize::MAX).unwrap();
    assert!(senders.iter().all(|message| message.draft.sender == Sender::unverified()));
}

#[test]
fn a_hub_that_was_killed_before_it_removed_a_claim_applies_it_once() {
    let place = Place::new();
    let claims = [place.leave(notice("hello")), place.leave(question("Which branch?"))];
    place.server().turn().unwrap();
    for claim in &claims {
        place.places.leave(claim).unwrap();
    }
    place.server().turn().unwrap();
    // Both may have been created in the same millisecond; then their order is random.
    let mut bodies = place.bodies();
    bodies.sort();
    assert_eq!(bodies, ["Which branch?", "hello"]);
    assert_eq!(place.waiting(), 0);
    assert_eq!(place.places.outbox().question(&claims[1].stamp.question_id()), Some(QuestionState::Open));
}

#[test]
fn the_answer_to_a_question_is_in_the_outbox_also_after_a_restart() {
    let place = Place::new();
    let id = place.leave(question("Which branch?")).stamp.question_id();
    let mut server = place.server();
    server.turn().unwrap();
    assert!(server.connection.is_some(), "it waits for the answer");
    drop(server);
    answer(&mut place.journal(), &id, "main");
    let mut server = place.server();
    server.turn().unwrap();
    assert_eq!(place.places.outbox().question(&id), Some(QuestionState::Answered("main".to_owned())));
    server.turn().unwrap();
    assert!(server.connection.is_none());
}

/// The id of another question is not secret, but a sandbox must not get the answer.
#[test]
fn a_claim_cannot_have_the_answer_to_a_question_of_somebody_else() {
    let place = Place::new();
    let mut journal = place.journal();
    let stamp = IdSource::now();
    let mut draft =
        Draft::new(Scope::global(), Sender::system(), ringer_core::Kind::Question, "The password?").unwrap();
    draft.question_id = Some(stamp.question_id());
    journal.ask(&draft, "The password?", &[], &stamp, None).unwrap();
    let id = stamp.question_id();
    let claim = Claim::new(stamp, "/src".to_owned(), Scope::global(), question("The password?"));
    place.places.leave(&claim).unwrap();
    // A file of that name does not help either.
    fs::write(place.places.directory().join(format!("answer-{id}.json")), "\"open\"").unwrap();
    let mut server = place.server();
    server.turn().unwrap();
    answer(&mut journal, &id, "swordfish");
    server.turn().unwrap();
    place.server().turn().unwrap();
    let published = place.places.outbox().question(&id);
    assert!(matches!(published, None | Some(QuestionState::Refused)), "{published:?}");
}

#[test]
fn a_listener_gets_what_it_has_not_read_and_its_cursor_stays() {
    let place = Place::new();
    let mut journal = place.journal();
    let send = |journal: &mut Journal, body: &str| {
        let draft = Draft::new(Scope::global(), Sender::system(), ringer_core::Kind::Status, body).unwrap();
        journal.append(&draft, &IdSource::now()).unwrap();
    };
    send(&mut journal, "before");
    let claim = place.leave(ClaimRequest::Listen { name: "lead".to_owned() });
    let mut server = place.server();
    server.turn().unwrap();
    assert!(place.places.is_applied(&claim));
    let bodies = || {
        let file = place.places.outbox().listener(&lead()).unwrap();
        file.messages.into_iter().map(|message| message.draft.body).collect::<Vec<_>>()
    };
    assert_eq!(bodies(), ["before"]);
    send(&mut journal, "after");
    server.turn().unwrap();
    assert_eq!(bodies(), ["before", "after"]);
    assert_eq!(journal.cursor(&lead()).unwrap(), 0);
    // Messages that the lead reads outside the sandbox disappear from the file.
    let last = journal.messages_after(0, usize::MAX).unwrap().remove(0);
    journal.advance(&lead(), (last.seq, &last.id), 0).unwrap();
    server.turn().unwrap();
    assert_eq!(bodies(), ["after"]);
}

#[test]
fn a_listeners_file_is_bounded() {
    let place = Place::new();
    let mut journal = place.journal();
    for _ in 0..40 {
        let draft =
            Draft::new(Scope::global(), Sender::system(), ringer_core::Kind::Status, &"x".repeat(60_000));
        journal.append(&draft.unwrap(), &IdSource::now()).unwrap();
    }
    place.leave(ClaimRequest::Listen { name: "lead".to_owned() });
    place.server().turn().unwrap();
    let path = place.places.outbox().listener_path(&lead());
    assert!(fs::metadata(path).unwrap().len() <= 256 * 1024 + 1024);
    let file = place.places.outbox().listener(&lead()).unwrap();
    assert_eq!(file.messages.last().unwrap().seq, file.newest, "the newest are there");
}

/// Each of these files would make a careless reader block, follow a link, or read what the sandbox cannot.
#[test]
fn what_is_no_claim_is_removed_and_the_next_one_is_applied() {
    let place = Place::new();
    let drop = place.places.directory();
    let secret = place.directory.path().join("secret");
    let stolen = Claim::new(IdSource::now(), "/src".to_owned(), Scope::global(), notice("stolen"));
    fs::write(&secret, stolen.to_bytes()).unwrap();
    fs::hard_link(&secret, drop.join("a-hard-link.json")).unwrap();
    symlink(&secret, drop.join("a-link.json")).unwrap();
    symlink("/dev/zero", drop.join("a-device.json")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        drop.join("a-fifo.json"),
        rustix::fs::FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    fs::create_dir(drop.join("a-directory.json")).unwrap();
    fs::create_dir_all(drop.join("a-full-directory.json/inside")).unwrap();
    fs::write(drop.join("a-long.json"), vec![b' '; usize::try_from(MAX_CLAIM).unwrap() + 1]).unwrap();
    fs::write(drop.join("not-json.json"), b"{{{{").unwrap();
    fs::write(drop.join("b\x1b[31m.json"), "[".repeat(60_000)).unwrap();
    place.leave(notice("the real one"));
    let mut server = place.server();
    server.turn().unwrap();
    assert_eq!(place.bodies(), ["the real one"]);
    assert_eq!(place.waiting(), 1, "a directory that is not empty stays, and costs nothing");
    assert!(secret.exists());
    assert_eq!(server.limit.take(monotonic()), Ok(()));
    place.leave(notice("another"));
    server.turn().unwrap();
    assert_eq!(place.bodies().len(), 2);
}

#[test]
fn a_flood_waits_and_the_command_says_that_it_is_full() {
    let place = Place::new();
    for number in 0..MAX_CLAIMS {
        fs::write(place.places.directory().join(format!("{number}.json")), "").unwrap();
    }
    let claim = Claim::new(IdSource::now(), "/src".to_owned(), Scope::global(), notice("one more"));
    assert_eq!(place.places.leave(&claim).unwrap_err().kind(), ErrorKind::QuotaExceeded);
    let mut server = place.server();
    server.turn().unwrap();
    assert_eq!(place.waiting(), 0, "what is no claim is removed at once");
    for number in 0..100 {
        place.leave(notice(&number.to_string()));
    }
    assert!(server.turn().unwrap().is_some_and(|again| again <= Duration::from_secs(1)));
    assert!((1..=40).contains(&place.waiting()), "{}", place.waiting());
    assert_eq!(place.bodies().len() + place.waiting(), 100);
}

#[test]
fn a_time_that_cannot_be_is_replaced() {
    let day = 24 * 3600 * 1000;
    assert_eq!(plausible(5 * day, 5 * day), 5 * day);
    assert_eq!(plausible(4 * day, 5 * day), 4 * day);
    assert_eq!(plausible(4 * day - 1, 5 * day), 5 * day);
    assert_eq!(plausible(5 * day + 1, 5 * day), 5 * day);
    assert_eq!(plausible(i64::MIN, 5 * day), 5 * day);
}

/// Runs the thread as the hub does. Only the file wakes it.
#[test]
fn a_claim_wakes_the_thread_and_so_does_the_answer() {
    let place = Place::new();
    let log = Log::new(place.home.path().join("hub.log"), false);
    let service = DropBoxService::start(&place.home, &log).unwrap();
    place.leave(notice("hello"));
    until("the notice is applied", || place.bodies() == ["hello"]);
    let id = place.leave(question("Which branch?")).stamp.question_id();
    let state = || place.places.outbox().question(&id);
    until("the question is asked", || state() == Some(QuestionState::Open));
    answer(&mut place.journal(), &id, "main");
    until("the answer is published", || state() == Some(QuestionState::Answered("main".to_owned())));
    service.end(Duration::from_secs(10));
    place.leave(notice("late"));
    assert_eq!(place.waiting(), 1, "it has ended");
}

#[test]
fn nobody_else_can_send_as_an_unverified_process() {
    let mut journal = Place::new().journal();
    let claim = SenderClaim { from: Some("unverified".to_owned()), ..SenderClaim::default() };
    assert!(journal.sender(Some(std::process::id()), &claim).is_err());
}

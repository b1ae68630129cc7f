//! A machine that claims another one's identity, or requests messages that are not for it.

use std::fs;

use ringer_core::{Draft, Kind, Recipient, Scope, Sender};
use ringer_journal::IdSource;
use ringer_relay::{ConfiguredName, ConnectionEnd, Error, ExchangeSetup, MachineName};

use crate::machines::Machine;
use crate::refusals::{hello, speak, speak_with};

const START: &str = r#"{"type":"start","at":{"generation":"g","seq":0}}"#;

/// A frame with one message, which is the first of its machine.
fn message(id: &str, body: &str) -> String {
    format!(
        r#"{{"type":"messages","after":{{"generation":"g","seq":0}},"end":{{"generation":"g","seq":1}},"messages":[{{"seq":1,"id":"{id}","unix_ms":0,"tag":"status","scope":"global","sender":"eve","recipient":"default","body":"{body}"}}]}}"#
    )
}

/// Returns the setup of a far end, which does not configure who connects.
fn far_end(machine: &Machine) -> ExchangeSetup {
    ExchangeSetup { is_far_end: true, name: None, ..machine.setup("box") }
}

#[test]
fn a_link_that_leads_to_another_machine_is_refused() {
    let machine = Machine::new("laptop");
    assert!(matches!(speak(&machine, &[&hello('a', "[1,1]")]).0, Ok(ConnectionEnd::Closed)));
    let (ended, output) = speak(&machine, &[&hello('b', "[1,1]"), START, &message("x", "forged")]);
    let error = ended.expect_err("refused").to_string();
    assert!(error.contains("not the one that was linked as box"), "{error}");
    assert!(error.contains("ringer relay remove box"), "{error}");
    assert!(output.contains(r#""type":"refused""#), "{output}");
    assert_eq!(machine.texts_of("box"), [""; 0]);
    // The person removed it, so another machine may take the name.
    let name = MachineName::parse("box").expect("a name");
    assert!(ringer_relay::forget_machine(&machine.home(), &mut machine.journal(), &name).expect("forgotten"));
    assert!(matches!(speak(&machine, &[&hello('b', "[1,1]")]).0, Ok(ConnectionEnd::Closed)));
}

#[test]
fn a_machine_cannot_take_the_id_of_another_one() {
    let machine = Machine::new("laptop");
    assert!(matches!(speak(&machine, &[&hello('a', "[1,1]")]).0, Ok(ConnectionEnd::Closed)));
    let ended = speak_with(&machine.setup("eve"), &[&hello('a', "[1,1]")]).0;
    assert!(matches!(ended, Err(Error::KnownAs { ref known }) if known == "box"), "{ended:?}");
}

#[test]
fn machines_with_the_same_name_are_distinct() {
    let machine = Machine::new("server");
    let setup = far_end(&machine);
    let ids = ["01890000-0000-7000-8000-00000000000a", "01890000-0000-7000-8000-00000000000b"];
    for (digit, id, body) in [('a', ids[0], "of the first"), ('b', ids[1], "of the second")] {
        let ended = speak_with(&setup, &[&hello(digit, "[1,1]"), START, &message(id, body)]).0;
        assert!(matches!(ended, Ok(ConnectionEnd::Closed)), "{ended:?}");
    }
    assert_eq!(machine.texts_of("box"), ["of the first"]);
    assert_eq!(machine.texts_of("box-2"), ["of the second"]);
    // Each keeps its name, even if it claims another one.
    let renamed = hello('b', "[1,1]").replace(r#""name":"box""#, r#""name":"box-3""#);
    let id = "01890000-0000-7000-8000-00000000000c";
    speak_with(&setup, &[&renamed, START, &message(id, "again")]).0.expect("connected");
    assert_eq!(machine.texts_of("box-2"), ["of the second", "again"]);
}

#[test]
fn a_far_end_for_one_machine_serves_no_other() {
    let machine = Machine::new("server");
    let serving = |name: &str| {
        let name = MachineName::parse(name).map(ConfiguredName::for_far_end);
        ExchangeSetup { name, ..far_end(&machine) }
    };
    speak_with(&serving("ada"), &[&hello('a', "[1,1]")]).0.expect("connected");
    // The key of eve leads to a far end for eve, whatever eve claims.
    for purpose in ["exchange", "introduce"] {
        let hello = hello('a', "[1,1]").replace(r#""name""#, &format!(r#""purpose":"{purpose}","name""#));
        let ended = speak_with(&serving("eve"), &[&hello]).0;
        assert!(matches!(ended, Err(Error::KnownAs { ref known }) if known == "ada"), "{ended:?}");
    }
    for purpose in ["exchange", "introduce", "answer"] {
        let hello = hello('b', "[1,1]").replace(r#""name""#, &format!(r#""purpose":"{purpose}","name""#));
        let ended = speak_with(&serving("ada"), &[&hello]).0;
        assert!(matches!(ended, Err(Error::OtherMachine { .. })), "{purpose}: {ended:?}");
    }
    // Nor does another key, for which no name is set, nor a link of the settings, whatever the machine calls itself.
    for setup in [far_end(&machine), machine.setup("eve")] {
        for name in ["box", "ada"] {
            let hello = hello('a', "[1,1]").replace(r#""name":"box""#, &format!(r#""name":"{name}""#));
            let ended = speak_with(&setup, &[&hello]).0;
            assert!(
                matches!(ended, Err(Error::KnownAs { ref known }) if known == "ada"),
                "{name}: {ended:?}"
            );
        }
    }
}

/// Returns a configured link to the box with this name.
fn link_to_box(machine: &Machine, name: &str, links: &[&str]) -> ExchangeSetup {
    let command = ["ssh", "box"].map(str::to_owned);
    let links = links.iter().map(|link| (*link).to_owned()).collect();
    let name = MachineName::parse(name).map(|name| ConfiguredName::for_link(name, &command, links));
    ExchangeSetup { name, ..machine.setup("box") }
}

#[test]
fn a_link_can_be_renamed() {
    let machine = Machine::new("laptop");
    let id = "01890000-0000-7000-8000-00000000000a";
    let before = [&hello('a', "[1,1]"), START, &message(id, "before")];
    speak_with(&link_to_box(&machine, "box", &["box"]), &before).0.expect("connected");
    // A configured link owns its name.
    let ended = speak_with(&link_to_box(&machine, "build", &["box", "build"]), &[&hello('a', "[1,1]")]).0;
    assert!(matches!(ended, Err(Error::KnownAs { ref known }) if known == "box"), "{ended:?}");
    // A name in use by another machine is not reassigned.
    speak_with(&machine.setup("vm"), &[&hello('b', "[1,1]")]).0.expect("connected");
    let ended = speak_with(&link_to_box(&machine, "vm", &["vm"]), &[&hello('a', "[1,1]")]).0;
    assert!(matches!(ended, Err(Error::OtherMachine { .. })), "{ended:?}");
    speak_with(&link_to_box(&machine, "build", &["build"]), &[&hello('a', "[1,1]")]).0.expect("connected");
    assert_eq!(machine.texts_of("build"), ["before"], "what it sent before is still its own");
    assert_eq!(machine.journal().machine_id_of("box").expect("a journal"), None);
    // The name is free again.
    speak_with(&far_end(&machine), &[&hello('c', "[1,1]")]).0.expect("connected");
    assert_eq!(machine.journal().machine_id_of("box").expect("a journal"), Some("c".repeat(32)));
}

#[test]
fn messages_for_an_agent_survive_renaming_its_link() {
    let machine = Machine::new("laptop");
    speak_with(&link_to_box(&machine, "box", &["box"]), &[&hello('a', "[1,1]")]).0.expect("connected");
    let mut draft =
        Draft::new(Scope::global(), Sender::system(), Kind::Status, "look at the tests").expect("a draft");
    draft.recipient = Recipient::parse("agent:worker-1@box").expect("a recipient");
    machine.journal().append(&draft, &IdSource::now()).expect("it is stored");
    let want = r#"{"type":"want","after":null}"#;
    let output = speak_with(&link_to_box(&machine, "build", &["build"]), &[&hello('a', "[1,1]"), want]).1;
    assert!(
        output.contains(r#""recipient":"agent:worker-1""#) && output.contains("look at the tests"),
        "{output}"
    );
}

#[test]
fn a_configured_name_overrides_the_name_a_machine_claims() {
    let machine = Machine::new("laptop");
    speak_with(&far_end(&machine), &[&hello('a', "[1,1]")]).0.expect("connected");
    machine.write(["confirmed".to_owned()]);
    let want = r#"{"type":"want","after":null}"#;
    let output = speak_with(&far_end(&machine), &[&hello('a', "[1,1]"), want]).1;
    let end = output.lines().find_map(|line| Some(line.split_once(r#""end":"#)?.1.split_once('}')?.0));
    let stored = format!(r#"{{"type":"stored","end":{}}}}}"#, end.expect("a place"));
    speak_with(&far_end(&machine), &[&hello('a', "[1,1]"), want, &stored]).0.expect("stored");
    machine.write(["not confirmed".to_owned()]);
    // A link to a machine that claims this id gets the waiting messages, and nothing older.
    let want = r#"{"type":"want","after":{"generation":"g","seq":0}}"#;
    let output = speak_with(&machine.setup("build"), &[&hello('a', "[1,1]"), want]).1;
    assert!(output.contains("not confirmed") && !output.contains(r#""body":"confirmed""#), "{output}");
    assert_eq!(machine.journal().machine_id_of("build").expect("a journal"), Some("a".repeat(32)));
    assert_eq!(machine.journal().machine_id_of("box").expect("a journal"), None);
}

#[test]
fn messages_from_before_the_link_are_not_sent() {
    let machine = Machine::new("laptop");
    machine.write(["a secret".to_owned()]);
    speak(&machine, &[&hello('a', "[1,1]")]).0.expect("connected");
    machine.write(["for the box".to_owned()]);
    let generation = machine.journal().generation().expect("a generation");
    for asked in [generation.as_str(), "another"] {
        let want = format!(r#"{{"type":"want","after":{{"generation":"{asked}","seq":0}}}}"#);
        let output = speak(&machine, &[&hello('a', "[1,1]"), &want]).1;
        assert!(output.contains("for the box") && !output.contains("a secret"), "{output}");
    }
    // The new journal was written after the link was created, so everything in it is sent.
    machine.restore(&[]);
    machine.write(["in a new journal".to_owned()]);
    let want = format!(r#"{{"type":"want","after":{{"generation":"{generation}","seq":2}}}}"#);
    let output = speak(&machine, &[&hello('a', "[1,1]"), &want]).1;
    assert!(output.contains("in a new journal"), "{output}");
}

#[test]
fn the_id_of_a_message_of_this_machine_is_refused() {
    let machine = Machine::new("laptop");
    let id = machine.write(["own".to_owned()]).remove(0);
    let output = speak(&machine, &[&hello('a', "[1,1]"), START, &message(id.as_str(), "forged")]).1;
    assert!(output.contains(r#""type":"stored""#), "it does not come again: {output}");
    let messages = machine.journal().messages_after(0, usize::MAX).expect("messages");
    assert_eq!(messages.len(), 1);
}

#[test]
fn a_mark_on_a_pruned_message_is_not_counted_as_refused() {
    let machine = Machine::new("laptop");
    let id = "01890000-0000-7000-8000-00000000000d";
    let mark = message(id, "").replace(r#""tag":"status""#, &format!(r#""tag":"mark-read","key":"{id}""#));
    let mut progress = Vec::new();
    crate::refusals::speak_and_watch(
        &machine.setup("box"),
        &[&hello('a', "[1,1]"), START, &mark],
        &mut |made| progress.push(made),
    )
    .0
    .expect("connected");
    assert!(
        progress.contains(&ringer_relay::Progress::Stored { new: 0, refused: None, waiting: 0 }),
        "{progress:?}"
    );
}

#[test]
fn prompts_of_a_third_machine_cannot_be_answered_here() {
    let machine = Machine::new("server");
    let own = machine.write(["a question".to_owned()]).remove(0);
    let third = "01890000-0000-7000-8000-00000000000e";
    speak(&machine, &[&hello('b', "[1,1]"), START, &message(third, "of a third")]).0.expect("connected");
    let setup = ExchangeSetup {
        give_answer: Some(|_| ringer_relay::AnswerOutput { text: "given".to_owned(), ..Default::default() }),
        ..far_end(&machine)
    };
    let hello = hello('a', "[1,1]").replace(r#""name""#, r#""purpose":"answer","may_answer":true,"name""#);
    let answer = |id: &str| format!(r#"{{"type":"answer","message":"{id}","words":["yes"]}}"#);
    let output = speak_with(&setup, &[&hello, &answer(own.as_str())]).1;
    assert!(output.contains("given"), "{output}");
    let output = speak_with(&setup, &[&hello, &answer(third)]).1;
    assert!(output.contains("the question is of another machine") && !output.contains("given"), "{output}");
}

/// Creates a clone of a repository, and a message about it.
fn write_in_clone(machine: &Machine, directory: &std::path::Path, body: &str) {
    let mut draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, body).expect("a draft");
    draft.origin.cwd = directory.to_str().map(str::to_owned);
    machine.journal().append(&draft, &IdSource::now()).expect("it is stored");
}

#[test]
fn passwords_in_remotes_are_not_sent() {
    let machine = Machine::new("laptop");
    speak(&machine, &[&hello('a', "[1,1]")]).0.expect("connected");
    let clone = machine.home().path().join("api");
    for name in ["objects", "refs"] {
        fs::create_dir_all(clone.join(".git").join(name)).expect("a directory");
    }
    fs::write(clone.join(".git/HEAD"), "ref: refs/heads/main\n").expect("a file");
    let config = "[remote \"origin\"]\n\turl = https://ada:secret@github.com/org/api.git?token=secret\n";
    fs::write(clone.join(".git/config"), config).expect("a file");
    write_in_clone(&machine, &clone, "the tests are red");
    let output = speak(&machine, &[&hello('a', "[1,1]"), r#"{"type":"want","after":null}"#]).1;
    assert!(
        output.contains("the tests are red") && output.contains(r#""repository":"github.com/org/api""#),
        "{output}"
    );
    assert!(!output.contains("secret") && !output.contains("ada"), "{output}");
}

#[test]
fn a_hanging_directory_blocks_no_message() {
    let Some(hanging) = test_support::HangingDirectory::new() else { return };
    let machine = Machine::new("laptop");
    speak(&machine, &[&hello('a', "[1,1]")]).0.expect("connected");
    write_in_clone(&machine, &hanging.path().join("api"), "from a share");
    machine.write(["from elsewhere".to_owned()]);
    let output = speak(&machine, &[&hello('a', "[1,1]"), r#"{"type":"want","after":null}"#]).1;
    assert!(output.contains("from a share") && output.contains("from elsewhere"), "{output}");
}

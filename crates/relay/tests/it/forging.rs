//! A machine that says it is another one, or takes what is not for it.

use ringer_relay::{Ended, Error, ExchangeSetup, MachineName};

use crate::machines::Machine;
use crate::refusals::{hello, speak, speak_with};

const START: &str = r#"{"type":"start","at":{"generation":"g","seq":0}}"#;

/// A frame with one message, which is the first of its machine.
fn message(id: &str, body: &str) -> String {
    format!(
        r#"{{"type":"messages","after":{{"generation":"g","seq":0}},"end":{{"generation":"g","seq":1}},"messages":[{{"seq":1,"id":"{id}","unix_ms":0,"tag":"status","scope":"global","sender":"eve","recipient":"default","body":"{body}"}}]}}"#
    )
}

/// The far end: what connects is not set there.
fn far_end(machine: &Machine) -> ExchangeSetup {
    ExchangeSetup { is_far_end: true, name: None, ..machine.setup("box") }
}

#[test]
fn a_link_that_leads_to_another_machine_is_refused() {
    let machine = Machine::new("laptop");
    assert!(matches!(speak(&machine, &[&hello('a', "[1,1]")]).0, Ok(Ended::Closed)));
    let (ended, said) = speak(&machine, &[&hello('b', "[1,1]"), START, &message("x", "forged")]);
    let error = ended.expect_err("refused").to_string();
    assert!(error.contains("not the one that was linked as box"), "{error}");
    assert!(error.contains("ringer relay remove box"), "{error}");
    assert!(said.contains(r#""type":"refused""#), "{said}");
    assert_eq!(machine.texts_of("box"), [""; 0]);
    // The person removed it, and so it may be another one.
    let name = MachineName::parse("box").expect("a name");
    assert!(ringer_relay::forget_machine(&machine.home(), &mut machine.journal(), &name).expect("forgotten"));
    assert!(matches!(speak(&machine, &[&hello('b', "[1,1]")]).0, Ok(Ended::Closed)));
}

#[test]
fn a_machine_cannot_take_the_id_of_another_one() {
    let machine = Machine::new("laptop");
    assert!(matches!(speak(&machine, &[&hello('a', "[1,1]")]).0, Ok(Ended::Closed)));
    let ended = speak_with(&machine.setup("eve"), &[&hello('a', "[1,1]")]).0;
    assert!(matches!(ended, Err(Error::KnownAs { ref known }) if known == "box"), "{ended:?}");
}

#[test]
fn machines_of_one_name_are_two_machines() {
    let machine = Machine::new("server");
    let setup = far_end(&machine);
    let ids = ["01890000-0000-7000-8000-00000000000a", "01890000-0000-7000-8000-00000000000b"];
    for (digit, id, body) in [('a', ids[0], "of the first"), ('b', ids[1], "of the second")] {
        let ended = speak_with(&setup, &[&hello(digit, "[1,1]"), START, &message(id, body)]).0;
        assert!(matches!(ended, Ok(Ended::Closed)), "{ended:?}");
    }
    assert_eq!(machine.texts_of("box"), ["of the first"]);
    assert_eq!(machine.texts_of("box-2"), ["of the second"]);
    // Each keeps its name, also if it says another one.
    let renamed = hello('b', "[1,1]").replace(r#""name":"box""#, r#""name":"box-3""#);
    let id = "01890000-0000-7000-8000-00000000000c";
    speak_with(&setup, &[&renamed, START, &message(id, "again")]).0.expect("connected");
    assert_eq!(machine.texts_of("box-2"), ["of the second", "again"]);
}

#[test]
fn a_far_end_for_one_machine_serves_no_other() {
    let machine = Machine::new("server");
    let serving = |name: &str| ExchangeSetup { name: MachineName::parse(name), ..far_end(&machine) };
    speak_with(&serving("ada"), &[&hello('a', "[1,1]")]).0.expect("connected");
    // The key of eve leads to a far end for eve, whatever eve says.
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
}

#[test]
fn what_was_written_before_the_link_is_not_sent() {
    let machine = Machine::new("laptop");
    machine.write(["a secret".to_owned()]);
    speak(&machine, &[&hello('a', "[1,1]")]).0.expect("connected");
    machine.write(["for the box".to_owned()]);
    let generation = machine.journal().generation().expect("a generation");
    for asked in [generation.as_str(), "another"] {
        let want = format!(r#"{{"type":"want","after":{{"generation":"{asked}","seq":0}}}}"#);
        let said = speak(&machine, &[&hello('a', "[1,1]"), &want]).1;
        assert!(said.contains("for the box") && !said.contains("a secret"), "{said}");
    }
    // A new journal was written after the link was made: nothing of it is left out.
    machine.restore(&[]);
    machine.write(["in a new journal".to_owned()]);
    let want = format!(r#"{{"type":"want","after":{{"generation":"{generation}","seq":2}}}}"#);
    let said = speak(&machine, &[&hello('a', "[1,1]"), &want]).1;
    assert!(said.contains("in a new journal"), "{said}");
}

#[test]
fn the_id_of_a_message_of_this_machine_is_refused() {
    let machine = Machine::new("laptop");
    let id = machine.write(["own".to_owned()]).remove(0);
    let said = speak(&machine, &[&hello('a', "[1,1]"), START, &message(id.as_str(), "forged")]).1;
    assert!(said.contains(r#""type":"stored""#), "it does not come again: {said}");
    let messages = machine.journal().messages_after(0, usize::MAX).expect("messages");
    assert_eq!(messages.len(), 1);
}

#[test]
fn a_mark_on_what_is_gone_is_not_counted_as_refused() {
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
fn what_a_third_machine_asks_is_not_answered_here() {
    let machine = Machine::new("server");
    let own = machine.write(["a question".to_owned()]).remove(0);
    let third = "01890000-0000-7000-8000-00000000000e";
    speak(&machine, &[&hello('b', "[1,1]"), START, &message(third, "of a third")]).0.expect("connected");
    let setup = ExchangeSetup {
        give_answer: Some(|_| ringer_relay::Answered { text: "given".to_owned(), ..Default::default() }),
        ..far_end(&machine)
    };
    let hello = hello('a', "[1,1]").replace(r#""name""#, r#""purpose":"answer","may_answer":true,"name""#);
    let answer = |id: &str| format!(r#"{{"type":"answer","message":"{id}","words":["yes"]}}"#);
    let said = speak_with(&setup, &[&hello, &answer(own.as_str())]).1;
    assert!(said.contains("given"), "{said}");
    let said = speak_with(&setup, &[&hello, &answer(third)]).1;
    assert!(said.contains("the question is of another machine") && !said.contains("given"), "{said}");
}

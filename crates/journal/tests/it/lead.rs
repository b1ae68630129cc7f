//! The lead: an opt-in role that one live agent of a scope has.

use ringer_core::agent::AgentState;
use ringer_core::message::Agent;
use ringer_core::{Draft, Sender};
use ringer_journal::{Journal, Lead};

use crate::agent::{JournalAt, agent_info};
use crate::home::{TestHome, at, draft, scope};

const SCOPE: &str = "aaaaaaaa";

/// Puts an agent of a scope into a state.
fn put(journal: &mut Journal, id: &str, place: &str, state: AgentState) {
    let mut of = agent_info(id);
    of.scope = scope(place);
    JournalAt::at(journal, 0).hook(&of, state);
}

fn claims(journal: &mut Journal, id: &str) -> bool {
    journal.claim_lead(&scope(SCOPE), &Agent::new(id).expect("a name")).expect("claimed")
}

fn lead(journal: &mut Journal) -> Lead {
    journal.lead(&scope(SCOPE)).expect("readable")
}

fn led_by(agent: Option<&str>) -> Lead {
    Lead { wanted: true, agent: agent.map(str::to_owned), may_decide: false }
}

#[test]
fn no_agent_leads_where_the_person_did_not_ask_for_it() {
    let test = TestHome::new();
    let mut journal = test.open();
    put(&mut journal, "one", SCOPE, AgentState::Ready);
    assert!(!claims(&mut journal, "one"));
    assert_eq!(lead(&mut journal), Lead::default());
    journal.want_lead(&scope("bbbbbbbb"), true).unwrap();
    assert!(!claims(&mut journal, "one"), "elsewhere is not here");
}

#[test]
fn one_at_a_time_leads() {
    let test = TestHome::new();
    let mut journal = test.open();
    journal.want_lead(&scope(SCOPE), true).unwrap();
    assert_eq!(lead(&mut journal), led_by(None));
    for id in ["one", "two"] {
        put(&mut journal, id, SCOPE, AgentState::Ready);
    }
    assert!(claims(&mut journal, "one"));
    assert!(!claims(&mut journal, "two"), "another agent has the role");
    assert!(claims(&mut journal, "one"), "and keeps it");
    // Requesting a lead again does not take the role from its agent.
    journal.want_lead(&scope(SCOPE), true).unwrap();
    assert_eq!(lead(&mut journal), led_by(Some("one")));
}

#[test]
fn a_lead_that_has_gone_is_replaced() {
    for (state, place, replaced) in [
        (AgentState::Exited, SCOPE, true),
        (AgentState::Done, SCOPE, false),
        (AgentState::Error, SCOPE, false),
        (AgentState::Stuck, SCOPE, false),
        // It works in another repository now.
        (AgentState::Working, "bbbbbbbb", true),
    ] {
        let test = TestHome::new();
        let mut journal = test.open();
        journal.want_lead(&scope(SCOPE), true).unwrap();
        put(&mut journal, "one", SCOPE, AgentState::Ready);
        assert!(claims(&mut journal, "one"));
        put(&mut journal, "one", place, state);
        assert_eq!(claims(&mut journal, "two"), replaced, "{state:?} in {place}");
        assert_eq!(lead(&mut journal), led_by(Some(if replaced { "two" } else { "one" })));
    }
}

#[test]
fn a_lead_that_was_never_known_is_replaced() {
    let test = TestHome::new();
    let mut journal = test.open();
    journal.want_lead(&scope(SCOPE), true).unwrap();
    assert!(claims(&mut journal, "ghost"), "no other agent has it");
    assert!(claims(&mut journal, "two"));
}

#[test]
fn a_lead_that_is_no_longer_wanted_is_none() {
    let test = TestHome::new();
    let mut journal = test.open();
    for name in [SCOPE, "bbbbbbbb"] {
        journal.want_lead(&scope(name), true).unwrap();
    }
    put(&mut journal, "one", SCOPE, AgentState::Ready);
    assert!(claims(&mut journal, "one"));
    journal.want_lead(&scope(SCOPE), false).unwrap();
    assert_eq!(lead(&mut journal), Lead::default());
    assert!(journal.lead(&scope("bbbbbbbb")).unwrap().wanted, "only here");
    assert!(!claims(&mut journal, "one"));
}

#[test]
fn the_inventory_says_who_leads() {
    let test = TestHome::new();
    let mut journal = test.open();
    journal.want_lead(&scope(SCOPE), true).unwrap();
    for id in ["one", "two"] {
        put(&mut journal, id, SCOPE, AgentState::Ready);
    }
    assert!(claims(&mut journal, "two"));
    let agents = journal.stats(Some(&scope(SCOPE)), 0).unwrap().agents;
    let leads: Vec<(&str, bool)> = agents.iter().map(|agent| (agent.id.as_str(), agent.lead)).collect();
    assert_eq!(leads, [("one", false), ("two", true)]);
}

/// The mark that closes a question is for everyone with a list of questions. Agents do not read it.
#[test]
fn the_end_of_a_question_enters_no_turn() {
    let test = TestHome::new();
    let mut journal = test.open();
    let of = agent_info("claude-1");
    JournalAt::at(&mut journal, 1).working(&of);
    let question = Draft { scope: of.scope.clone(), ..draft("Which port?") };
    let pending = journal.ask(&question, "Which port?", &[], &at(2), None).unwrap();
    journal.answer(&pending.id, None, &Sender::system(), &at(3)).unwrap();
    assert!(journal.pending_for(&of.id, 4).unwrap().is_empty());
}

#[test]
fn only_the_lead_may_answer_for_others_and_only_if_it_is_allowed() {
    let agent = |id: &str| Agent::new(id).unwrap();
    let lead = Lead { wanted: true, agent: Some("a".to_owned()), may_decide: true };
    assert!(lead.may_answer(&agent("a"), &agent("b")));
    assert!(!lead.may_answer(&agent("a"), &agent("a")), "its own");
    assert!(!lead.may_answer(&agent("b"), &agent("c")), "another agent");
    assert!(!Lead { may_decide: false, ..lead }.may_answer(&agent("a"), &agent("b")));
    assert!(!Lead::default().may_answer(&agent("a"), &agent("b")));
}

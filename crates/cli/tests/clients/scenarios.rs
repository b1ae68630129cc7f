//! What happens with every client alike.

use crate::environment::{ClientEnvironment, SENDER};
use crate::model::{Answer, Model};
use crate::session::Session;

/// What is sent in these tests, and how the model should see it.
pub(crate) const TEXT: &str = "please also update the docs";
pub(crate) const BLOCK: &str =
    "<notification source=\"agent:builder\">\nplease also update the docs\n</notification>";

/// The block, where a client escapes what a hook says.
pub(crate) fn escaped_block() -> String {
    BLOCK.replace('<', "&lt;").replace('>', "&gt;")
}

/// A command that says something and notifies the agent.
pub(crate) fn notifying(agent: &str) -> String {
    format!("echo it ran; \"$RINGER\" notify --from {SENDER} --to {agent} '{TEXT}'")
}

/// After a tool: the next request has the block and the tool's own result, and the end is one `complete`. Gives what the
/// client printed.
#[track_caller]
pub(crate) fn check_after_tool(
    environment: &ClientEnvironment,
    model: &Model,
    session: Session,
    block: &str,
) -> String {
    let next = model.request();
    assert_eq!(next.count_new(block), 1, "{}", next.news());
    assert_eq!(next.count_new("it ran"), 1, "the tool's own result is there as well: {}", next.news());
    model.answer(Answer::Text("all done"));
    let (printed, is_content) = session.end();
    assert!(is_content && printed.contains("all done"), "{printed}");
    assert_eq!(environment.kinds(), ["complete"]);
    assert!(!model.has_request(), "nothing else was to be done");
    assert_eq!(environment.complaints(), "");
    printed
}

/// An idle session is woken twice by the same text. Each time, `woken` gets what `ringer notify` printed.
#[track_caller]
pub(crate) fn check_waking(environment: &ClientEnvironment, model: &Model, woken: impl Fn(&str)) {
    assert_eq!(model.request().count_new("hello"), 1);
    model.answer(Answer::Text("good morning"));
    environment.notified("complete");
    let agent = environment.agent();
    for text in ["the build is red", "the build is red"] {
        let sent = environment.ringer(&["notify", "--json", "--from", SENDER, "--to", &agent, text]);
        let request = model.request();
        let block = format!("<notification source=\"agent:{SENDER}\">\n{text}\n</notification>");
        assert_eq!(request.count_new(&block), 1, "{}", request.news());
        assert_eq!(request.count_new("</notification>"), 1, "nothing is told again: {}", request.news());
        woken(&sent);
        model.answer(Answer::Text("I will look at it"));
        environment.notified("complete");
    }
    assert_eq!(environment.kinds(), ["complete"; 3]);
    assert!(!model.has_request(), "each was told once");
    assert_eq!(environment.complaints(), "");
}

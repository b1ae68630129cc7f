//! OSC 8: links.

use ringer_term::TerminalEventKind;

use super::{check, check_silent};

const PAGE: &str = "https://example.org/a?b=c";

#[track_caller]
fn check_link(parameters: &str, uri: &str, id: Option<&str>) {
    let link = TerminalEventKind::Hyperlink { id: id.map(str::to_owned), uri: uri.to_owned() };
    check(&format!("8;{parameters};{uri}"), &[link]);
}

#[test]
fn a_link_begins() {
    check_link("", PAGE, None);
    check_link("id=build", PAGE, Some("build"));
    check_link("id=a b=c", PAGE, Some("a b=c"));
    check_link("", "file:///srv/a;b", None);
    check_link("", "x", None);
}

#[test]
fn an_id_needs_a_value() {
    check_link("id=", PAGE, None);
    check_link("id", PAGE, None);
    check_link("ID=build", PAGE, None);
    check_link("=x", PAGE, None);
    check_link("xid=build", PAGE, None);
}

#[test]
fn other_parameters_are_ignored() {
    check_link("=x:id=build", PAGE, Some("build"));
    check_link("a=b:id=build:c=d", PAGE, Some("build"));
    check_link("::id=build:", PAGE, Some("build"));
    check_link("id=one:id=two", PAGE, Some("one"));
}

#[test]
fn an_empty_address_ends_a_link() {
    check_link("", "", None);
    check_link("a=b", "", None);
}

/// It neither begins nor ends a link.
#[test]
fn an_id_without_an_address_is_ignored() {
    check_silent(&["8;id=build;", "8;a=b:id=build;"]);
}

#[test]
fn a_link_needs_its_parameter_field() {
    check_silent(&["8", "8;", "8;https://example.org/"]);
}

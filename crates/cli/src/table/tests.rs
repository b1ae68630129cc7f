use serde_json::json;

use super::*;

fn rows() -> Vec<Row> {
    let clock = Clock::local();
    let row = |short: &str,
               label: Option<&str>,
               kind: &str,
               body: &str,
               seconds: i64,
               surface: Option<&str>| {
        let row = json!({
            "short_id": short, "label": label, "from": "ci", "kind": kind, "title": "Build", "body": body,
            "surface": surface, "is_read": kind == "complete", "ts": clock.stamp(1_771_338_605_000 - seconds * 1000),
        });
        Row::of(&row, &Places::default(), &clock, 1_771_338_605_000)
    };
    vec![
        row(
            "k3fx",
            Some("api/auth"),
            "permission",
            "Bash: rm -rf build && make deploy TARGET=staging && ./notify.sh --all",
            120,
            Some("tmux:/tmp/tmux-0/default:12:%3"),
        ),
        row(
            "9qdw2",
            Some("a-monorepo/feature/very-long-branch-name"),
            "question",
            "Which database?\nPostgres / SQLite",
            300,
            Some("tty:/dev/pts/4@99"),
        ),
        row("m2xw", None, "error", "main is red\x1b]0;gotcha\x07: 3 tests fail \u{202e}gnp", 2_460, None),
        row(
            "p7rt",
            Some("日本語のリポジトリ/枝"),
            "complete",
            "すべてのテストが通りました。 👩‍👩‍👧 All 214 tests pass, and there is more to say about it.",
            200_000,
            None,
        ),
        row("c9dk", Some("x"), "status", "", 2, None),
    ]
}

fn drawn(width: usize) -> String {
    let table = format_rows(&rows(), true, Style { width, colour: false });
    for line in table.lines() {
        assert!(line.width() <= width, "{} columns: {line}", line.width());
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
    table
}

fn check(name: &str, width: usize) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path("snapshots");
    settings.bind(|| insta::assert_snapshot!(name, drawn(width)));
}

#[test]
fn it_fits_100_columns() {
    check("table-100", 100);
}

#[test]
fn it_fits_80_columns() {
    check("table-80", 80);
}

#[test]
fn it_fits_60_columns() {
    check("table-60", 60);
}

#[test]
fn it_fits_every_width_from_the_narrowest_on() {
    for width in MIN_WIDTH..=200 {
        let table = drawn(width);
        assert_eq!(table.lines().count(), rows().len());
        assert!(table.contains("k3fx") && table.contains("permission") && table.contains("2m"), "{table}");
    }
}

#[test]
fn colours_are_only_around_the_same_text() {
    let style = Style { width: 80, colour: true };
    let coloured = format_rows(&rows(), true, style);
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain += before;
        rest = after.split_once('m').expect("the end of a colour").1;
    }
    plain += rest;
    assert_eq!(plain, drawn(80));
    assert!(coloured.contains("\x1b[1;33mpermission"));
}

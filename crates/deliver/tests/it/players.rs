//! Sounds and the person's command, with programs that tell what they were given.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use ringer_deliver::{Error, PersonCommand, Sound};
use tempfile::{TempDir, tempdir};
use test_support::{DEADLINE, HangingDirectory, in_time, make_program};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::wait::note;

fn machine(players: &[(&str, &str)]) -> TempDir {
    let bin = tempdir().expect("a directory");
    for (name, script) in players {
        make_program(&bin.path().join(name), script);
    }
    fs::write(bin.path().join("-ding.wav"), "").expect("a sound");
    bin
}

#[tokio::test]
async fn the_first_player_that_works_plays() {
    let heard = r#"echo "$(basename "$0") $*" > "$(dirname "$0")/heard""#;
    let bin = machine(&[("pw-play", "echo no server >&2; exit 1"), ("paplay", heard), ("aplay", heard)]);
    let file = bin.path().join("-ding.wav");
    let sound = Sound::File(file.clone());
    in_time("the sound", sound.play(bin.path().as_os_str())).await.expect("a sound");
    let heard = fs::read_to_string(bin.path().join("heard")).expect("something");
    assert_eq!(heard.trim(), format!("paplay {}", file.display()));
}

#[tokio::test]
async fn the_theme_goes_by_its_name() {
    let bin = machine(&[("canberra-gtk-play", r#"echo "$*" > "$(dirname "$0")/heard""#)]);
    in_time("the sound", Sound::Theme.play(bin.path().as_os_str())).await.expect("a sound");
    let heard = fs::read_to_string(bin.path().join("heard")).expect("something");
    assert_eq!(heard.trim(), "-i message-new-instant");
}

#[tokio::test]
async fn silence_and_failure() {
    let bin = machine(&[("pw-play", "echo no server >&2; exit 1")]);
    let path = bin.path().as_os_str();
    Sound::Off.play(path).await.expect("silence needs no player");
    let error = Sound::File(bin.path().join("-ding.wav")).play(path).await.expect_err("it fails");
    assert!(error.to_string().ends_with("pw-play: exit status: 1: no server"), "{error}");
    let empty = tempdir().expect("a directory");
    let none = Sound::File(bin.path().join("-ding.wav")).play(empty.path().as_os_str()).await;
    assert!(matches!(none, Err(Error::NoPlayer { .. })), "{none:?}");
}

#[tokio::test]
async fn the_command_gets_the_text_beside_its_arguments() {
    let home = tempdir().expect("a directory");
    let script = r#"cat > input; printf '%s|%s|%s|%s' "$RINGER_NOTIFICATION_ID" "$RINGER_NOTIFICATION_KIND" \
        "$RINGER_NOTIFICATION_SENDER" "$RINGER_NOTIFICATION_BODY" > environment; echo "$#" > count"#;
    let command = PersonCommand {
        argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
        directory: home.path().to_owned(),
        timeout: DEADLINE,
    };
    let hostile = note("m1", "$(reboot); `reboot`");
    in_time("the command", command.run(&hostile)).await.expect("it succeeds");
    let read = |name: &str| fs::read_to_string(home.path().join(name)).expect("a file");
    assert_eq!(read("environment"), "m1|question|claude-1a2b|$(reboot); `reboot`");
    assert_eq!(read("input"), serde_json::to_string(&hostile).expect("JSON"));
    assert_eq!(read("count").trim(), "0");
}

#[tokio::test]
async fn a_command_that_fails_is_told_in_words() {
    let run = async |script: &str, timeout| {
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        let command = PersonCommand { argv, directory: "/".into(), timeout };
        in_time("the command", command.run(&note("m1", "b"))).await.expect_err("it fails").to_string()
    };
    assert_eq!(run("echo broken >&2; exit 2", DEADLINE).await, "sh: exit status: 2: broken");
    assert_eq!(run("exec sleep 600", Duration::from_millis(200)).await, "sh: no end after 200ms");
}

#[tokio::test]
async fn a_sound_and_its_player_on_a_disk_that_hangs_are_given_up_in_time() {
    let Some(hanging) = HangingDirectory::new() else { return };
    let path = hanging.path();
    let file = Sound::File(path.join("ding.wav"));
    let (player, sound) = tokio::join!(
        in_time("an end", Sound::Theme.play(path.as_os_str())),
        in_time("an end", file.play("/usr/bin".as_ref())),
    );
    for error in [player.expect_err("it hangs"), sound.expect_err("it hangs")] {
        assert!(error.to_string().contains("no answer from the disk of "), "{error}");
    }
}

#[tokio::test]
async fn commands_that_hang_at_their_start_keep_no_turn_from_others() {
    let Some(hanging) = HangingDirectory::new() else { return };
    let stuck = PersonCommand {
        argv: vec![hanging.path().join("command").to_str().expect("text").to_owned()],
        directory: "/".into(),
        timeout: DEADLINE * 2,
    };
    let turns = Arc::new(Semaphore::new(16));
    let mut hung = JoinSet::new();
    for number in 0..16 {
        let (stuck, permit) = (stuck.clone(), turns.clone().try_acquire_owned().ok());
        assert!(permit.is_some());
        hung.spawn(async move { stuck.run_with_permit(&note(&id(number), "x"), permit).await });
    }
    assert_eq!(turns.available_permits(), 0);
    let permit = in_time("a turn", turns.clone().acquire_owned()).await.ok();
    let works = PersonCommand { argv: vec!["true".to_owned()], ..stuck };
    in_time("its end", works.run_with_permit(&note(&id(16), "x"), permit)).await.expect("it runs");
    drop(in_time("all turns", turns.acquire_many(16)).await.expect("they are given back"));
    assert!(hung.try_join_next().is_none(), "they still hang");
    hanging.release();
    while let Some(ended) = in_time("the end of those that hung", hung.join_next()).await {
        ended.expect("no panic").expect_err("there is no such disk any more");
    }
}

fn id(number: usize) -> String {
    format!("01a1e095-441e-735e-8caf-{number:012}")
}

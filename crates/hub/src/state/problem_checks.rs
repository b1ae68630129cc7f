//! Finds problems of Ringer itself, logs them, and shows them on hosts until they are solved.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ringer_core::toast::Toast;
use ringer_core::{Event, Now};
use serde_json::{Value, json};

use super::HubState;
use super::problems::Problem;

const SETTINGS: &str = "settings";
const UNTRUSTED: &str = "untrusted-";
/// Prefix of the key of a failing hook's problem. Its toast has the same key.
const HOOK_FAILED: &str = "hook-failed-";

impl HubState {
    /// Updates the problems of the settings: errors, programs that are not trusted, and failures of hooks that no longer exist.
    pub(super) fn check_settings_problems(&mut self, now: Now) {
        match self.settings.error_text() {
            Some(text) => self.set_problem(now, SETTINGS, Problem { text, hint: "ringer config check" }),
            None => self.clear_problem(now, SETTINGS),
        }
        let config = self.settings.config();
        let untrusted = self.settings.untrusted_files(&config);
        let untrusted: BTreeMap<String, Problem> = untrusted.iter().map(untrusted_file).collect();
        for key in self.problems.keys(UNTRUSTED) {
            if !untrusted.contains_key(&key) {
                self.clear_problem(now, &key);
            }
        }
        for (key, problem) in untrusted {
            self.set_problem(now, &key, problem);
        }
        for key in self.problems.keys(HOOK_FAILED) {
            let id = key.strip_prefix(HOOK_FAILED);
            if !config.enabled_hooks().any(|hook| Some(hook.id.as_str()) == id) {
                self.clear_problem(now, &key);
            }
        }
    }

    /// Updates the problem of a hook that has run or failed.
    pub(super) fn hook_reported(&mut self, now: Now, hook: &str, failure: Option<String>) {
        let key = format!("{HOOK_FAILED}{hook}");
        match failure {
            Some(why) => {
                let text = format!("notification hook {hook} fails: {why}");
                self.set_problem(now, &key, Problem { text, hint: "ringer why last" });
            }
            None => self.clear_problem(now, &key),
        }
    }

    /// Lists the problems for `hub.status`.
    pub(super) fn problem_list(&self) -> Value {
        let row = |(key, Problem { text, hint }): (&String, &Problem)| json!({ "key": key, "text": text, "hint": hint });
        self.problems.list().map(row).collect()
    }

    /// Returns the toast for hosts: the current one, or else the first problem.
    pub(super) fn host_toast(&self) -> Option<Toast> {
        self.notifications.toast().cloned().or_else(|| self.problems.toast())
    }

    pub(super) fn tell_host_toast(&mut self) {
        let toast = self.host_toast();
        let told = self.surfaces.toast(toast.as_ref());
        self.tell_hosts(told);
    }

    fn set_problem(&mut self, now: Now, key: &str, problem: Problem) {
        let line = format!("problem: {}", problem.text);
        if self.show_problem(now, key, problem) {
            self.log(line);
        }
    }

    /// Shows a problem without logging it. Returns true if it is new or changed.
    pub(super) fn show_problem(&mut self, now: Now, key: &str, problem: Problem) -> bool {
        let is_news = self.problems.set(key, problem);
        if is_news {
            self.problems_changed(now);
        }
        is_news
    }

    pub(super) fn clear_problem(&mut self, now: Now, key: &str) {
        if let Some(problem) = self.problems.clear(key) {
            self.log(format!("no longer a problem: {}", problem.text));
            self.problems_changed(now);
            self.feed_engine(now, Event::RemoveToast(key.to_owned()));
        }
    }

    /// Publishes the problems. While another toast is shown, hosts are sent them when that toast ends.
    fn problems_changed(&mut self, now: Now) {
        let problems = self.problem_list();
        self.publish(now, "problems", json!({ "problems": problems }));
        if self.notifications.toast().is_none() {
            self.tell_host_toast();
        }
    }
}

fn untrusted_file((path, programs): (&PathBuf, &usize)) -> (String, Problem) {
    let path = path.display();
    let programs = if *programs == 1 { "1 program".to_owned() } else { format!("{programs} programs") };
    let text = format!("not trusted, so not run: {programs} in {path}");
    (format!("{UNTRUSTED}{path}"), Problem { text, hint: "ringer trust" })
}

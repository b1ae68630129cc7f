//! Finds import cycles between the files of a crate: such files cannot be read, tested or moved one at a time.
//!
//! An arrow goes from a file to the file that defines an item that its code names: in a `use`, or in a path that begins with
//! `crate`, `self`, `super`, a module declared in that file, or a name imported there. Imports are followed, so a name that
//! a module file re-exports leads to the file that defines it. Hence these are not arrows:
//!
//! * `mod child;`, and a re-export of a name that the file itself does not use: a parent may declare and re-export its
//!   children, and they may use the parent's items;
//! * an item that a child reaches through its parent's imports: the arrow goes to the file that defines it;
//! * tests: items under `#[cfg(test)]`, and the files that are declared there;
//! * method calls, which name no file: the methods of a type may be in the files of its children.

mod import;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use self::import::{Module, Path};
use super::complaint::Complaint;
use super::listing::TextFile;
use super::source;

/// Arrows that are allowed although they close a cycle: from, to, and the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

pub(super) fn check(files: &[TextFile]) -> Vec<Complaint> {
    check_with(files, EXCEPTIONS)
}

fn check_with(files: &[TextFile], exceptions: &[(&str, &str, &str)]) -> Vec<Complaint> {
    let mut crates: BTreeMap<&str, Crate> = BTreeMap::new();
    for file in files.iter().filter(|file| source::is_rust(&file.path)) {
        if let Some((name, inside)) = file.path.split_once("/src/") {
            crates.entry(name).or_default().add(&file.path, import::module_path(inside), &file.text);
        }
    }
    let mut unused: Vec<&(&str, &str, &str)> = exceptions.iter().collect();
    let mut complaints = Vec::new();
    for mut one in crates.into_values() {
        one.leave_out_tests();
        let mut arrows = one.arrows();
        unused.retain(|(from, to, _)| {
            let is_there = arrows.get(*from).is_some_and(|to_files| to_files.contains_key(*to));
            !is_there
        });
        for (from, to, _) in exceptions {
            if let Some(to_files) = arrows.get_mut(*from) {
                to_files.remove(*to);
            }
        }
        complaints.extend(circles(&arrows).iter().map(|circle| complaint(circle, &arrows)));
    }
    complaints.extend(unused.into_iter().map(|(from, to, _)| {
        Complaint::new(
            from,
            1,
            format!("is excepted from the rule on circles for an arrow to {to} that is gone"),
        )
    }));
    complaints
}

fn complaint(circle: &[&str], arrows: &Arrows<'_>) -> Complaint {
    let next = circle.get(1).copied().unwrap_or(circle[0]);
    let line = arrows.get(circle[0]).and_then(|to| to.get(next)).copied().unwrap_or(1);
    let names: Vec<&str> = circle.iter().chain(circle.first()).copied().collect();
    Complaint::new(circle[0], line, format!("files import each other in a circle: {}", names.join(" → ")))
}

/// The files that each file uses, with the first line that does so.
type Arrows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, usize>>;

/// The files of a crate.
#[derive(Default)]
struct Crate<'a> {
    modules: BTreeMap<Path, (&'a str, Module)>,
}

impl<'a> Crate<'a> {
    fn add(&mut self, file: &'a str, path: Path, text: &str) {
        self.modules.insert(path, (file, Module::read(text)));
    }

    fn leave_out_tests(&mut self) {
        let tests: Vec<Path> = self
            .modules
            .iter()
            .flat_map(|(path, (_, module))| module.test_modules.iter().map(|name| child(path, name)))
            .collect();
        self.modules.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
    }

    fn arrows(&self) -> Arrows<'a> {
        let mut arrows = Arrows::new();
        for (path, (file, module)) in &self.modules {
            for (name, line) in module.used_names() {
                let Some((target, _)) = self.file_of(path, name).filter(|(target, _)| target != file) else {
                    continue;
                };
                let first = arrows.entry(*file).or_default().entry(target).or_insert(line);
                *first = line.min(*first);
            }
        }
        arrows
    }

    /// Returns the file that defines `name` as seen from the module `from`.
    fn file_of(&self, from: &[String], name: &[String]) -> Option<(&'a str, Path)> {
        let mut path = self.absolute(from, name)?;
        // Each step follows one import. The limit stops imports that lead to each other.
        for _ in 0..16 {
            let depth = (0..=path.len()).rev().find(|depth| self.modules.contains_key(&path[..*depth]))?;
            let (file, module) = &self.modules[&path[..depth]];
            let imported = path.get(depth).and_then(|item| module.imported(item));
            match imported.and_then(|imported| self.absolute(&path[..depth], imported)) {
                Some(next) => path = next.into_iter().chain(path.into_iter().skip(depth + 1)).collect(),
                None => return Some((file, path)),
            }
        }
        None
    }

    /// Returns a name as a path from the crate's root, or `None` if it belongs to another crate or is not a module path.
    fn absolute(&self, from: &[String], name: &[String]) -> Option<Path> {
        let (first, rest) = name.split_first()?;
        let mut path = match first.as_str() {
            "crate" => Vec::new(),
            "self" => from.to_vec(),
            "super" => from[..from.len().checked_sub(1)?].to_vec(),
            other if self.modules.contains_key(&child(from, other)) => child(from, other),
            _ => return None,
        };
        for part in rest {
            if part == "super" {
                path.pop();
            } else {
                path.push(part.clone());
            }
        }
        Some(path)
    }
}

fn child(path: &[String], name: &str) -> Path {
    path.iter().map(String::as_str).chain([name]).map(str::to_owned).collect()
}

/// Returns a shortest cycle for every group of files that can all reach each other.
fn circles<'a>(arrows: &Arrows<'a>) -> Vec<Vec<&'a str>> {
    let mut told: BTreeSet<&str> = BTreeSet::new();
    let mut circles = Vec::new();
    for file in arrows.keys().copied() {
        if told.contains(file) {
            continue;
        }
        if let Some(circle) = shortest_circle(file, arrows) {
            let reached = reachable(file, arrows);
            told.extend(reached.into_iter().filter(|other| reachable(other, arrows).contains(file)));
            circles.push(circle);
        }
    }
    circles
}

fn shortest_circle<'a>(from: &'a str, arrows: &Arrows<'a>) -> Option<Vec<&'a str>> {
    let mut queue = VecDeque::from([vec![from]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = queue.pop_front() {
        for next in way.last().and_then(|last| arrows.get(last)).into_iter().flat_map(BTreeMap::keys) {
            if *next == from {
                return Some(way);
            }
            if seen.insert(*next) {
                queue.push_back(way.iter().copied().chain([*next]).collect());
            }
        }
    }
    None
}

fn reachable<'a>(from: &str, arrows: &Arrows<'a>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut todo: Vec<&str> = arrows.get(from).into_iter().flat_map(BTreeMap::keys).copied().collect();
    while let Some(file) = todo.pop() {
        if let Some((file, to)) = arrows.get_key_value(file)
            && reached.insert(*file)
        {
            todo.extend(to.keys());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::check_with;
    use crate::tidy::listing::TextFile;

    /// Checks the files of a crate, and what is complained about, each as `file:line`.
    #[track_caller]
    fn check(files: &[(&str, &str)], expect: &[&str]) {
        check_excepting(files, &[], expect);
    }

    #[track_caller]
    fn check_excepting(files: &[(&str, &str)], exceptions: &[(&str, &str, &str)], expect: &[&str]) {
        let file = |(path, text): &(&str, &str)| TextFile {
            path: format!("crates/x/src/{path}"),
            text: (*text).to_owned(),
        };
        let files: Vec<TextFile> = files.iter().map(file).collect();
        let complaints: Vec<String> =
            check_with(&files, exceptions).iter().map(ToString::to_string).collect();
        let places: Vec<&str> = complaints.iter().filter_map(|text| text.split(": ").next()).collect();
        let expect: Vec<String> = expect.iter().map(|place| format!("crates/x/src/{place}")).collect();
        assert_eq!(places, expect, "{complaints:#?}");
    }

    const LIB: (&str, &str) = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\npub use b::B;\n");

    #[test]
    fn a_circle_is_told_once_with_its_way() {
        check(&[LIB, ("a.rs", "use crate::b::B;\n"), ("b.rs", "\nuse super::a::A;\n")], &["a.rs:1"]);
        check(
            &[
                LIB,
                ("a.rs", "fn f(_: crate::b::B) {}"),
                ("b.rs", "use crate::c;"),
                ("c.rs", "use super::{a::A};"),
            ],
            &["a.rs:1"],
        );
        check(&[LIB, ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "")], &[]);
        let files = [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")]
            .map(|(path, text)| TextFile { path: format!("crates/x/src/{path}"), text: text.to_owned() });
        let told = check_with(&files, &[]);
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "crates/x/src/a.rs:1: files import each other in a circle: crates/x/src/a.rs → crates/x/src/b.rs → crates/x/src/a.rs"
            ]
        );
    }

    #[test]
    fn imports_lead_to_the_file_that_defines_a_name() {
        check(&[LIB, ("a.rs", "use crate::B;"), ("b.rs", "use crate::A;")], &["a.rs:1"]);
        let renamed = ("lib.rs", "mod a;\nmod b;\npub use a::A as Other;\npub use b::*;\n");
        check(&[renamed, ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::Other;")], &["a.rs:1"]);
        check(&[LIB, ("a.rs", "use crate::b;\nfn f(_: b::B) {}"), ("b.rs", "use crate::A;")], &["a.rs:1"]);
    }

    #[test]
    fn a_parent_may_declare_and_re_export_its_children() {
        let child = ("a/inner.rs", "use super::A;\nimpl A {}\n");
        check(&[LIB, ("a.rs", "mod inner;\npub(crate) use inner::{B, C};\npub struct A;\n"), child], &[]);
        check(&[LIB, ("a.rs", "mod inner;\nuse inner::B;\npub struct A(B);\n"), child], &["a.rs:2"]);
        check(&[LIB, ("a.rs", "mod inner;\npub use inner::B;\npub struct A(B);\n"), child], &["a.rs:2"]);
        check(&[LIB, ("a.rs", "mod inner;\npub struct A(inner::B);\n"), child], &["a.rs:2"]);
        check(&[LIB, ("a.rs", "mod inner;\npub struct A(self::inner::B);\n"), child], &["a.rs:2"]);
        let through = ("a/inner.rs", "use super::C;\n");
        check(&[LIB, ("a.rs", "mod inner;\nuse crate::c::C;\nuse inner::B;\n"), through, ("c.rs", "")], &[]);
    }

    #[test]
    fn tests_comments_and_other_crates_do_not_count() {
        let b = ("b.rs", "use crate::a::A;");
        check(&[LIB, ("a.rs", "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n"), b], &[]);
        check(&[LIB, ("a.rs", "#[cfg(test)]\nmod tests;\n"), ("a/tests.rs", "use crate::b::B;"), b], &[]);
        check(
            &[
                LIB,
                ("a.rs", "#[cfg(any(unix, test))]\nmod inner;\n"),
                ("a/inner.rs", "use crate::b::B;"),
                ("b.rs", "use crate::a::inner::C;"),
            ],
            &["a/inner.rs:1"],
        );
        check(&[LIB, ("a.rs", "pub(in crate::b) struct A;\n"), b], &[]);
        check(&[LIB, ("a.rs", "// use crate::b::B;\nconst A: &str = \"crate::b::B\";\n"), b], &[]);
        check(&[LIB, ("a.rs", "use b::B;\nuse std::b;\nfn f() -> impl Fn() + use<> {}\n"), b], &[]);
    }

    #[test]
    fn an_exception_allows_one_arrow_and_goes_when_the_arrow_has_gone() {
        let (a, b) = ("crates/x/src/a.rs", "crates/x/src/b.rs");
        let files = [LIB, ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")];
        check_excepting(&files, &[(a, b, "because")], &[]);
        check_excepting(&files, &[(a, b, "because"), (b, "crates/x/src/c.rs", "because")], &["b.rs:1"]);
    }
}

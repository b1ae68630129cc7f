//! The imports and names of a Rust file, as far as [`super`] needs them.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::source;

/// The parts of a path: `["crate", "a", "A"]`.
pub(super) type Path = Vec<String>;
/// A path as written in a file.
pub(super) type Name = [String];

/// Returns the module path of a file below `src`: `["a", "b"]` for `a/b.rs` and for `a/b/mod.rs`.
pub(super) fn module_path(inside: &str) -> Path {
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    let mut path: Path = inside.split('/').map(str::to_owned).collect();
    let is_file = |last: &String| last == "mod" || (inside == last && (last == "lib" || last == "main"));
    if path.last().is_some_and(is_file) {
        path.pop();
    }
    path
}

/// The names in one file.
pub(super) struct Module {
    imports: BTreeMap<String, Import>,
    /// Paths in code and imports of whole modules (`::*`), with their lines.
    paths: Vec<(Path, usize)>,
    /// Modules that are compiled only for tests.
    pub(super) test_modules: BTreeSet<String>,
}

struct Import {
    path: Path,
    line: usize,
    is_re_export: bool,
    is_used: bool,
}

impl Module {
    pub(super) fn read(text: &str) -> Self {
        let (code, test_modules) = without_tests(&source::code_only(text));
        let tokens = tokens(&code);
        let mut module = Self { imports: BTreeMap::new(), paths: Vec::new(), test_modules };
        let mut words: Vec<(&str, usize)> = Vec::new();
        let mut at = 0;
        while let Some((token, line)) = tokens.get(at) {
            let follows = |text: &str| tokens.get(at + 1).is_some_and(|(next, _)| *next == text);
            if *token == "use" && !follows("<") {
                let is_re_export = at > 0 && matches!(tokens[at - 1].0, "pub" | ")");
                at = module.read_use(&tokens, at + 1, &[], is_re_export);
            } else if token.starts_with(source::is_name) {
                let end = path_end(&tokens, at);
                let path: Path =
                    tokens[at..end].iter().step_by(2).map(|(part, _)| (*part).to_owned()).collect();
                words.push((token, *line));
                // The path in `pub(in crate::a)` is a visibility, not a use.
                let is_visibility = at > 0 && tokens[at - 1].0 == "in" && at > 1 && tokens[at - 2].0 == "(";
                if path.len() > 1 && !is_visibility {
                    module.paths.push((path, *line));
                }
                at = end;
            } else {
                at += 1;
            }
        }
        module.resolve(&words);
        module
    }

    /// Reads one `use` tree that starts at `at`. Returns its end.
    fn read_use(
        &mut self,
        tokens: &[(&str, usize)],
        mut at: usize,
        before: &Name,
        is_re_export: bool,
    ) -> usize {
        let mut path = before.to_vec();
        while let Some((token, line)) = tokens.get(at) {
            at += 1;
            match *token {
                "::" => continue,
                "{" => {
                    while tokens.get(at).is_some_and(|(token, _)| *token != "}") {
                        at = self.read_use(tokens, at, &path, is_re_export);
                        at += usize::from(tokens.get(at).is_some_and(|(token, _)| *token == ","));
                    }
                    return at + 1;
                }
                "*" => {
                    self.paths.push((path, *line));
                    return at;
                }
                "as" => {
                    let name = tokens.get(at).map_or("_", |(name, _)| *name).to_owned();
                    self.import(name, path, *line, is_re_export);
                    return at + 1;
                }
                "self" if !path.is_empty() => {}
                part => path.push(part.to_owned()),
            }
            if tokens.get(at).is_none_or(|(next, _)| !matches!(*next, "::" | "as")) {
                let name = path.last().cloned().unwrap_or_default();
                self.import(name, path, *line, is_re_export);
                return at;
            }
        }
        at
    }

    fn import(&mut self, name: String, path: Path, line: usize, is_re_export: bool) {
        if name == "_" {
            self.paths.push((path, line));
        } else {
            self.imports.insert(name, Import { path, line, is_re_export, is_used: false });
        }
    }

    /// Marks the imports that the code uses, and resolves imported modules at the start of paths.
    fn resolve(&mut self, words: &[(&str, usize)]) {
        for (word, _) in words {
            if let Some(import) = self.imports.get_mut(*word) {
                import.is_used = true;
            }
        }
        for (path, _) in &mut self.paths {
            if let Some(import) = path.first().and_then(|first| self.imports.get(first)) {
                path.splice(..1, import.path.iter().cloned());
            }
        }
    }

    /// Returns the path from which a name was imported, if it was.
    pub(super) fn imported(&self, name: &str) -> Option<&Name> {
        self.imports.get(name).map(|import| import.path.as_slice())
    }

    /// Returns the names that the code of this file uses, without names that it only re-exports.
    pub(super) fn used_names(&self) -> impl Iterator<Item = (&Name, usize)> {
        let imports = self.imports.values().filter(|import| !import.is_re_export || import.is_used);
        let imports = imports.map(|import| (import.path.as_slice(), import.line));
        imports.chain(self.paths.iter().map(|(path, line)| (path.as_slice(), *line)))
    }
}

/// Blanks out the lines of tests. Returns the code and the modules that these lines declare.
fn without_tests(code: &str) -> (String, BTreeSet<String>) {
    let lines: Vec<&str> = code.lines().collect();
    // `any(test, …)` is also compiled outside of tests.
    let is_shipped =
        |first: usize| lines.get(first.saturating_sub(1)).is_some_and(|line| line.contains("any("));
    let mut tests = source::test_lines(code);
    tests.retain(|range| !is_shipped(*range.start()));
    let mut modules = BTreeSet::new();
    let mut kept = String::with_capacity(code.len());
    for (number, line) in (1..).zip(lines) {
        if tests.iter().any(|range| range.contains(&number)) {
            let declared = line.trim().strip_suffix(';').and_then(|line| line.split_once("mod "));
            modules.extend(declared.map(|(_, name)| name.trim().to_owned()));
        } else {
            kept.push_str(line);
        }
        kept.push('\n');
    }
    (kept, modules)
}

/// Splits code into names, `::` and other single characters, each with its line.
fn tokens(code: &str) -> Vec<(&str, usize)> {
    let mut tokens = Vec::new();
    for (number, line) in (1..).zip(code.lines()) {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if source::is_name(first) {
                rest.find(|c| !source::is_name(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push((&rest[..length], number));
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// Returns the end of the path that starts at `at`.
fn path_end(tokens: &[(&str, usize)], at: usize) -> usize {
    let is = |at: usize, wanted: fn(&str) -> bool| tokens.get(at).is_some_and(|(token, _)| wanted(token));
    let mut end = at + 1;
    while is(end, |token| token == "::") && is(end + 1, |token| token.starts_with(source::is_name)) {
        end += 2;
    }
    end
}

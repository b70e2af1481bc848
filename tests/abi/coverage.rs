//! `blosc2/API-COVERAGE.md` has a row for each function of C, and names items of `blosc2` that exist.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use super::tables;

const DOCUMENT: &str = "blosc2/API-COVERAGE.md";
const STATES: [&str; 4] = ["yes", "partly", "no", "left out"];

/// The program of the README is the example `quickstart`, which is run.
#[test]
fn the_program_of_the_readme_is_an_example() {
    let readme = read("README.md");
    let (_, program) = readme.split_once("```rust\n").unwrap();
    let (program, _) = program.split_once("```\n").unwrap();
    let example = read("examples/quickstart.rs");
    let (_, code) = example.split_once("\n\n").unwrap();
    assert_eq!(program, code);
}

#[test]
fn every_function_of_c_has_a_row() {
    let text = read(DOCUMENT);
    let mut missing: BTreeSet<&str> =
        tables::functions().into_iter().map(|(name, _)| name).collect();
    let declared = missing.clone();
    let mut seen = HashSet::new();
    let mut faults = Vec::new();
    for row in rows(&text) {
        let names = code(row.name);
        if row.is_of_c() {
            faults.extend((names.len() != 1).then(|| format!("{}: not one name", row.name)));
        }
        for name in names {
            if row.is_of_c() {
                let unknown = !declared.contains(name);
                faults.extend(unknown.then(|| format!("`{name}`: not declared")));
                missing.remove(name);
            }
            // Python's classes share names; the functions of C are spread over sections.
            let scope = if row.is_of_c() { "C" } else { row.section };
            let again = !seen.insert((scope, name));
            faults.extend(again.then(|| format!("`{name}`: a second row")));
        }
        if !STATES.contains(&row.state) {
            faults.push(format!("{}: the state `{}`", row.name, row.state));
        }
        if row.items.is_empty() || row.state == "yes" && code(row.items).is_empty() {
            faults.push(format!("{}: neither item nor reason", row.name));
        }
    }
    faults.extend(missing.into_iter().map(|name| format!("`{name}`: no row")));
    assert!(faults.is_empty(), "{DOCUMENT}:\n{}", faults.join("\n"));
}

#[test]
fn every_rust_item_of_a_row_exists() {
    let mut known = Known::default();
    known.add_folder("blosc2/src");
    // `blosc2` re-exports some of it.
    known.add_folder("crates/format/src");
    let mut store = Known::default();
    store.add_folder("crates/store/src");
    // The files of public modules.
    let root =
        ["lib.rs", "compute/mod.rs"].map(|file| read(&format!("blosc2/src/{file}"))).concat();
    let root = without_comment_lines(&root);
    let exported: HashSet<&str> = root.split(|c: char| !is_name(c)).collect();

    let text = read(DOCUMENT);
    let (mut faults, mut found) = (Vec::new(), 0);
    for row in rows(&text) {
        for item in code(row.items).into_iter().filter(|item| !item.starts_with("std::")) {
            let path: Vec<&str> = item.split("::").collect();
            let is_known = match path[..] {
                ["blosc2_store", owner, name] => store.has_member(owner, name),
                ["blosc2_store", name] => store.names.contains(name),
                ["blosc2_format", .., owner, name] => known.has_member(owner, name),
                [owner, name] => exported.contains(owner) && known.has_member(owner, name),
                [name] => exported.contains(name) && known.names.contains(name),
                _ => false,
            };
            found += usize::from(is_known);
            faults.extend((!is_known).then(|| format!("{}: no public `{item}`", row.name)));
        }
    }
    assert!(faults.is_empty(), "{DOCUMENT}:\n{}", faults.join("\n"));
    assert!(found > 200, "{found} items");
}

/// A row of a table of functions or methods.
struct Row<'a> {
    /// The heading above it.
    section: &'a str,
    name: &'a str,
    state: &'a str,
    items: &'a str,
}

impl Row<'_> {
    fn is_of_c(&self) -> bool {
        self.section.starts_with("C: ")
    }
}

/// All rows below a heading; the tables above the first one explain the others.
fn rows(text: &str) -> Vec<Row<'_>> {
    let (mut rows, mut section) = (Vec::new(), None);
    for line in text.lines() {
        section = line.strip_prefix("## ").or(section);
        let Some(section) = section.filter(|_| line.starts_with('|')) else { continue };
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", name, state, items, ""] = cells[..] else {
            panic!("{DOCUMENT}: not three columns: {line}");
        };
        let is_head = matches!(name, "C function" | "Python") || name.starts_with("---");
        if !is_head {
            rows.push(Row { section, name, state, items });
        }
    }
    rows
}

/// The parts of a cell between backticks.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The public items of a crate, as far as formatted text shows them.
#[derive(Default)]
struct Known {
    /// Functions, types, traits and constants.
    names: HashSet<String>,
    /// Methods, associated constants, variants and fields by the name of the type or trait; functions by the name of
    /// the module.
    members: HashSet<(String, String)>,
}

impl Known {
    fn has_member(&self, owner: &str, name: &str) -> bool {
        self.members.contains(&(owner.to_owned(), name.to_owned()))
    }

    fn add_folder(&mut self, folder: impl AsRef<Path>) {
        let folder = blosc2_testing::root().join(folder);
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.add_folder(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let module = path.file_stem().unwrap().to_str().unwrap();
                self.add_file(module, &fs::read_to_string(&path).unwrap());
            }
        }
    }

    fn add_file(&mut self, module: &str, text: &str) {
        let mut owner: Option<(&str, bool)> = None;
        for line in text.lines() {
            let member = line.strip_prefix("    ").filter(|rest| !rest.starts_with(' '));
            if let (Some(member), Some((name, is_open))) = (member, owner) {
                // Methods of traits have no visibility of their own, and variants of enums have none.
                let visible = member.strip_prefix("pub ").or(is_open.then_some(member));
                let found = visible.and_then(declared);
                self.members.extend(found.map(|found| (str::to_owned(name), found.to_owned())));
            } else if line.starts_with("impl") || line.starts_with("unsafe impl") {
                owner = implemented(line);
            } else if let Some(item) = line.strip_prefix("pub ") {
                let Some(name) = declared(item) else { continue };
                self.names.insert(name.to_owned());
                self.members.insert((module.to_owned(), name.to_owned()));
                owner = Some((name, item.contains("trait ") || item.starts_with("enum ")));
            } else if line == "}" || line.starts_with(char::is_alphabetic) && line != "where" {
                owner = None;
            }
        }
    }
}

/// The type of an `impl`, and whether that is of a trait.
fn implemented(line: &str) -> Option<(&str, bool)> {
    let (_, mut head) = line.split_once("impl")?;
    if head.starts_with('<') {
        let mut depth = 0;
        let end = head.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        })?;
        head = &head[end + 1..];
    }
    match head.split_once(" for ") {
        Some((_, head)) => Some((first_name(head), true)),
        None => Some((first_name(head.trim_start()), false)),
    }
}

/// The name of the declared item, from a declaration without its visibility.
fn declared(mut item: &str) -> Option<&str> {
    if item.starts_with("//") || item.starts_with('#') {
        return None;
    }
    for keyword in
        ["const ", "unsafe ", "async ", "fn ", "struct ", "enum ", "trait ", "type ", "mod "]
    {
        item = item.strip_prefix(keyword).unwrap_or(item);
    }
    Some(first_name(item)).filter(|name| !name.is_empty())
}

fn first_name(text: &str) -> &str {
    text.split(|c: char| !is_name(c)).next().unwrap()
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn without_comment_lines(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("//") && !line.starts_with("#!")).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(blosc2_testing::root().join(path)).unwrap()
}

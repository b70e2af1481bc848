//! `cargo xtask imports`: no files of a crate import each other in a cycle.
//!
//! An arrow leads from each file that names an item to the file that defines it:
//!
//! - Every path counts: of a `use`, of a type, of an expression. Inside a macro there are only tokens; there, paths of
//!   two or more segments count.
//! - A path is followed through re-exports and globs to its definition: `use crate::Error` leads to `error.rs`, not
//!   to `lib.rs`. A path to a module is not an arrow: the items that are named through it count.
//! - A `use` with a visibility (`pub use`, `pub(crate) use`) only passes a name on, so it is not an arrow. Code in the
//!   same file that uses such a name is one.
//! - There are no arrows from a file (`mod.rs`, `lib.rs`, `main.rs` or `x.rs` with a folder `x`) to the modules in its
//!   folder: a parent and its children belong together. Uses of a parent by its children count.
//! - Inline modules belong to their file. Modules for tests are left out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::{fs, mem};

use anyhow::{Context, Result, ensure};
use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprLit, ForeignItem, Item, ItemMod, ItemUse, Lit, Macro, Meta, Token,
    UseTree, Visibility,
};

use crate::run;

const ROOTS: [&str; 12] = [
    "blosc2-sys/build/main.rs",
    "blosc2-sys/src/lib.rs",
    "crates/format/src/lib.rs",
    "crates/derive/src/lib.rs",
    "blosc2/src/lib.rs",
    "crates/store/src/lib.rs",
    "crates/cli/src/main.rs",
    "crates/web/src/lib.rs",
    "crates/datafusion/src/lib.rs",
    "crates/cluster/src/main.rs",
    "crates/sql/src/main.rs",
    "dev/xtask/src/main.rs",
];

/// The targets of the names that a path leads through: the name in each module. Imports can lead in a cycle: a name that is
/// being looked up has only the targets in its module.
type Found = BTreeMap<(usize, String), Vec<Place>>;

/// For each file, the files that it imports from, with the line of the first import.
type Arrows = BTreeMap<String, BTreeMap<String, usize>>;

/// Checks all crates of the workspace.
pub(crate) fn imports() -> Result<()> {
    let root = run::root();
    let mut arrows = Arrows::new();
    for file in ROOTS {
        arrows.append(
            &mut Crate::load(file, |file| fs::read_to_string(root.join(file)).ok())?.arrows(),
        );
    }
    check(&arrows)?;
    println!("imports: no cycle in {} files", arrows.len());
    Ok(())
}

fn check(arrows: &Arrows) -> Result<()> {
    let cycles: Vec<String> = cycles(arrows).iter().map(|cycle| show(arrows, cycle)).collect();
    ensure!(cycles.is_empty(), "files import each other in a cycle:\n{}", cycles.join("\n"));
    Ok(())
}

/// The shortest cycle through each arrow, each cycle once.
fn cycles(arrows: &Arrows) -> BTreeSet<Vec<&str>> {
    let mut cycles = BTreeSet::new();
    for (from, targets) in arrows {
        for to in targets.keys() {
            if let Some(mut cycle) = way(arrows, to, from) {
                let first = (0..cycle.len()).min_by_key(|&at| cycle[at]).unwrap_or(0);
                cycle.rotate_left(first);
                cycles.insert(cycle);
            }
        }
    }
    cycles
}

/// The files on a shortest path, including both ends.
fn way<'a>(arrows: &'a Arrows, from: &'a str, to: &str) -> Option<Vec<&'a str>> {
    let mut before = BTreeMap::from([(from, from)]);
    let mut next = VecDeque::from([from]);
    while let Some(file) = next.pop_front() {
        if file == to {
            let mut way = vec![file];
            let mut at = file;
            while at != from {
                at = before[at];
                way.push(at);
            }
            way.reverse();
            return Some(way);
        }
        for target in arrows.get(file).into_iter().flat_map(BTreeMap::keys) {
            if !before.contains_key(target.as_str()) {
                before.insert(target, file);
                next.push_back(target);
            }
        }
    }
    None
}

/// `a.rs:3 -> b.rs:5 -> a.rs`, where each line imports from the next file.
fn show(arrows: &Arrows, cycle: &[&str]) -> String {
    let mut text = String::from("  ");
    for (at, file) in cycle.iter().enumerate() {
        let line = arrows[*file][cycle[(at + 1) % cycle.len()]];
        text += &format!("{file}:{line} -> ");
    }
    text + cycle[0]
}

/// A module and its names.
struct Module {
    file: String,
    /// The folder of the files of its children.
    folder: String,
    parent: usize,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    uses: BTreeMap<String, Vec<Ident>>,
    globs: Vec<Vec<Ident>>,
}

/// The target of a path: a module, or an item in a module.
#[derive(Clone)]
enum Place {
    Module(usize),
    Item(usize),
}

impl Place {
    fn module(&self) -> Option<usize> {
        match self {
            Self::Module(module) => Some(*module),
            Self::Item(_) => None,
        }
    }
}

/// A crate while it is read. The first module is the root.
struct Crate {
    modules: Vec<Module>,
    /// The paths in the source, each with the module that it is in.
    references: Vec<(usize, Vec<Ident>)>,
    /// The module whose source is being read.
    current: usize,
    /// Modules whose files are still to be read.
    unread: Vec<usize>,
}

impl Crate {
    fn load(root: &str, read: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let mut all =
            Self { modules: Vec::new(), references: Vec::new(), current: 0, unread: Vec::new() };
        let (folder, _) = root.rsplit_once('/').unwrap_or_default();
        all.add(root.to_owned(), folder.to_owned());
        all.unread.push(0);
        while let Some(module) = all.unread.pop() {
            let file = &mut all.modules[module].file;
            let source = match read(file) {
                Some(source) => source,
                None => {
                    *file = file.replace(".rs", "/mod.rs");
                    read(file).with_context(|| format!("{file} cannot be read"))?
                }
            };
            let source =
                syn::parse_file(&source).with_context(|| format!("{file} cannot be parsed"))?;
            all.current = module;
            all.visit_file(&source);
        }
        Ok(all)
    }

    fn add(&mut self, file: String, folder: String) -> usize {
        self.modules.push(Module {
            file,
            folder,
            parent: self.current,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            uses: BTreeMap::new(),
            globs: Vec::new(),
        });
        self.modules.len() - 1
    }

    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (module, path) in &self.references {
            let from = &self.modules[*module].file;
            let targets = arrows.entry(from.clone()).or_default();
            for target in self.resolve(*module, path, &mut Found::new()) {
                let Place::Item(target) = target else { continue };
                let target = &self.modules[target].file;
                if !is_in_folder_of(target, from)
                    && target != from
                    && let Some(last) = path.last()
                {
                    let line = last.span().start().line;
                    let first = targets.entry(target.clone()).or_insert(line);
                    *first = line.min(*first);
                }
            }
        }
        arrows
    }

    /// The targets of a path in a module: a module and an item can have the same name. Empty for paths out of the crate
    /// and for local variables.
    fn resolve(&self, module: usize, path: &[Ident], known: &mut Found) -> Vec<Place> {
        let mut found = vec![Place::Module(module)];
        for (segment, name) in path.iter().enumerate() {
            let Some(at) = found.iter().find_map(Place::module) else {
                // The segments after an item are its variants and associated items.
                return found;
            };
            found = match name.to_string().as_str() {
                "crate" => vec![Place::Module(0)],
                "self" => vec![Place::Module(at)],
                "super" => vec![Place::Module(self.modules[at].parent)],
                name => self.named(at, name, known),
            };
            if found.is_empty() && segment > 0 {
                // A macro defines it.
                return vec![Place::Item(at)];
            }
        }
        found
    }

    fn named(&self, module: usize, name: &str, known: &mut Found) -> Vec<Place> {
        let key = (module, name.to_owned());
        if let Some(found) = known.get(&key) {
            return found.clone();
        }
        let Module { children, items, uses, globs, .. } = &self.modules[module];
        let mut found: Vec<Place> =
            children.get(name).map(|&child| Place::Module(child)).into_iter().collect();
        found.extend(items.contains(name).then_some(Place::Item(module)));
        known.insert(key.clone(), found.clone());
        if !items.contains(name)
            && let Some(path) = uses.get(name)
        {
            found.extend(self.resolve(module, path, known));
        }
        if found.is_empty() {
            for glob in globs {
                let sources = self.resolve(module, glob, known);
                for source in sources.iter().filter_map(Place::module) {
                    found.extend(self.named(source, name, known));
                }
            }
        }
        known.insert(key, found.clone());
        found
    }

    /// Records the names of a `use`, and its paths unless they are only re-exported.
    fn import(&mut self, tree: &UseTree, mut path: Vec<Ident>, is_private: bool) {
        let (last, name) = match tree {
            UseTree::Path(part) => {
                path.push(part.ident.clone());
                return self.import(&part.tree, path, is_private);
            }
            UseTree::Group(group) => {
                return group
                    .items
                    .iter()
                    .for_each(|tree| self.import(tree, path.clone(), is_private));
            }
            UseTree::Glob(_) => return self.modules[self.current].globs.push(path),
            UseTree::Name(name) => (&name.ident, &name.ident),
            UseTree::Rename(rename) => (&rename.ident, &rename.rename),
        };
        let name = match path.last() {
            Some(module) if name == "self" => module.to_string(),
            _ => name.to_string(),
        };
        path.push(last.clone());
        if is_private {
            self.references.push((self.current, path.clone()));
        }
        self.modules[self.current].uses.insert(name, path);
    }

    /// Finds the paths of two or more segments.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<Ident> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) if colons == 2 && !path.is_empty() => {
                    path.push(ident);
                    colons = 0;
                }
                other => {
                    self.end_of_path(&mut path);
                    colons = 0;
                    match other {
                        TokenTree::Ident(ident) => path.push(ident),
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        _ => {}
                    }
                }
            }
        }
        self.end_of_path(&mut path);
    }

    fn end_of_path(&mut self, path: &mut Vec<Ident>) {
        let path = mem::take(path);
        if path.len() > 1 {
            self.references.push((self.current, path));
        }
    }
}

/// The path in `#[path = "..."]`.
fn path_of(attribute: &Attribute) -> Option<String> {
    let named = attribute.meta.require_name_value().ok()?;
    match &named.value {
        Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) if named.path.is_ident("path") => {
            Some(path.value())
        }
        _ => None,
    }
}

/// Whether a file is one of the modules below another.
fn is_in_folder_of(file: &str, parent: &str) -> bool {
    let folder = parent
        .strip_suffix("mod.rs")
        .or_else(|| parent.strip_suffix("lib.rs"))
        .or_else(|| parent.strip_suffix("main.rs"));
    match folder {
        Some(folder) => file.starts_with(folder),
        None => file
            .strip_prefix(parent.trim_end_matches(".rs"))
            .is_some_and(|rest| rest.starts_with('/')),
    }
}

impl Visit<'_> for Crate {
    fn visit_item(&mut self, item: &Item) {
        let name = match item {
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Macro(item) => item.ident.as_ref(),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        self.modules[self.current].items.extend(name.map(Ident::to_string));
        visit::visit_item(self, item);
    }

    fn visit_foreign_item(&mut self, item: &ForeignItem) {
        let name = match item {
            ForeignItem::Fn(item) => Some(&item.sig.ident),
            ForeignItem::Static(item) => Some(&item.ident),
            ForeignItem::Type(item) => Some(&item.ident),
            _ => None,
        };
        self.modules[self.current].items.extend(name.map(Ident::to_string));
        visit::visit_foreign_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &ItemMod) {
        if module.attrs.iter().any(is_for_tests) {
            return;
        }
        let parent = self.current;
        let name = module.ident.to_string();
        let folder = format!("{}/{name}", self.modules[parent].folder);
        let file = match (&module.content, module.attrs.iter().find_map(path_of)) {
            (Some(_), _) => self.modules[parent].file.clone(),
            (None, None) => format!("{folder}.rs"),
            // Relative to the folder of the file that declares the module.
            (None, Some(path)) => {
                let mut parts: Vec<&str> = self.modules[parent].file.split('/').collect();
                parts.pop();
                for part in path.split('/') {
                    match part {
                        ".." => drop(parts.pop()),
                        part => parts.push(part),
                    }
                }
                parts.join("/")
            }
        };
        let child = self.add(file, folder);
        self.modules[parent].children.insert(name, child);
        match &module.content {
            Some((_, items)) => {
                self.current = child;
                items.iter().for_each(|item| self.visit_item(item));
                self.current = parent;
            }
            None => self.unread.push(child),
        }
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&item.tree, Vec::new(), matches!(item.vis, Visibility::Inherited));
        }
    }

    fn visit_path(&mut self, path: &syn::Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|segment| segment.ident.clone()).collect();
            self.references.push((self.current, names));
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    /// The words of an attribute are not paths.
    fn visit_attribute(&mut self, _: &Attribute) {}
}

/// Whether code is compiled only for tests: `cfg(test)`, `cfg(all(test, ...))`.
fn is_for_tests(attribute: &Attribute) -> bool {
    let is_test = |condition: &Meta| match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => {
            let all = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            all.is_ok_and(|all| all.iter().any(|condition| condition.path().is_ident("test")))
        }
        _ => false,
    };
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<Meta>().is_ok_and(|condition| is_test(&condition))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arrows of a crate with these files: `a.rs:3 b.rs`.
    fn arrows(files: &[(&str, &str)]) -> Arrows {
        let read = |file: &str| {
            let found = files.iter().find(|(name, _)| format!("src/{name}") == file);
            found.map(|(_, source)| (*source).to_owned())
        };
        Crate::load("src/lib.rs", read).unwrap().arrows()
    }

    fn lines(arrows: &Arrows) -> Vec<String> {
        let each = arrows.iter().flat_map(|(from, targets)| {
            targets.iter().map(move |(to, line)| format!("{from}:{line} {to}").replace("src/", ""))
        });
        each.collect()
    }

    #[test]
    fn paths_lead_to_definitions() {
        let files = [
            ("lib.rs", "mod a; mod b; mod error; pub use error::*;"),
            ("a.rs", "use crate::Error;\nuse super::b as other;\nfn f() { other::inner::g() }"),
            ("b/mod.rs", "pub mod inner; const C: u8 = 0; fn h() { inner::g() }"),
            ("b/inner.rs", "pub fn g() -> std::io::Error {\n  println!(\"{}\", super::C)\n}"),
            ("error.rs", "pub struct Error;"),
        ];
        let expected = ["a.rs:3 b/inner.rs", "a.rs:1 error.rs", "b/inner.rs:2 b/mod.rs"];
        assert_eq!(lines(&arrows(&files)), expected);
    }

    #[test]
    fn a_function_named_like_its_module_is_found() {
        let files = [
            ("lib.rs", "mod a; mod check; use check::check;"),
            ("a.rs", "use super::check;\nfn f() { check() }"),
            ("check.rs", "pub fn check() {}"),
        ];
        assert_eq!(lines(&arrows(&files)), ["a.rs:1 check.rs"]);
    }

    #[test]
    fn what_only_passes_names_on_or_tests_imports_nothing() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub use crate::b::B;\n#[cfg(test)] mod tests { use crate::b::B; }"),
            ("b.rs", "pub struct B; mod inline { use super::B; }"),
        ];
        assert!(lines(&arrows(&files)).is_empty());
    }

    #[test]
    fn a_cycle_is_found() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B;\npub struct A;"),
            ("b.rs", "pub struct B(crate::c::C);"),
            ("c.rs", "pub struct C;\nimpl C { fn f(_: super::a::A) {} }"),
        ];
        let arrows = arrows(&files);
        let error = check(&arrows).unwrap_err().to_string();
        assert!(error.contains("  src/a.rs:1 -> src/b.rs:1 -> src/c.rs:2 -> src/a.rs"), "{error}");
    }
}

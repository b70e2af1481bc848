//! Compiles the C side of the tests: the ABI probe that `tests/abi.rs` compares with the bindings, and
//! the faults of upstream that `tests/hazards` shows.
//!
//! For the probe, the declarations of blosc2-sys are parsed. Each declaration becomes a row of a table that is written
//! twice: in C, where the compiler takes the values from the headers, and in Rust, where they come from the bindings.
//! So no declaration is left out.

use std::path::{Path, PathBuf};
use std::{env, fs};

use syn::{
    Expr, FnArg, ForeignItem, GenericArgument, Item, Lit, Meta, PathArguments, ReturnType, Type,
};

const DECLARATIONS: [&str; 2] = ["blosc2-sys/src/bindings.rs", "blosc2-sys/src/platform.rs"];

/// The tables: their name, and the types of a value in C and in Rust.
const TABLES: [(&str, &str, &str); 5] = [
    ("layouts", "int64_t", "i64"),
    ("types", "const char *", "&'static CStr"),
    ("constants", "int64_t", "i64"),
    ("strings", "const char *", "&'static CStr"),
    ("functions", "function", "*const ()"),
];

/// The C code before the tables: access to the inline functions and static constants of the headers.
const PROBE: &str = include_str!("tests/abi.c");

fn main() {
    let Some(include) = env::var_os("DEP_CBLOSC2_INCLUDE").map(PathBuf::from) else {
        fail("blosc2-sys does not say where the C headers are (DEP_CBLOSC2_INCLUDE is not set)");
    };
    for header in ["b2nd.h", "blosc2.h", "blosc2"] {
        println!("cargo::rerun-if-changed={}", include.join(header).display());
    }
    println!("cargo::rustc-env=BLOSC2_INCLUDE={}", include.display());

    let mut rows = Rows(Vec::new());
    for path in DECLARATIONS {
        println!("cargo::rerun-if-changed={path}");
        let text = fs::read_to_string(path).map_err(|error| error.to_string());
        let file = text.and_then(|text| syn::parse_file(&text).map_err(|error| error.to_string()));
        match file {
            Ok(file) => file.items.iter().for_each(|item| rows.add_item(item)),
            Err(error) => fail(&format!("cannot parse {path}: {error}")),
        }
    }

    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_else(|| fail("OUT_DIR is not set")));
    let (mut c, mut rust) = (PROBE.to_owned(), String::new());
    for (table, c_type, rust_type) in TABLES {
        c += &format!("\ntypedef struct {{ const char *name; {c_type} value; }} {table}_row;\n");
        c += &format!("static const {table}_row {table}[] = {{\n");
        rust += &format!("pub(super) fn {table}() -> Vec<(&'static str, {rust_type})> {{ vec![\n");
        for row in rows.0.iter().filter(|row| row.table == table) {
            c += &format!("  {{\"{}\", {}}},\n", row.name, row.c);
            rust += &format!("    (\"{}\", {}),\n", row.name, row.rust);
        }
        c +=
            &format!("  {{0, 0}}}};\nconst {table}_row *abi_{table}(void) {{ return {table}; }}\n");
        rust += "] }\n";
    }
    write(&out.join("abi.c"), &c);
    write(&out.join("abi.rs"), &rust);
    compile("abi_probe", &[out.join("abi.c")], &include);

    // They use POSIX functions.
    if env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo::rerun-if-changed=tests/hazards");
        let hazards: Vec<PathBuf> = fs::read_dir("tests/hazards")
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
            .unwrap_or_else(|error| fail(&format!("cannot read tests/hazards: {error}")));
        let sources: Vec<PathBuf> = hazards
            .into_iter()
            .filter(|path| path.extension().is_some_and(|end| end == "c"))
            .collect();
        compile("hazards", &sources, &include);
    }
}

fn compile(name: &str, sources: &[PathBuf], include: &Path) {
    let mut build = cc::Build::new();
    // Some hazards call internal functions, which have a prefix like the public ones.
    build.define("CBLOSC2_INTERNAL_SYMBOLS", None);
    build.files(sources).include(include).std("gnu11").warnings(false).compile(name);
}

/// A row of a table: its name, and the expression for its value in each language.
struct Row {
    table: &'static str,
    name: String,
    c: String,
    rust: String,
}

struct Rows(Vec<Row>);

impl Rows {
    fn add(&mut self, table: &'static str, name: &str, c: &str, rust: &str) {
        self.0.push(Row { table, name: name.into(), c: c.into(), rust: rust.into() });
    }

    fn add_item(&mut self, item: &Item) {
        match item {
            Item::Use(_) => {}
            Item::Struct(item) if !has(&item.attrs) => {}
            Item::Type(item) if !has(&item.attrs) => {}
            Item::Struct(item) => self.add_struct(item),
            Item::Type(item) => {
                let name = item.ident.to_string();
                self.add_type(&name, &format!("({name} *)0"), &declare(&item.ty, false, "*"));
                // The one alias for a structure that C-Blosc2 does not define.
                if name == "blosc_timestamp_t" {
                    self.add_size(&name, &name);
                }
            }
            Item::Const(item) => {
                let name = item.ident.to_string();
                let rust = format!("blosc2_sys::{name}");
                match *item.ty {
                    Type::Reference(_) => self.add("strings", &name, &name, &rust),
                    _ => self.add("constants", &name, &name, &format!("i64::from({rust})")),
                }
            }
            Item::ForeignMod(block) => block.items.iter().for_each(|item| match item {
                ForeignItem::Fn(item) => self.add_function(&item.sig),
                _ => unknown("something in an extern block that is no function"),
            }),
            _ => unknown("an item that is no struct, type, const or extern block"),
        }
    }

    fn add_struct(&mut self, item: &syn::ItemStruct) {
        let name = item.ident.to_string();
        let c = c_name(&name);
        let fields: Vec<_> =
            item.fields.iter().filter_map(|field| Some((field, field.ident.as_ref()?))).collect();
        match fields[..] {
            [] => unknown("a structure without named fields"),
            [(_, only)] if only == "_unused" => return, // opaque
            _ => self.add_size(&name, &c),
        }
        for (field, ident) in fields.into_iter().filter(|(field, _)| has(&field.attrs)) {
            let (path, member) = (format!("{name}.{ident}"), format!("(({c} *)0)->{ident}"));
            let offset = format!("number(offset_of!(blosc2_sys::{name}, {ident}))");
            let size = format!("field_size(|s: &blosc2_sys::{name}| &raw const s.{ident})");
            let c_offset = format!("offsetof({c}, {ident})");
            self.add("layouts", &format!("offset of {path}"), &c_offset, &offset);
            self.add("layouts", &format!("size of {path}"), &format!("sizeof({member})"), &size);
            self.add_type(&path, &format!("&{member}"), &declare(&field.ty, false, "*"));
        }
    }

    fn add_size(&mut self, name: &str, c: &str) {
        for (what, c_operator, function) in
            [("size", "sizeof", "size_of"), ("alignment", "_Alignof", "align_of")]
        {
            let rust = format!("number({function}::<blosc2_sys::{name}>())");
            self.add("layouts", &format!("{what} of {name}"), &format!("{c_operator}({c})"), &rust);
        }
    }

    /// Lets the C compiler check that an expression has the type in the bindings.
    fn add_type(&mut self, name: &str, c: &str, ty: &str) {
        let c = format!("_Generic({c}, {ty}: \"{ty}\", default: \"another type\")");
        self.add("types", name, &c, &format!("c\"{ty}\""));
    }

    fn add_function(&mut self, signature: &syn::Signature) {
        let name = signature.ident.to_string();
        let arguments = signature.inputs.iter().map(|argument| match argument {
            FnArg::Typed(argument) => &*argument.ty,
            FnArg::Receiver(_) => unknown("a method"),
        });
        let ty = declare_function(arguments, &signature.output, "(*)");
        self.add_type(&name, &format!("&{name}"), &ty);
        let rust = format!("blosc2_sys::{name} as *const ()");
        self.add("functions", &name, &format!("(function)&{name}"), &rust);
    }
}

/// The C declaration of `inner` with a Rust type. `constant` is set behind `*const`.
fn declare(ty: &Type, constant: bool, inner: &str) -> String {
    let prefix = if constant { "const " } else { "" };
    match ty {
        Type::Ptr(ty) => declare(&ty.elem, ty.const_token.is_some(), &format!("*{prefix}{inner}")),
        Type::Array(ty) => match &ty.len {
            Expr::Lit(syn::ExprLit { lit: Lit::Int(len), .. }) => {
                declare(&ty.elem, constant, &format!("({inner})[{}]", len.base10_digits()))
            }
            _ => unknown("an array whose length is no literal"),
        },
        Type::Path(ty) => match ty.path.segments.last() {
            Some(syn::PathSegment { ident, arguments: PathArguments::None }) => {
                format!("{prefix}{} {inner}", c_name(&ident.to_string()))
            }
            Some(syn::PathSegment { arguments: PathArguments::AngleBracketed(option), .. }) => {
                let Some(GenericArgument::Type(Type::BareFn(ty))) = option.args.first() else {
                    unknown("a type with parameters that is no Option of a function");
                };
                let arguments = ty.inputs.iter().map(|argument| &argument.ty);
                declare_function(arguments, &ty.output, &format!("(*{inner})"))
            }
            _ => unknown("a path of this form"),
        },
        _ => unknown("a type that is no pointer, array or name"),
    }
}

fn declare_function<'a>(
    arguments: impl Iterator<Item = &'a Type>,
    output: &ReturnType,
    inner: &str,
) -> String {
    let list = arguments.map(|ty| declare(ty, false, "")).collect::<Vec<_>>().join(", ");
    let declaration = format!("{inner}({})", if list.is_empty() { "void" } else { &list });
    match output {
        ReturnType::Default => format!("void {declaration}"),
        ReturnType::Type(_, ty) => declare(ty, false, &declaration),
    }
}

/// The C name of a type. Upstream ends the tags of its structures with `_s`.
fn c_name(rust: &str) -> String {
    match rust {
        "c_char" | "c_int" | "c_void" => rust[2..].into(),
        "i8" | "i16" | "i32" | "i64" => format!("int{}_t", &rust[1..]),
        "u8" | "u16" | "u32" | "u64" => format!("uint{}_t", &rust[1..]),
        "usize" => "size_t".into(),
        "f32" => "float".into(),
        "f64" => "double".into(),
        tag if tag == "timespec" || tag.ends_with("_s") => format!("struct {tag}"),
        name => name.into(),
    }
}

/// Whether the target has the item with these attributes.
fn has(attributes: &[syn::Attribute]) -> bool {
    let windows = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "windows");
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).all(|attribute| {
        match attribute.parse_args::<Meta>() {
            Ok(Meta::Path(path)) if path.is_ident("windows") => windows,
            Ok(Meta::List(not)) if not.tokens.to_string() == "windows" => !windows,
            _ => unknown("a cfg that is not cfg(windows) or cfg(not(windows))"),
        }
    })
}

fn write(path: &Path, text: &str) {
    fs::write(path, text)
        .unwrap_or_else(|error| fail(&format!("cannot write {}: {error}", path.display())));
}

fn unknown(what: &str) -> ! {
    fail(&format!("the bindings hold {what}, which the ABI test does not know"))
}

/// Stops the build with one message.
fn fail(message: &str) -> ! {
    eprintln!("\nblosc2-workspace: {message}\n");
    std::process::exit(1);
}

#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod row;

use std::collections::HashSet;

use proc_macro::TokenStream as Tokens;
use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DataStruct, DeriveInput, Error, Field, Index, LitStr, Member, Meta, Path,
    Result, Token, parse_quote,
};

/// Derives `blosc2::Element`. Use this macro from the crate `blosc2`, which documents the macro.
// `blosc2` documents and tests this macro: a test here would build `blosc2` again, for the host.
#[proc_macro_derive(Element, attributes(element))]
pub fn derive_element(input: Tokens) -> Tokens {
    let input = syn::parse_macro_input!(input as DeriveInput);
    element(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Derives `blosc2_store::Row`. Use this macro from the crate `blosc2-store`. The trait `Row` documents the macro.
#[proc_macro_derive(Row, attributes(row))]
pub fn derive_row(input: Tokens) -> Tokens {
    let input = syn::parse_macro_input!(input as DeriveInput);
    library(&input.attrs, "row", parse_quote!(::blosc2_store))
        .and_then(|library| row::row(&input, &library))
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

fn element(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(DataStruct { fields, .. }) = &input.data else {
        return Err(Error::new(input.ident.span(), "only a struct can be an `Element`"));
    };
    if !input.generics.params.is_empty() {
        let message = "an `Element` has one dtype and cannot have generic parameters";
        return Err(Error::new(input.generics.span(), message));
    }
    if fields.is_empty() {
        return Err(Error::new(input.ident.span(), "an `Element` has at least one field"));
    }
    let layout = layout(input)?;
    let library = library(&input.attrs, "element", parse_quote!(::blosc2))?;
    let mut names = HashSet::new();
    let mut parts = Vec::new();
    for (number, field) in fields.iter().enumerate() {
        let part = Part::new(number, field)?;
        if !names.insert(part.name.clone()) {
            let message = format!("another field has the name `{}`", part.name);
            return Err(Error::new(field.span(), message));
        }
        parts.push(part);
    }
    let (body, ident) = (body(layout, &parts, input, &library)?, &input.ident);
    let (member, types): (Vec<_>, Vec<_>) =
        parts.iter().map(|part| (&part.member, &part.field.ty)).unzip();
    Ok(quote! {
        // SAFETY: the macro has checked that the type is `repr(C)` or `repr(transparent)`; the layout consists of
        // the layouts of its fields. The code below makes the compiler check that these are all fields and that
        // they have these types.
        #[automatically_derived]
        unsafe impl #library::Element for #ident {
            #body
        }
        const _: () = {
            #[allow(dead_code)]
            fn has_these_fields(item: &#ident) {
                let #ident { #(#member: _),* } = item;
                #(let _: *const #types = &raw const item.#member;)*
            }
        };
    })
}

/// Returns the items of the trait implementation.
fn body(
    layout: Repr,
    parts: &[Part<'_>],
    input: &DeriveInput,
    library: &Path,
) -> Result<TokenStream> {
    let (names, members): (Vec<_>, Vec<_>) =
        parts.iter().map(|part| (&part.name, &part.member)).unzip();
    let types: Vec<_> = parts.iter().map(|part| &part.field.ty).collect();
    let dtypes: Vec<_> = parts.iter().map(|part| part.dtype(library)).collect();
    let inner_dtype = dtypes.first();
    match (layout, &types[..]) {
        (Repr::C, _) => Ok(quote! {
            const LAYOUT: #library::elements::ElementLayout = #library::elements::ElementLayout::structure(
                ::core::mem::size_of::<Self>(),
                const {
                    &[#(#library::elements::ElementField::new::<#types>(
                        ::core::mem::offset_of!(Self, #members)
                    )),*]
                },
            );

            fn dtype() -> #library::Dtype {
                let fields = [#(#library::dtype::Field::new(
                    #names,
                    ::core::mem::offset_of!(Self, #members),
                    #dtypes,
                )),*];
                let dtype = #library::Dtype::structure(::core::mem::size_of::<Self>(), fields);
                dtype.expect("a structure whose layout was checked at compile time")
            }
        }),
        (Repr::Transparent, [inner]) => Ok(quote! {
            const LAYOUT: #library::elements::ElementLayout = <#inner as #library::Element>::LAYOUT;

            fn dtype() -> #library::Dtype {
                #inner_dtype
            }
        }),
        (Repr::Transparent, _) => {
            Err(Error::new(input.ident.span(), "a `repr(transparent)` element has one field"))
        }
    }
}

/// Returns the path of the library in the generated code: that of the argument of `#[NAME(crate = "...")]` of the struct,
/// or `default`.
fn library(attributes: &[Attribute], name: &str, default: Path) -> Result<Path> {
    let mut found = default;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(name)) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("expected `crate = \"...\"`"));
            }
            let text: LitStr = meta.value()?.parse()?;
            found = text.parse_with(Path::parse_mod_style)?;
            Ok(())
        })?;
    }
    Ok(found)
}

/// The representation of a type in memory.
#[derive(Clone, Copy)]
enum Repr {
    C,
    Transparent,
}

fn layout(input: &DeriveInput) -> Result<Repr> {
    let mut found = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        for repr in attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)? {
            if repr.path().is_ident("C") {
                found = Some(Repr::C);
            } else if repr.path().is_ident("transparent") {
                found = Some(Repr::Transparent);
            }
        }
    }
    let message =
        "an `Element` is `#[repr(C)]` or `#[repr(transparent)]`: other layouts are not fixed";
    found.ok_or_else(|| Error::new(input.ident.span(), message))
}

/// A field with its name in the dtype.
struct Part<'a> {
    field: &'a Field,
    member: Member,
    name: String,
    /// The dtype, if it is not that of the type.
    dtype: Option<LitStr>,
}

impl<'a> Part<'a> {
    fn new(number: usize, field: &'a Field) -> Result<Self> {
        let member = match &field.ident {
            Some(ident) => Member::Named(ident.clone()),
            None => Member::Unnamed(Index::from(number)),
        };
        let Attributes { name, dtype } = Attributes::of(&field.attrs)?;
        let name = match (name, &field.ident) {
            (Some(name), _) => name,
            (None, Some(ident)) => ident.unraw().to_string(),
            (None, None) => format!("f{number}"),
        };
        Ok(Self { field, member, name, dtype })
    }

    /// Returns the expression that creates its dtype.
    fn dtype(&self, library: &Path) -> TokenStream {
        let ty = &self.field.ty;
        match &self.dtype {
            None => quote!(<#ty as #library::Element>::dtype()),
            Some(text) => quote!({
                let dtype = #library::Dtype::parse(#text).expect(::core::concat!("`", #text, "` is not a dtype"));
                assert!(
                    dtype.size() == ::core::mem::size_of::<#ty>(),
                    "{}",
                    ::core::concat!("the dtype `", #text, "` does not have the size of `", ::core::stringify!(#ty), "`"),
                );
                dtype
            }),
        }
    }
}

/// The arguments of `#[element(name = "...", dtype = "...")]`.
#[derive(Default)]
struct Attributes {
    name: Option<String>,
    dtype: Option<LitStr>,
}

impl Attributes {
    fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("element"))
        {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("dtype") {
                    found.dtype = Some(meta.value()?.parse()?);
                    return Ok(());
                }
                if !meta.path.is_ident("name") {
                    return Err(meta.error("expected `name = \"...\"` or `dtype = \"...\"`"));
                }
                let text: LitStr = meta.value()?.parse()?;
                if text.value().is_empty() {
                    return Err(Error::new(text.span(), "the name of a field is not empty"));
                }
                found.name = Some(text.value());
                Ok(())
            })?;
        }
        Ok(found)
    }
}

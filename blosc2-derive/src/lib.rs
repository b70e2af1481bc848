#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use std::collections::HashSet;

use proc_macro::TokenStream as Tokens;
use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DataStruct, DeriveInput, Error, Field, Index, LitStr, Member, Meta, Result,
    Token,
};

/// Makes a structure an `Element`: an item of chunks and arrays, whose dtype has the names, types and offsets
/// of its fields.
///
/// It has to be `Copy` and `repr(C)`, which may be `packed` or `align`ed too, and each field an `Element`. Fields
/// of a tuple are `f0`, `f1` and so on, as NumPy calls them; `#[element(name = "...")]` gives a field another name.
/// What is padding is written as zeros. A structure of one field may also be `repr(transparent)`, and then is
/// what the field is.
///
/// ```
/// use blosc2::{CParams, Codec, Element};
///
/// #[derive(Debug, Clone, Copy, PartialEq, Element)]
/// #[repr(C)]
/// struct Measurement {
///     sensor: u16,
///     #[element(name = "°C")]
///     celsius: [f32; 2],
///     valid: bool,
/// }
///
/// if cfg!(target_endian = "little") {
///     let dtype = "{'names': ['sensor', '°C', 'valid'], 'formats': ['<u2', ('<f4', (2,)), '?'], \
///                  'offsets': [0, 4, 12], 'itemsize': 16}";
///     assert_eq!(Measurement::dtype().to_string(), dtype);
/// }
/// let items = [Measurement { sensor: 7, celsius: [20.5, 21.0], valid: true }; 100];
/// let chunk = blosc2::compress(&items, &CParams::new().codec(Codec::Lz4))?;
/// assert_eq!(blosc2::decompress::<Measurement>(&chunk)?, items);
/// # Ok::<(), blosc2::Error>(())
/// ```
///
/// # What does not compile
/// Layouts that Rust may choose as it likes:
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// struct Unordered { a: u8, b: u32 }
/// ```
/// Fields that are no items:
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// struct Name { text: &'static str }
/// ```
/// Types of which not all are a value, or which have none:
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(u8)]
/// enum Answer { No, Yes }
/// ```
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// union Either { a: u32, b: f32 }
/// ```
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// struct Nothing {}
/// ```
/// ```compile_fail,E0080
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// struct Empty { none: [u8; 0] }
/// # fn main() { blosc2::compress::<Empty>(&[], &blosc2::CParams::default()); }
/// ```
/// Types with parameters:
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// struct Pair<T> { left: T, right: T }
/// ```
/// Two fields of one name, and names that say nothing:
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// struct Twice { a: u8, #[element(name = "a")] b: u8 }
/// ```
/// ```compile_fail
/// #[derive(Clone, Copy, blosc2::Element)]
/// #[repr(C)]
/// struct Unnamed { #[element(name = "")] a: u8 }
/// ```
/// What cannot be copied:
/// ```compile_fail,E0277
/// #[derive(blosc2::Element)]
/// #[repr(C)]
/// struct Fixed { a: u8 }
/// ```
#[proc_macro_derive(Element, attributes(element))]
pub fn derive_element(input: Tokens) -> Tokens {
    let input = syn::parse_macro_input!(input as DeriveInput);
    element(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn element(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(DataStruct { fields, .. }) = &input.data else {
        return Err(Error::new(input.ident.span(), "only structures can be elements"));
    };
    if !input.generics.params.is_empty() {
        let message = "an element has one dtype, so that it cannot have parameters";
        return Err(Error::new(input.generics.span(), message));
    }
    if fields.is_empty() {
        return Err(Error::new(input.ident.span(), "an element has to have fields"));
    }
    let layout = layout(input)?;
    let mut names = HashSet::new();
    let mut parts = Vec::new();
    for (number, field) in fields.iter().enumerate() {
        let part = Part::new(number, field)?;
        if !names.insert(part.name.clone()) {
            let message = format!("there is a field with the name `{}` already", part.name);
            return Err(Error::new(field.span(), message));
        }
        parts.push(part);
    }
    let (body, ident) = (body(layout, &parts, input)?, &input.ident);
    let (member, types): (Vec<_>, Vec<_>) =
        parts.iter().map(|part| (&part.member, &part.field.ty)).unzip();
    Ok(quote! {
        // SAFETY: the macro has seen that the type is `repr(C)` or `repr(transparent)`; the layout consists of
        // those of its fields, which are all that there are and of these types, as the compiler sees below.
        #[automatically_derived]
        unsafe impl ::blosc2::Element for #ident {
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

/// What the trait wants.
fn body(layout: Repr, parts: &[Part<'_>], input: &DeriveInput) -> Result<TokenStream> {
    let (names, members): (Vec<_>, Vec<_>) =
        parts.iter().map(|part| (&part.name, &part.member)).unzip();
    let types: Vec<_> = parts.iter().map(|part| &part.field.ty).collect();
    match (layout, &types[..]) {
        (Repr::C, _) => Ok(quote! {
            const LAYOUT: ::blosc2::Layout = ::blosc2::Layout::structure(
                ::core::mem::size_of::<Self>(),
                const {
                    &[#(::blosc2::LayoutField::new::<#types>(
                        ::core::mem::offset_of!(Self, #members)
                    )),*]
                },
            );

            fn dtype() -> ::blosc2::Dtype {
                let fields = [#(::blosc2::dtype::Field::new(
                    #names,
                    ::core::mem::offset_of!(Self, #members),
                    <#types as ::blosc2::Element>::dtype(),
                )),*];
                let dtype = ::blosc2::Dtype::structure(::core::mem::size_of::<Self>(), fields);
                dtype.expect("a structure that its layout has been checked for")
            }
        }),
        (Repr::Transparent, [inner]) => Ok(quote! {
            const LAYOUT: ::blosc2::Layout = <#inner as ::blosc2::Element>::LAYOUT;

            fn dtype() -> ::blosc2::Dtype {
                <#inner as ::blosc2::Element>::dtype()
            }
        }),
        (Repr::Transparent, _) => {
            Err(Error::new(input.ident.span(), "a `repr(transparent)` element has one field"))
        }
    }
}

/// How a type lies in memory.
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
        "an element has to be `#[repr(C)]`, so that its fields lie where they are declared";
    found.ok_or_else(|| Error::new(input.ident.span(), message))
}

/// A field with its name in the dtype.
struct Part<'a> {
    field: &'a Field,
    member: Member,
    name: String,
}

impl<'a> Part<'a> {
    fn new(number: usize, field: &'a Field) -> Result<Self> {
        let member = match &field.ident {
            Some(ident) => Member::Named(ident.clone()),
            None => Member::Unnamed(Index::from(number)),
        };
        let name = match (rename(&field.attrs)?, &field.ident) {
            (Some(name), _) => name,
            (None, Some(ident)) => ident.unraw().to_string(),
            (None, None) => format!("f{number}"),
        };
        Ok(Self { field, member, name })
    }
}

/// What `#[element(name = "...")]` says.
fn rename(attributes: &[Attribute]) -> Result<Option<String>> {
    let mut name = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("element")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("name") {
                return Err(meta.error("expected `name = \"...\"`"));
            }
            let text: LitStr = meta.value()?.parse()?;
            if text.value().is_empty() {
                return Err(Error::new(text.span(), "a field has to have a name"));
            }
            name = Some(text.value());
            Ok(())
        })?;
    }
    Ok(name)
}

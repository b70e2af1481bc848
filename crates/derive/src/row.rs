//! The derive macro `Row`.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DataStruct, DeriveInput, Error, Expr, Field, Fields, LitStr, Path, Result};

/// Returns the implementation of `Row`. `library` is the path of `blosc2-store` in the generated code.
pub(crate) fn row(input: &DeriveInput, library: &Path) -> Result<TokenStream> {
    let Data::Struct(DataStruct { fields: Fields::Named(fields), .. }) = &input.data else {
        return Err(Error::new(input.ident.span(), "a `Row` is a struct with named fields"));
    };
    if fields.named.is_empty() {
        return Err(Error::new(input.ident.span(), "a `Row` has at least one field"));
    }
    if !input.generics.params.is_empty() {
        let message = "a `Row` has one schema and cannot have generic parameters";
        return Err(Error::new(input.generics.span(), message));
    }
    let mut known = HashSet::new();
    let (mut names, mut specs) = (Vec::new(), Vec::new());
    for field in &fields.named {
        let Options { name, spec } = options(field)?;
        if !known.insert(name.clone()) {
            return Err(Error::new(field.span(), format!("another field has the name `{name}`")));
        }
        let ty = &field.ty;
        names.push(name);
        specs.push(match spec {
            Some(spec) => quote!(#spec),
            None => quote!(<#ty as #library::Cell>::spec()),
        });
    }
    let ident = &input.ident;
    let (members, types): (Vec<_>, Vec<_>) =
        fields.named.iter().map(|field| (&field.ident, &field.ty)).unzip();
    let columns: Vec<_> = (0..names.len()).map(|number| format_ident!("column{number}")).collect();
    Ok(quote! {
        #[automatically_derived]
        impl #library::Row for #ident {
            fn schema() -> #library::Schema {
                #library::Schema::new()#(.column(#names, #specs))*
            }

            fn columns(
                rows: &[Self],
            ) -> ::std::vec::Vec<(&'static str, #library::Data<'static>)> {
                ::std::vec![#((
                    #names,
                    #library::Data::cells::<#types>(rows.iter().map(|row| &row.#members)),
                )),*]
            }

            fn read(
                table: &#library::CTable,
                rows: #library::Rows,
            ) -> #library::blosc2::Result<::std::vec::Vec<Self>> {
                #(let mut #columns = table.cells::<#types>(#names, rows.clone())?.into_iter();)*
                let mut found = ::std::vec::Vec::new();
                while let (#(::core::option::Option::Some(#columns),)*) = (#(#columns.next(),)*) {
                    found.push(Self { #(#members: #columns),* });
                }
                ::core::result::Result::Ok(found)
            }
        }
    })
}

/// The arguments of `#[row(name = "...", spec = ...)]`.
struct Options {
    name: String,
    spec: Option<Expr>,
}

fn options(field: &Field) -> Result<Options> {
    let name = field.ident.as_ref().map_or_else(String::new, |ident| ident.unraw().to_string());
    let mut found = Options { name, spec: None };
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("row")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("spec") {
                found.spec = Some(meta.value()?.parse()?);
                return Ok(());
            }
            if !meta.path.is_ident("name") {
                return Err(meta.error("expected `name = \"...\"` or `spec = ...`"));
            }
            let text: LitStr = meta.value()?.parse()?;
            found.name = text.value();
            Ok(())
        })?;
    }
    Ok(found)
}

//! The arguments of `#[preemptible(…)]`.

use proc_macro2::Span;
use quote::format_ident;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitInt, Path, PathSegment, Token};

/// The options, or their defaults.
pub(crate) struct Options {
    /// Number of rounds per checkpoint; at least 1.
    pub(crate) every: u32,
    /// The path of the module with `checkpoint`.
    pub(crate) library: Path,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let (mut every, mut library) = (None, None);
        while !input.is_empty() {
            let name = input.call(Ident::parse_any)?;
            input.parse::<Token![=]>()?;
            let new = match name.to_string().as_str() {
                "every" => every.replace(rounds(input)?).is_none(),
                "crate" => library
                    .replace(input.call(Path::parse_mod_style)?)
                    .is_none(),
                _ => {
                    let message =
                        format!("unknown option `{name}`: expected `every = N` or `crate = path`");
                    return Err(Error::new(name.span(), message));
                }
            };
            if !new {
                return Err(Error::new(name.span(), format!("`{name}` is given twice")));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(Options {
            every: every.unwrap_or(1),
            library: library.unwrap_or_else(headway),
        })
    }
}

fn rounds(input: ParseStream<'_>) -> syn::Result<u32> {
    let literal = input.parse::<LitInt>()?;
    match literal.base10_parse() {
        Ok(0) | Err(_) => Err(Error::new(
            literal.span(),
            "`every` is a number of rounds, from 1 (each meets a checkpoint) to 4294967295",
        )),
        Ok(rounds) => Ok(rounds),
    }
}

/// The default, `::headway`.
fn headway() -> Path {
    Path {
        leading_colon: Some(Token![::](Span::call_site())),
        segments: Punctuated::from_iter([PathSegment::from(format_ident!("headway"))]),
    }
}

//! `#[long]`: the body of a handler inside `Call::long`.

use proc_macro2::TokenStream as Tokens;
use quote::{ToTokens, quote};
use syn::{Error, FnArg, Ident, ItemFn, Pat, PatIdent, ReturnType, Signature, Type};

/// The function with its body in a long part; or an error plus the unchanged item, so that its callers still compile.
pub(crate) fn wrapped(options: &Tokens, item: &Tokens) -> Tokens {
    expand(options, item).unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote!(#error #item)
    })
}

fn expand(options: &Tokens, item: &Tokens) -> syn::Result<Tokens> {
    if !options.is_empty() {
        return Err(Error::new_spanned(options, "#[long] takes no options"));
    }
    let mut function = syn::parse2::<ItemFn>(item.clone())
        .map_err(|_| Error::new_spanned(item, "#[long] goes on a function with a body"))?;
    refuse(&function.sig)?;
    let call = call_of(&function.sig)?.clone();
    let (name, body, result) = (&call.ident, &function.block, result_of(&function.sig));
    immutable(&mut function.sig, name);
    function.block = syn::parse2(quote!({ #name.long(move |#call| #result #body) }))?;
    Ok(function.into_token_stream())
}

fn refuse(signature: &Signature) -> syn::Result<()> {
    if let Some(constness) = &signature.constness {
        let message = "#[long] cannot go on a `const fn`, which handles no request";
        return Err(Error::new_spanned(constness, message));
    }
    if let Some(asyncness) = &signature.asyncness {
        let message = "#[long] cannot go on an `async fn`: it only makes a future; a handler is a function that is not `async`";
        return Err(Error::new_spanned(asyncness, message));
    }
    Ok(())
}

/// The parameter that is the request.
fn call_of(signature: &Signature) -> syn::Result<&PatIdent> {
    let calls = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) if is_call(&typed.ty) => Some(&*typed.pat),
        _ => None,
    });
    match calls.collect::<Vec<_>>()[..] {
        [Pat::Ident(name)] => Ok(name),
        [pattern] => Err(Error::new_spanned(
            pattern,
            "#[long] needs a name for the call: write `call: &mut Call<'_>`",
        )),
        _ => Err(Error::new_spanned(
            &signature.inputs,
            "#[long] goes on a function with one parameter `call: &mut Call<'_>`; elsewhere write `call.long(|call| …)`",
        )),
    }
}

/// Binds the call without `mut`: only the closure's parameter of the same name needs it.
fn immutable(signature: &mut Signature, call: &Ident) {
    for input in &mut signature.inputs {
        if let FnArg::Typed(typed) = input
            && let Pat::Ident(name) = &mut *typed.pat
            && name.ident == *call
        {
            name.mutability = None;
        }
    }
}

/// Whether the type is `&mut Call<…>`, under any path.
fn is_call(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else {
        return false;
    };
    let Type::Path(path) = &*reference.elem else {
        return false;
    };
    let last = path.path.segments.last();
    reference.mutability.is_some() && last.is_some_and(|segment| segment.ident == "Call")
}

/// The closure's return type; `None` where the compiler must infer it.
fn result_of(signature: &Signature) -> Tokens {
    match &signature.output {
        ReturnType::Type(_, ty) if !matches!(**ty, Type::ImplTrait(_)) => quote!(-> #ty),
        _ => Tokens::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_stands_in_a_long_part() {
        for (written, expected) in [
            (
                "fn scan(call: &mut Call<'_>) { call.fail() }",
                "fn scan(call: &mut Call<'_>) { call.long(move |call| { call.fail() }) }",
            ),
            (
                "pub fn find(&self, n: u8, mut c: &mut runtime::Call) -> Option<u8> { None }",
                "pub fn find(&self, n: u8, c: &mut runtime::Call) -> Option<u8> { c.long(move |mut c| -> Option<u8> { None }) }",
            ),
            (
                "fn all(call: &mut Call) -> impl Sized { 1 }",
                "fn all(call: &mut Call) -> impl Sized { call.long(move |call| { 1 }) }",
            ),
        ] {
            let wrapped = wrapped(&Tokens::new(), &written.parse().unwrap());
            let expected = syn::parse_str::<ItemFn>(expected).unwrap();
            assert_eq!(wrapped.to_string(), quote!(#expected).to_string());
        }
    }

    #[test]
    fn what_handles_no_request_is_refused_with_the_remedy() {
        for (options, item, remedy) in [
            ("", "fn f(n: u64) {}", "one parameter `call: &mut Call<'_>`"),
            ("", "fn f(call: &Call<'_>) {}", "one parameter"),
            ("", "fn f(a: &mut Call, b: &mut Call) {}", "one parameter"),
            ("", "fn f(_: &mut Call<'_>) {}", "a name for the call"),
            ("", "fn f(call: &mut Call<'_>);", "a function with a body"),
            ("", "impl S { fn f() {} }", "a function with a body"),
            ("", "async fn f(call: &mut Call) {}", "that is not `async`"),
            ("", "const fn f(call: &mut Call) {}", "`const fn`"),
            ("always", "fn f(call: &mut Call) {}", "no options"),
        ] {
            let (options, item): (Tokens, Tokens) =
                (options.parse().unwrap(), item.parse().unwrap());
            let message = expand(&options, &item).unwrap_err().to_string();
            assert!(message.contains(remedy), "{item}: {message}");
            let text = wrapped(&options, &item).to_string();
            assert!(text.ends_with(&item.to_string()), "{text}");
        }
    }
}

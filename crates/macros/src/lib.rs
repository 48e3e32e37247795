//! Attributes of handlers: [`macro@preemptible`], for code that the compiler pass does not see, and [`macro@long`], for whole handlers that are long.

mod long;
mod options;
mod place;
mod recursion;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{quote, quote_spanned};
use syn::{Error, Item, ItemFn, Signature, Stmt};

use options::Options;

/// Makes a function preemptible: when asked to, it yields at its entry and in every round of its loops.
///
/// For services that are built where no compiler pass can be loaded. A `checkpoint()`, a load and a branch that is not taken, is placed
///
/// - at the entry of the function, so that recursion is covered;
/// - at the head of the body of each `loop`, `while`, `while let` and `for` in it, labelled or not, nested or in closures: whichever way a
///   round ends, by its last statement or by `continue`, the next one meets it.
///
/// ```
/// # extern crate headway_fiber as headway; // Where `headway::preemptible` names this macro.
/// # use headway_macros::preemptible;
/// #[preemptible]
/// fn scan(values: &[u64], wanted: u64) -> usize {
///     let mut found = 0;
///     for value in values {
///         found += usize::from(*value == wanted);
///     }
///     found
/// }
/// # assert_eq!(scan(&[1, 2, 1], 1), 2);
/// ```
///
/// # Options
///
/// `#[preemptible(every = 64)]` makes one round in 64 meet it, for loops whose rounds are short. All loops of the function count
/// down one local variable, so loops within loops do not multiply; a closure has its own, and its first round always meets one.
///
/// `#[preemptible(crate = path)]` is where `checkpoint` is found instead of `::headway`, such as `headway_fiber`.
///
/// # What it does not see
///
/// What the function calls; iterator chains (`for_each`, `sum`), which loop in code of others; loops that a macro makes; functions
/// and other items written inside the function, which take the attribute themselves; `async` blocks and closures. A vectorised loop becomes one that
/// is not. The compiler pass knows none of these limits, and costs less: docs/preemption.md.
///
/// Where it sees no loop, nor a call of the function itself, the compiler warns (of a deprecated `preemptible_without_a_loop`): a single checkpoint at the
/// entry cannot interrupt a long computation. `#[allow(deprecated)]` on the function silences the warning.
///
/// # Where it may go on
///
/// As with every probe, the function resumes in the thread it began in. An `unsafe` promise of the fiber's creator (`Fiber::migratable`,
/// `Builder::plain_fibers`) allows other threads. The macro's own code fulfils that promise: the count is a variable on the fiber's stack, and each
/// checkpoint reads the present thread's flag. The *function* must fulfil it too: across a round it holds no reference into a thread-local and no guard of a
/// thread's lock. In either case other requests run meanwhile. So a lock that they may need is held inside a `NoPreempt` section, or is a `FiberMutex`.
///
/// # Errors
///
/// The compiler refuses it on everything but a function with a body, and on
///
/// ```compile_fail
/// # extern crate headway_fiber as headway;
/// # use headway_macros::preemptible;
/// #[preemptible]
/// const fn evaluated_by_the_compiler() {}
/// ```
///
/// ```compile_fail
/// # extern crate headway_fiber as headway;
/// # use headway_macros::preemptible;
/// #[preemptible]
/// async fn polled_by_an_executor() {}
/// ```
#[proc_macro_attribute]
pub fn preemptible(options: TokenStream, item: TokenStream) -> TokenStream {
    marked(options.into(), &item.into()).into()
}

/// Marks a whole handler as long: its body is a long part of the request, as by `Call::long`.
///
/// A server with feedback (`Builder::by_feedback`, `headway serve --feedback`) interrupts requests in their long parts only. `call.long(|call| …)` marks a part
/// of a handler; the attribute marks a whole function. A request that runs no such function is run to its end.
///
/// The crate `headway`, which exports the attribute, shows one in a server.
///
/// The function has exactly one named parameter `&mut Call<'_>`, beside any others, `self` included. `return` and `?` leave the function as usual; a panic ends
/// the long part with the request. Long parts nest.
///
/// It places no probes. Probes come from [`macro@preemptible`] on the same function, in either order, from `checkpoint()`, or from the compiler pass.
///
/// # Errors
///
/// The compiler refuses it on a function without a call:
///
/// ```compile_fail
/// # use headway_macros::long;
/// #[long]
/// fn of_no_request(entries: u64) {}
/// ```
///
/// and on a function whose result borrows from the call: write `call.long(|call| …)` inside it.
#[proc_macro_attribute]
pub fn long(options: TokenStream, item: TokenStream) -> TokenStream {
    long::wrapped(&options.into(), &item.into()).into()
}

/// The function with checkpoints; or an error plus the unchanged item, so that its callers still compile.
fn marked(options: Tokens, item: &Tokens) -> Tokens {
    expand(options, item).unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote!(#error #item)
    })
}

fn expand(options: Tokens, item: &Tokens) -> syn::Result<Tokens> {
    let options = syn::parse2::<Options>(options)?;
    let mut function = syn::parse2::<ItemFn>(item.clone()).map_err(|_| no_function(item))?;
    refuse(&function.sig)?;
    let calls_itself = recursion::calls_itself(&function);
    let has_loop = place::checkpoints(&mut function.block, &options);
    if !has_loop && !calls_itself {
        warn(&mut function);
    }
    Ok(quote!(#function))
}

/// Makes the compiler warn of a function without loops. On a stable compiler a macro cannot warn by itself. So it uses a deprecated item, at the
/// position of the function's name.
fn warn(function: &mut ItemFn) {
    let name = &function.sig.ident;
    let note = format!(
        "#[preemptible] sees no loop in `{name}`, nor a call of itself, so it places one checkpoint, where the function begins: mark the \
         function that has the loop, write an iterator chain as a `for` loop, or call checkpoint() where the time goes; \
         #[allow(deprecated)] on the function says that one is enough"
    );
    let warning = quote_spanned!(name.span()=>
        const _: () = {
            #[deprecated(note = #note)]
            const fn preemptible_without_a_loop() {}
            preemptible_without_a_loop()
        };
    );
    function
        .block
        .stmts
        .insert(0, Stmt::Item(Item::Verbatim(warning)));
}

fn no_function(item: &Tokens) -> Error {
    let message =
        "#[preemptible] goes on a function with a body; mark each function or method by itself";
    Error::new_spanned(item, message)
}

fn refuse(signature: &Signature) -> syn::Result<()> {
    if let Some(constness) = &signature.constness {
        let message = "#[preemptible] cannot go on a `const fn`: the compiler may evaluate it, and cannot yield; \
                       move its loop into a function that is not `const`";
        return Err(Error::new_spanned(constness, message));
    }
    if let Some(asyncness) = &signature.asyncness {
        let message = "#[preemptible] cannot go on an `async fn`: it only makes a future, which yields at `.await`; \
                       move its loop into a function that is not `async`";
        return Err(Error::new_spanned(asyncness, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reason for the refusal.
    fn refused(options: &str, item: &str) -> String {
        let error = expand(options.parse().unwrap(), &item.parse().unwrap());
        error.expect_err("it is accepted").to_string()
    }

    #[test]
    fn what_cannot_yield_is_refused_with_the_remedy() {
        for (item, remedy) in [
            (
                "pub const fn f() { loop {} }",
                "into a function that is not `const`",
            ),
            (
                "pub async fn f() { loop {} }",
                "into a function that is not `async`",
            ),
            ("impl S { fn f() {} }", "each function or method by itself"),
            ("fn f(&self);", "a function with a body"),
        ] {
            let message = refused("", item);
            assert!(message.contains(remedy), "{item}: {message}");
        }
    }

    #[test]
    fn unknown_and_senseless_options_are_refused() {
        for (options, reason) in [
            (
                "each = 64",
                "unknown option `each`: expected `every = N` or `crate = path`",
            ),
            ("every = 0", "from 1"),
            ("every = 5000000000", "to 4294967295"),
            ("every = 2, every = 3", "`every` is given twice"),
            ("every: 2", "expected `=`"),
        ] {
            let message = refused(options, "fn f() {}");
            assert!(message.contains(reason), "{options}: {message}");
        }
    }

    #[test]
    fn what_is_refused_stays_as_it_was_beside_the_error() {
        let item = quote!(
            const fn f() {
                while true {}
            }
        );
        let text = marked(Tokens::new(), &item).to_string();
        assert!(text.contains("compile_error"), "{text}");
        assert!(text.ends_with(&item.to_string()), "{text}");
    }

    #[test]
    fn statements_follow_the_items_that_a_body_begins_with() {
        let marked = marked(
            quote!(every = 4),
            &quote!(
                fn f() {
                    use a::b;
                    loop {
                        b()
                    }
                }
            ),
        );
        let expected = quote!(
            fn f() {
                use a::b;
                ::headway::checkpoint();
                let mut rounds = ::headway::CheckpointEvery::<4u32>::new();
                loop {
                    rounds.checkpoint();
                    b()
                }
            }
        );
        assert_eq!(marked.to_string(), expected.to_string());
    }

    #[test]
    fn without_a_loop_nothing_is_counted() {
        let marked = marked(
            quote!(every = 4),
            &quote!(
                fn f() -> u8 {
                    1
                }
            ),
        );
        let expected = quote!(
            fn f() -> u8 {
                ::headway::checkpoint();
                1
            }
        );
        let (marked, expected) = (marked.to_string(), expected.to_string());
        assert!(
            marked.ends_with(expected.split_once('{').unwrap().1),
            "{marked}"
        );
    }

    /// Whether the compiler will warn.
    fn warns(item: &str) -> bool {
        let marked = marked(Tokens::new(), &item.parse().unwrap()).to_string();
        marked.contains("sees no loop in `f`")
    }

    #[test]
    fn a_function_without_a_loop_is_warned_of() {
        for without in [
            "fn f(v: &[u8]) -> u8 { v.iter().sum() }",
            "fn f() { fn g() { loop {} } g() }",
            "fn f() -> impl Future { async { loop {} } }",
            "fn f() { g::h() }",
        ] {
            assert!(warns(without), "{without}");
        }
        for with in [
            "fn f() { loop {} }",
            "fn f() { let g = || while true {}; g() }",
            "fn f(n: u64) -> u64 { if n < 2 { n } else { f(n - 1) + f(n - 2) } }",
            "fn f(&self) { self.next().f() }",
            "fn f() { Self::f() }",
        ] {
            assert!(!warns(with), "{with}");
        }
    }
}

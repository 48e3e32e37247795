//! Whether a function calls itself: each call then passes the checkpoint at its entry.

use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ExprCall, ExprMethodCall, Ident, ItemFn};

/// Whether the function's body calls a function of the same name. A macro cannot resolve which function it is.
pub(crate) fn calls_itself(function: &ItemFn) -> bool {
    let mut calls = Calls {
        name: &function.sig.ident,
        found: false,
    };
    calls.visit_block_mut(&mut function.block.clone());
    calls.found
}

struct Calls<'a> {
    name: &'a Ident,
    found: bool,
}

impl VisitMut for Calls<'_> {
    fn visit_expr_call_mut(&mut self, call: &mut ExprCall) {
        if let Expr::Path(path) = &*call.func {
            let last = path.path.segments.last();
            self.found |= last.is_some_and(|segment| segment.ident == *self.name);
        }
        visit_mut::visit_expr_call_mut(self, call);
    }

    fn visit_expr_method_call_mut(&mut self, call: &mut ExprMethodCall) {
        self.found |= call.method == *self.name;
        visit_mut::visit_expr_method_call_mut(self, call);
    }
}

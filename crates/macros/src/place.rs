//! Places the checkpoints.

use proc_macro2::Span;
use quote::quote_spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Block, Expr, ExprAsync, ExprClosure, ExprConst, ExprForLoop, ExprLoop, ExprRepeat, ExprWhile,
    GenericArgument, Item, Pat, Stmt, Type, parse_quote_spanned,
};

use crate::options::Options;

/// Places them at the function's entry and in each round of its loops. Returns whether it has any, closures' included.
pub(crate) fn checkpoints(body: &mut Block, options: &Options) -> bool {
    let mut places = Places {
        options,
        has_loop: false,
        any_loop: false,
    };
    places.visit_block_mut(body);
    if places.has_loop {
        prepend(body, places.counter(First::AfterAll));
    }
    let library = &options.library;
    let span = Span::mixed_site();
    prepend(
        body,
        Some(parse_quote_spanned!(span=> #library::checkpoint();)),
    );
    places.any_loop
}

/// The code of one function or closure.
struct Places<'a> {
    options: &'a Options,
    has_loop: bool,
    /// Whether it has a loop, its own or a closure's.
    any_loop: bool,
}

/// The first counted round with a checkpoint.
#[derive(Clone, Copy)]
enum First {
    /// After a full interval of rounds, since a checkpoint precedes the loop.
    AfterAll,
    /// The first round.
    Now,
}

impl Places<'_> {
    /// The variable that counts rounds, where they are counted. It is hygienic: the function's code cannot name it.
    fn counter(&self, first: First) -> Option<Stmt> {
        let (library, every) = (&self.options.library, self.options.every);
        let span = Span::mixed_site();
        let new = match first {
            First::AfterAll => quote_spanned!(span=> new),
            First::Now => quote_spanned!(span=> due),
        };
        (every > 1).then(|| {
            parse_quote_spanned!(span=> let mut rounds = #library::CheckpointEvery::<#every>::#new();)
        })
    }

    fn mark(&mut self, body: &mut Block) {
        self.has_loop = true;
        self.any_loop = true;
        let library = &self.options.library;
        let span = Span::mixed_site();
        let mark = match self.options.every {
            1 => parse_quote_spanned!(span=> #library::checkpoint();),
            _ => parse_quote_spanned!(span=> rounds.checkpoint();),
        };
        prepend(body, Some(mark));
    }
}

/// The position after a block's leading items, which stay before the statements.
fn prepend(block: &mut Block, statement: Option<Stmt>) {
    let place = block
        .stmts
        .iter()
        .take_while(|statement: &&Stmt| matches!(statement, Stmt::Item(_)))
        .count();
    block.stmts.splice(place..place, statement);
}

impl VisitMut for Places<'_> {
    fn visit_expr_loop_mut(&mut self, found: &mut ExprLoop) {
        visit_mut::visit_expr_loop_mut(self, found);
        self.mark(&mut found.body);
    }

    fn visit_expr_while_mut(&mut self, found: &mut ExprWhile) {
        visit_mut::visit_expr_while_mut(self, found);
        self.mark(&mut found.body);
    }

    fn visit_expr_for_loop_mut(&mut self, found: &mut ExprForLoop) {
        visit_mut::visit_expr_for_loop_mut(self, found);
        self.mark(&mut found.body);
    }

    /// A closure may outlive the call or run in several threads. So it has a counter of its own, which restarts at each call.
    fn visit_expr_closure_mut(&mut self, found: &mut ExprClosure) {
        if found.asyncness.is_some() || found.constness.is_some() {
            return;
        }
        let mut inside = Places {
            options: self.options,
            has_loop: false,
            any_loop: false,
        };
        inside.visit_expr_mut(&mut found.body);
        self.any_loop |= inside.any_loop;
        if inside.has_loop
            && let Some(counter) = inside.counter(First::Now)
        {
            let body = &found.body;
            let span = Span::mixed_site();
            // A closure with a return type has a block as its body, and the variable goes into that block.
            *found.body = match &**body {
                Expr::Block(block) if block.attrs.is_empty() && block.label.is_none() => {
                    let mut block = block.clone();
                    prepend(&mut block.block, Some(counter));
                    Expr::Block(block)
                }
                _ => parse_quote_spanned!(span=> { #counter #body }),
            };
        }
    }

    // Code that this function does not run itself: futures, items, and constants that the compiler evaluates.
    fn visit_expr_async_mut(&mut self, _: &mut ExprAsync) {}
    fn visit_item_mut(&mut self, _: &mut Item) {}
    fn visit_expr_const_mut(&mut self, _: &mut ExprConst) {}
    fn visit_type_mut(&mut self, _: &mut Type) {}
    fn visit_pat_mut(&mut self, _: &mut Pat) {}
    fn visit_generic_argument_mut(&mut self, _: &mut GenericArgument) {}

    fn visit_expr_repeat_mut(&mut self, found: &mut ExprRepeat) {
        self.visit_expr_mut(&mut found.expr); // Its length is a constant.
    }
}

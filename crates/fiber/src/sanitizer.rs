//! What the address sanitizer or the thread sanitizer is told of fibers; nothing in a build without one.
//!
//! Neither sees a switch of stacks by itself. The address sanitizer keeps the bounds of the stack that runs (it cleans up above a panic by them)
//! and looks for leaks from the roots it knows; the thread sanitizer keeps a clock and a call stack for what it takes for a thread.
//! `make asan` and `make tsan` build with `--cfg headway_asan` and `--cfg headway_tsan`.

#[cfg(headway_asan)]
pub(crate) use address::Shadow;
#[cfg(not(any(headway_asan, headway_tsan)))]
pub(crate) use none::Shadow;
#[cfg(headway_tsan)]
pub(crate) use thread::Shadow;

#[cfg(not(any(headway_asan, headway_tsan)))]
mod none {
    use std::ops::Range;

    /// What a sanitizer knows of a fiber.
    pub(crate) struct Shadow;

    impl Shadow {
        /// A new fiber, on that stack.
        #[inline(always)]
        pub(crate) fn new(_: Range<usize>) -> Shadow {
            Shadow
        }

        /// Runs the fiber by `enter`, until it leaves.
        #[inline(always)]
        pub(crate) fn running<R>(&self, enter: impl FnOnce() -> R) -> R {
            enter()
        }

        /// The fiber's first words, of a job or after it was left: it runs.
        #[inline(always)]
        pub(crate) fn arrived(&self) {}

        /// The fiber's last words before it is left, or its job is done.
        #[inline(always)]
        pub(crate) fn departing(&self) {}

        /// Whether the fiber can be left: it is not about to be left already, as a signal may find it.
        #[inline(always)]
        pub(crate) fn may_leave(&self) -> bool {
            true
        }

        /// The fiber is over, not suspended, and its stack free for another.
        #[inline(always)]
        pub(crate) fn close(&self) {}
    }
}

#[cfg(headway_asan)]
mod address {
    #![expect(unsafe_code, reason = "calls of the sanitizer's runtime")]

    use std::cell::Cell;
    use std::ffi::c_void;
    use std::ops::Range;
    use std::ptr;

    // LLVM's compiler-rt: sanitizer/common_interface_defs.h, asan_interface.h, lsan_interface.h.
    unsafe extern "C" {
        fn __sanitizer_start_switch_fiber(save: *mut FakeStack, bottom: *const c_void, size: usize);
        fn __sanitizer_finish_switch_fiber(
            save: FakeStack,
            bottom: *mut *const c_void,
            size: *mut usize,
        );
        fn __asan_unpoison_memory_region(address: *const c_void, size: usize);
        fn __lsan_register_root_region(address: *const c_void, size: usize);
        fn __lsan_unregister_root_region(address: *const c_void, size: usize);
    }

    /// Where the sanitizer keeps frames whose use after their return it looks for (`detect_stack_use_after_return`).
    type FakeStack = *mut c_void;

    /// Bounds of a stack.
    #[derive(Clone, Copy)]
    struct Bounds {
        bottom: *const c_void,
        size: usize,
    }

    impl Bounds {
        const NONE: Bounds = Bounds {
            bottom: ptr::null(),
            size: 0,
        };

        /// The code that runs goes over to this stack, for the time being or (without `save`) for ever.
        #[inline(always)]
        fn begin_switch(self, save: Option<&Cell<FakeStack>>) {
            let save = save.map_or(ptr::null_mut(), Cell::as_ptr);
            // SAFETY: a place for a pointer, or none; bounds of a stack.
            unsafe { __sanitizer_start_switch_fiber(save, self.bottom, self.size) };
        }

        /// It has gone over; returns the bounds of the stack it was on before.
        #[inline(always)]
        fn end_switch(saved: FakeStack) -> Bounds {
            let mut from = Bounds::NONE;
            // SAFETY: what the sanitizer saved when this stack was left, or null for a new one.
            unsafe {
                __sanitizer_finish_switch_fiber(saved, &raw mut from.bottom, &raw mut from.size)
            };
            from
        }
    }

    /// What the sanitizer knows of a fiber.
    pub(crate) struct Shadow {
        stack: Bounds,
        /// The stack of who runs the fiber.
        outer: Cell<Bounds>,
        /// The fiber's own, while it is not running.
        fake_stack: Cell<FakeStack>,
        /// It has not said that it arrived, or has that it departs.
        leaving: Cell<bool>,
    }

    impl Shadow {
        pub(crate) fn new(stack: Range<usize>) -> Shadow {
            let stack = Bounds {
                bottom: stack.start as *const c_void,
                size: stack.len(),
            };
            // What a fiber's frames own is no leak, whether it will go on or was given up.
            // SAFETY: readable memory, until `close`.
            unsafe { __lsan_register_root_region(stack.bottom, stack.size) };
            Shadow {
                stack,
                outer: Cell::new(Bounds::NONE),
                fake_stack: Cell::new(ptr::null_mut()),
                leaving: Cell::new(true),
            }
        }

        #[inline(always)]
        pub(crate) fn running<R>(&self, enter: impl FnOnce() -> R) -> R {
            let fake_stack = Cell::new(ptr::null_mut());
            self.stack.begin_switch(Some(&fake_stack));
            let result = enter();
            Bounds::end_switch(fake_stack.get());
            result
        }

        #[inline(always)]
        pub(crate) fn arrived(&self) {
            let fake_stack = self.fake_stack.replace(ptr::null_mut());
            self.outer.set(Bounds::end_switch(fake_stack));
            self.leaving.set(false);
        }

        #[inline(always)]
        pub(crate) fn departing(&self) {
            self.leaving.set(true);
            self.outer.get().begin_switch(Some(&self.fake_stack));
        }

        #[inline(always)]
        pub(crate) fn may_leave(&self) -> bool {
            !self.leaving.get()
        }

        pub(crate) fn close(&self) {
            // As if the fiber ran once more and ended: so its fake stack is freed.
            let fake_stack = Cell::new(ptr::null_mut());
            self.stack.begin_switch(Some(&fake_stack));
            let here = Bounds::end_switch(self.fake_stack.replace(ptr::null_mut()));
            here.begin_switch(None);
            Bounds::end_switch(fake_stack.get());
            // SAFETY: registered by `new`; what was poisoned there were frames, which are gone.
            unsafe {
                __lsan_unregister_root_region(self.stack.bottom, self.stack.size);
                __asan_unpoison_memory_region(self.stack.bottom, self.stack.size);
            }
        }
    }
}

#[cfg(headway_tsan)]
mod thread {
    #![expect(unsafe_code, reason = "calls of the sanitizer's runtime")]

    use std::ffi::{c_uint, c_void};
    use std::ops::Range;

    // LLVM's compiler-rt: sanitizer/tsan_interface.h.
    unsafe extern "C" {
        fn __tsan_get_current_fiber() -> *mut c_void;
        fn __tsan_create_fiber(flags: c_uint) -> *mut c_void;
        fn __tsan_destroy_fiber(fiber: *mut c_void);
        fn __tsan_switch_to_fiber(fiber: *mut c_void, flags: c_uint);
    }

    /// What happened before a switch happened before what comes after it: it is one thread that does both.
    const SYNCHRONISES: c_uint = 0;

    /// What the sanitizer knows of a fiber.
    pub(crate) struct Shadow {
        fiber: *mut c_void,
    }

    impl Shadow {
        pub(crate) fn new(_: Range<usize>) -> Shadow {
            Shadow {
                // SAFETY: has no conditions.
                fiber: unsafe { __tsan_create_fiber(0) },
            }
        }

        /// Both switches are told on this side, in one frame: what is entered in between is left in between, so that the sanitizer's
        /// call stacks stay balanced however the switches themselves were inlined.
        #[inline(always)]
        pub(crate) fn running<R>(&self, enter: impl FnOnce() -> R) -> R {
            // SAFETY: the fiber lives, and runs nowhere else.
            let outer = unsafe {
                let outer = __tsan_get_current_fiber();
                __tsan_switch_to_fiber(self.fiber, SYNCHRONISES);
                outer
            };
            let result = enter();
            // SAFETY: it waits here.
            unsafe { __tsan_switch_to_fiber(outer, SYNCHRONISES) };
            result
        }

        #[inline(always)]
        pub(crate) fn arrived(&self) {}

        #[inline(always)]
        pub(crate) fn departing(&self) {}

        #[inline(always)]
        pub(crate) fn may_leave(&self) -> bool {
            true
        }

        pub(crate) fn close(&self) {
            // SAFETY: it will run no more.
            unsafe { __tsan_destroy_fiber(self.fiber) };
        }
    }
}

//! Reports fibers to the address sanitizer or the thread sanitizer; empty in a build without one.
//!
//! Neither sees a switch of stacks by itself. The address sanitizer keeps the bounds of the running stack, by which it cleans up after a panic,
//! and searches for leaks from its roots. The thread sanitizer keeps a clock and a call stack for each thread that it knows.
//! `make asan` and `make tsan` build with `--cfg headway_asan` and `--cfg headway_tsan`.

#[cfg(headway_asan)]
pub(crate) use address::Shadow;
#[cfg(not(any(headway_asan, headway_tsan)))]
pub(crate) use none::Shadow;
#[cfg(headway_tsan)]
pub(crate) use thread::{Shadow, acquire, release};
#[cfg(not(headway_tsan))]
pub(crate) use unseen_order::{acquire, release};

#[cfg(not(headway_tsan))]
mod unseen_order {
    /// What comes before this comes before what follows an [`acquire`] of the address, by code in assembly.
    #[inline(always)]
    pub(crate) fn release<T>(_address: *const T) {}

    /// See [`release`].
    #[inline(always)]
    pub(crate) fn acquire<T>(_address: *const T) {}
}

#[cfg(not(any(headway_asan, headway_tsan)))]
mod none {
    use std::ops::Range;

    /// A sanitizer's record of a fiber.
    pub(crate) struct Shadow;

    impl Shadow {
        /// A new fiber, on that stack, maybe with a thread's state of its own.
        #[inline(always)]
        pub(crate) fn new(_: Range<usize>, _owns_thread_state: bool) -> Shadow {
            Shadow
        }

        /// A fiber with a thread's state is about to be entered. The sanitizer takes it for that thread.
        #[inline(always)]
        pub(crate) fn entering_with_thread(&self) {}

        /// It has left.
        #[inline(always)]
        pub(crate) fn left_with_thread(&self) {}

        /// As [`arrived`](Self::arrived).
        #[inline(always)]
        pub(crate) fn arrived_with_thread(&self) {}

        /// As [`departing`](Self::departing).
        #[inline(always)]
        pub(crate) fn departing_with_thread(&self) {}

        /// Runs the fiber by `enter`, until it leaves.
        #[inline(always)]
        pub(crate) fn running<R>(&self, enter: impl FnOnce() -> R) -> R {
            enter()
        }

        /// The fiber reports that it runs: at the start of a job, and after a suspension.
        #[inline(always)]
        pub(crate) fn arrived(&self) {}

        /// The fiber reports that it leaves, or that its job is done.
        #[inline(always)]
        pub(crate) fn departing(&self) {}

        /// Whether the fiber can be suspended. False when a signal interrupts a fiber that is leaving already.
        #[inline(always)]
        pub(crate) fn may_leave(&self) -> bool {
            true
        }

        /// The fiber reports that it leaves for another one, `ending` for ever. The other reports its arrival.
        #[inline(always)]
        pub(crate) fn departing_for(&self, _: &Shadow, _ending: bool) {}

        /// A job may have ended without returning from all its frames.
        #[inline(always)]
        pub(crate) fn forget_frames(&self) {}

        /// The fiber ends without a suspended job; its stack is free for another.
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

    /// The sanitizer's copy of frames, in which it detects use after return (`detect_stack_use_after_return`).
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

        /// Reports that the running code changes to this stack; without `save`, for ever.
        #[inline(always)]
        fn begin_switch(self, save: Option<&Cell<FakeStack>>) {
            let save = save.map_or(ptr::null_mut(), Cell::as_ptr);
            // SAFETY: a place for a pointer, or none; bounds of a stack.
            unsafe { __sanitizer_start_switch_fiber(save, self.bottom, self.size) };
        }

        /// Reports that the change is done; returns the bounds of the previous stack.
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

    /// The sanitizer's record of a fiber.
    pub(crate) struct Shadow {
        stack: Bounds,
        /// The stack of the code that runs the fiber.
        outer: Cell<Bounds>,
        /// The fiber's own, while it is not running.
        fake_stack: Cell<FakeStack>,
        /// The fiber has not reported its arrival yet, or has reported its departure.
        leaving: Cell<bool>,
        /// Another fiber switched to it, and passed it the stack of the code that runs both.
        switched: Cell<bool>,
        /// The sanitizer takes it for a thread.
        owns_thread_state: bool,
    }

    impl Shadow {
        pub(crate) fn new(stack: Range<usize>, owns_thread_state: bool) -> Shadow {
            let stack = Bounds {
                bottom: stack.start as *const c_void,
                size: stack.len(),
            };
            // Memory that a fiber's frames own is no leak, whether the fiber is resumed or abandoned.
            // SAFETY: readable memory, until `close`.
            unsafe { __lsan_register_root_region(stack.bottom, stack.size) };
            Shadow {
                stack,
                outer: Cell::new(Bounds::NONE),
                fake_stack: Cell::new(ptr::null_mut()),
                leaving: Cell::new(true),
                switched: Cell::new(false),
                owns_thread_state,
            }
        }

        #[inline(always)]
        pub(crate) fn entering_with_thread(&self) {}

        #[inline(always)]
        pub(crate) fn left_with_thread(&self) {}

        #[inline(always)]
        pub(crate) fn arrived_with_thread(&self) {
            self.leaving.set(false);
        }

        #[inline(always)]
        pub(crate) fn departing_with_thread(&self) {
            self.leaving.set(true);
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
            let from = Bounds::end_switch(fake_stack);
            if !self.switched.take() {
                self.outer.set(from);
            }
            self.leaving.set(false);
        }

        #[inline(always)]
        pub(crate) fn departing(&self) {
            self.leaving.set(true);
            self.outer.get().begin_switch(Some(&self.fake_stack));
        }

        #[inline(always)]
        pub(crate) fn departing_for(&self, next: &Shadow, ending: bool) {
            self.leaving.set(true);
            next.outer.set(self.outer.get());
            next.switched.set(true);
            next.stack
                .begin_switch((!ending).then_some(&self.fake_stack));
        }

        #[inline(always)]
        pub(crate) fn may_leave(&self) -> bool {
            !self.leaving.get()
        }

        pub(crate) fn forget_frames(&self) {
            // SAFETY: the fiber's stack; only frames are poisoned there, and they are gone.
            unsafe { __asan_unpoison_memory_region(self.stack.bottom, self.stack.size) };
        }

        pub(crate) fn close(&self) {
            if !self.owns_thread_state {
                // Reports a last run of the fiber that ends, which frees its fake stack.
                let fake_stack = Cell::new(ptr::null_mut());
                self.stack.begin_switch(Some(&fake_stack));
                let here = Bounds::end_switch(self.fake_stack.replace(ptr::null_mut()));
                here.begin_switch(None);
                Bounds::end_switch(fake_stack.get());
            }
            // SAFETY: registered by `new`; only frames were poisoned there, and they are gone.
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
        fn __tsan_acquire(address: *const c_void);
        fn __tsan_release(address: *const c_void);
    }

    /// Events before a switch happen before events after it: one thread does both.
    const SYNCHRONISES: c_uint = 0;

    /// What comes before this comes before what follows an [`acquire`] of the address, as if by a lock: it is so by code in assembly.
    #[inline(always)]
    pub(crate) fn release<T>(address: *const T) {
        // SAFETY: an address of ours, of which nothing is read.
        unsafe { __tsan_release(address.cast()) };
    }

    /// See [`release`].
    #[inline(always)]
    pub(crate) fn acquire<T>(address: *const T) {
        // SAFETY: as above.
        unsafe { __tsan_acquire(address.cast()) };
    }

    /// The sanitizer's record of a fiber.
    pub(crate) struct Shadow {
        /// Null for a fiber with a thread's state, which the sanitizer takes for that thread.
        fiber: *mut c_void,
    }

    impl Shadow {
        pub(crate) fn new(_: Range<usize>, owns_thread_state: bool) -> Shadow {
            let fiber = if owns_thread_state {
                std::ptr::null_mut()
            } else {
                // SAFETY: has no conditions.
                unsafe { __tsan_create_fiber(0) }
            };
            Shadow { fiber }
        }

        #[inline(always)]
        pub(crate) fn entering_with_thread(&self) {
            release(self);
        }

        #[inline(always)]
        pub(crate) fn left_with_thread(&self) {
            acquire(self);
        }

        #[inline(always)]
        pub(crate) fn arrived_with_thread(&self) {
            acquire(self);
        }

        #[inline(always)]
        pub(crate) fn departing_with_thread(&self) {
            release(self);
        }

        /// This side reports both switches, in one frame. Functions entered in between also return in between, so the sanitizer's call stacks stay
        /// balanced, whatever the compiler inlines.
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

        #[inline(always)]
        pub(crate) fn departing_for(&self, next: &Shadow, _ending: bool) {
            // SAFETY: the fiber lives, and runs nowhere else.
            unsafe { __tsan_switch_to_fiber(next.fiber, SYNCHRONISES) };
        }

        pub(crate) fn forget_frames(&self) {}

        pub(crate) fn close(&self) {
            if !self.fiber.is_null() {
                // SAFETY: it will run no more.
                unsafe { __tsan_destroy_fiber(self.fiber) };
            }
        }
    }
}

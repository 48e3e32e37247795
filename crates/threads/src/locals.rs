//! Thread-local variables for the threads of a runtime.
#![expect(
    unsafe_code,
    reason = "a variable is found by the address of its declaration"
)]

use std::any::Any;

use crate::head::Uthread;

/// Declares a thread-local variable for the threads of a runtime: [`UthreadLocal`].
///
/// ```
/// use std::cell::Cell;
///
/// headway_threads::uthread_local!(static CALLS: Cell<u32> = Cell::new(0));
/// let runtime = headway_threads::Runtime::builder().start()?;
/// let calls = runtime.run(|| {
///     let other = headway_threads::spawn(|| CALLS.with(|calls| calls.replace(7)));
///     assert_eq!(other.join().unwrap(), 0);
///     CALLS.with(Cell::get)
/// });
/// assert_eq!(calls, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[macro_export]
macro_rules! uthread_local {
    ($(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty = $first:expr) => {
        $(#[$attribute])*
        $visible static $name: $crate::UthreadLocal<$type> = $crate::UthreadLocal::new(|| $first);
    };
}

/// A variable with one value per thread of a runtime, unlike [`std::thread_local`] with one value per kthread. Declare it by
/// [`uthread_local!`](crate::uthread_local).
///
/// A thread drops its variables when it ends, the last made first.
pub struct UthreadLocal<T: 'static> {
    first: fn() -> T,
}

impl<T: 'static> UthreadLocal<T> {
    /// See [`uthread_local!`](crate::uthread_local).
    #[doc(hidden)]
    pub const fn new(first: fn() -> T) -> Self {
        UthreadLocal { first }
    }

    /// Calls `access` with the calling thread's own value.
    ///
    /// # Panics
    /// The caller is no thread of a runtime.
    pub fn with<R>(&'static self, access: impl FnOnce(&T) -> R) -> R {
        let me = Uthread::current().expect("a thread of a runtime");
        let key = (&raw const *self).addr();
        if me.find_local(key).is_none() {
            let value: Box<dyn Any> = Box::new((self.first)());
            me.head().locals.borrow_mut().push((key, value));
        }
        let value = me.find_local(key).expect("put there just now");
        // SAFETY: a boxed value stays where it is until the thread ends, which is in no call of `access` then.
        access(unsafe { &*value.cast::<T>() })
    }
}

impl Uthread {
    fn find_local(self, key: usize) -> Option<*const ()> {
        let locals = self.head().locals.borrow();
        let (_, value) = locals.iter().find(|(found, _)| *found == key)?;
        Some((&raw const **value).cast())
    }

    /// Drops the thread's variables, which may make others meanwhile.
    #[inline(always)]
    pub(crate) fn end_locals(self) {
        if !self.head().locals.borrow().is_empty() {
            self.drop_locals();
        }
    }

    #[cold]
    fn drop_locals(self) {
        loop {
            let last = self.head().locals.borrow_mut().pop();
            let Some(last) = last else { return };
            drop(last);
        }
    }
}

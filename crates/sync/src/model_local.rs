//! What the standard library's thread-local cells offer and shuttle's keys lack: code that uses them runs unchanged in a model, each of whose threads has its own.

use std::cell::{Cell, RefCell};

use shuttle::thread::LocalKey;

/// A thread-local variable that holds a cell.
pub trait ModelLocal<T> {
    /// Puts a value in.
    fn set(&'static self, value: T) {
        drop(self.replace(value));
    }

    /// Puts a value in, and returns the one that was there.
    fn replace(&'static self, value: T) -> T;

    /// Takes the value out.
    fn take(&'static self) -> T
    where
        T: Default,
    {
        self.replace(T::default())
    }
}

impl<T> ModelLocal<T> for LocalKey<Cell<T>> {
    fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T> ModelLocal<T> for LocalKey<RefCell<T>> {
    fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

/// A thread-local variable whose value is copied out.
pub trait ModelLocalCopy<T> {
    /// The value.
    fn get(&'static self) -> T;
}

impl<T: Copy> ModelLocalCopy<T> for LocalKey<Cell<T>> {
    fn get(&'static self) -> T {
        self.with(Cell::get)
    }
}

/// A thread-local variable whose value is looked at where it is.
pub trait ModelLocalBorrow<T> {
    /// Calls with the value. No other thread of the model sees it, so the call may wait.
    fn with_borrow<R>(&'static self, look: impl FnOnce(&T) -> R) -> R;
}

impl<T> ModelLocalBorrow<T> for LocalKey<RefCell<T>> {
    fn with_borrow<R>(&'static self, look: impl FnOnce(&T) -> R) -> R {
        self.with(|cell| look(&cell.borrow()))
    }
}

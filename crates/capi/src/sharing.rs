//! Shared and private data of threads in user space: channels, read-mostly cells, thread-local variables.
#![expect(unsafe_code, reason = "functions with names that C links to")]

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use headway_threads::{Mutex, ReadCell, Receiver, Sender, channel, in_thread, uthread_local};

use crate::status::{CallFailure, HEADWAY_E_NONE, report};
use crate::threads::in_thread_of_runtime;

/// The program's destructor of a value that it leaves behind; called by the thread that leaves it.
type EndOfValue = Option<unsafe extern "C" fn(value: *mut c_void)>;

/// A value of the program's, with its destructor.
struct OwnedWord {
    value: *mut c_void,
    end: EndOfValue,
}

// SAFETY: the program defines which threads may use the value, and how.
unsafe impl Send for OwnedWord {}
// SAFETY: as above.
unsafe impl Sync for OwnedWord {}

impl OwnedWord {
    /// The value without its destructor, for the program to take.
    fn into_value(mut self) -> *mut c_void {
        self.end = None;
        self.value
    }
}

impl Drop for OwnedWord {
    fn drop(&mut self) {
        if let Some(end) = self.end {
            // SAFETY: the program's promise: it ends such values, once.
            unsafe { end(self.value) };
        }
    }
}

/// A bounded queue of pointers between threads.
pub struct HeadwayChannel {
    end: EndOfValue,
    /// `None` once the channel is closed.
    sender: Mutex<Option<Sender<OwnedWord>>>,
    receiver: Receiver<OwnedWord>,
}

/// Makes a channel with room for this many values, at least one, and writes its handle to `*channel`. `end` is called with each value that is still there when
/// the channel is freed; it may be null.
///
/// # Safety
/// `channel` can be written. No exception leaves `end`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_channel_create(
    room: usize,
    end: Option<unsafe extern "C" fn(value: *mut c_void)>,
    channel: *mut *mut HeadwayChannel,
) -> c_int {
    report(|| {
        if channel.is_null() {
            return Err(CallFailure::argument("the place for the channel is null"));
        }
        let (sender, receiver) = self::channel(room);
        let made = HeadwayChannel {
            end,
            sender: Mutex::new(Some(sender)),
            receiver,
        };
        // SAFETY: the caller's promise.
        unsafe { channel.write(Box::into_raw(Box::new(made))) };
        Ok(())
    })
}

/// # Safety
/// The channel is null, or was made and not freed.
unsafe fn channel_of<'a>(
    channel: *const HeadwayChannel,
) -> Result<&'a HeadwayChannel, CallFailure> {
    // SAFETY: the caller's promise.
    unsafe { channel.as_ref() }.ok_or_else(|| CallFailure::argument("the channel is null"))
}

fn closed() -> CallFailure {
    CallFailure::new(HEADWAY_E_NONE, "the channel is closed")
}

/// Sends a value, and waits for room. HEADWAY_E_NONE if the channel is closed: the value stays the caller's. Called by a thread of a runtime.
///
/// # Safety
/// `channel` came from headway_channel_create() and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_channel_send(
    channel: *const HeadwayChannel,
    value: *mut c_void,
) -> c_int {
    report(|| {
        in_thread_of_runtime("headway_channel_send")?;
        // SAFETY: the caller's promise.
        let channel = unsafe { channel_of(channel) }?;
        let sender = channel.sender.lock().clone().ok_or_else(closed)?;
        let end = channel.end;
        let sent = sender.send(OwnedWord { value, end });
        sent.map_err(|unsent| {
            unsent.0.into_value();
            closed()
        })
    })
}

/// Takes the oldest value, and waits for one. HEADWAY_E_NONE if the channel is empty and closed. Called by a thread of a runtime.
///
/// # Safety
/// As headway_channel_send(); `value` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_channel_receive(
    channel: *const HeadwayChannel,
    value: *mut *mut c_void,
) -> c_int {
    report(|| {
        in_thread_of_runtime("headway_channel_receive")?;
        if value.is_null() {
            return Err(CallFailure::argument("the place for the value is null"));
        }
        // SAFETY: the caller's promise.
        let channel = unsafe { channel_of(channel) }?;
        let received = channel.receiver.recv().map_err(|_| closed())?;
        // SAFETY: the caller's promise.
        unsafe { value.write(received.into_value()) };
        Ok(())
    })
}

/// Closes the channel: no value can be sent from now on, and values in it can still be received. Any thread may call this, also repeatedly.
///
/// # Safety
/// As headway_channel_send().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_channel_close(channel: *const HeadwayChannel) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let channel = unsafe { channel_of(channel) }?;
        let sender = channel.sender.lock().take();
        drop(sender);
        Ok(())
    })
}

/// Frees an unused channel, and calls `end` for the values left in it.
///
/// # Safety
/// `channel` is null, or as for headway_channel_send() and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_channel_free(channel: *mut HeadwayChannel) {
    if !channel.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(channel) });
    }
}

/// A pointer that is read often and replaced seldom. Reads write to no cache line that other kernel threads read.
pub struct HeadwayReadCell(ReadCell<OwnedWord>);

/// Makes a cell with this value, and writes its handle to `*cell`.
///
/// # Safety
/// `cell` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_read_cell_create(
    value: *mut c_void,
    cell: *mut *mut HeadwayReadCell,
) -> c_int {
    report(|| {
        if cell.is_null() {
            return Err(CallFailure::argument("the place for the cell is null"));
        }
        let made = HeadwayReadCell(ReadCell::new(OwnedWord { value, end: None }));
        // SAFETY: the caller's promise.
        unsafe { cell.write(Box::into_raw(Box::new(made))) };
        Ok(())
    })
}

/// Calls `body(value, argument)` with the cell's value, which stays valid until `body` returns. `body` must be short and call no function of this
/// interface. Any thread may read.
///
/// # Safety
/// `cell` came from headway_read_cell_create() and was not freed. No exception leaves `body`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_read_cell_read(
    cell: *const HeadwayReadCell,
    body: Option<unsafe extern "C" fn(value: *mut c_void, argument: *mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let (Some(cell), Some(body)) = (unsafe { cell.as_ref() }, body) else {
            return Err(CallFailure::argument("the cell or the function is null"));
        };
        // SAFETY: the caller's promise.
        cell.0.read(|word| unsafe { body(word.value, argument) });
        Ok(())
    })
}

/// Replaces the value, waits until every read of the old one has ended, and writes the old one to `*old`. Any thread may replace, but not within a read.
///
/// # Safety
/// As headway_read_cell_read(); `old` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_read_cell_replace(
    cell: *const HeadwayReadCell,
    value: *mut c_void,
    old: *mut *mut c_void,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let Some(cell) = (unsafe { cell.as_ref() }) else {
            return Err(CallFailure::argument("the cell is null"));
        };
        if old.is_null() {
            return Err(CallFailure::argument("the place for the old value is null"));
        }
        let replaced = cell.0.replace(OwnedWord { value, end: None });
        // SAFETY: the caller's promise.
        unsafe { old.write(replaced.into_value()) };
        Ok(())
    })
}

/// Frees an unused cell. Its value stays the program's.
///
/// # Safety
/// `cell` is null, or as for headway_read_cell_read() and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_read_cell_free(cell: *mut HeadwayReadCell) {
    if !cell.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(cell) });
    }
}

/// A variable with one value per thread of a runtime, null at first. The program declares it static, since its address identifies it.
#[repr(C)]
pub struct HeadwayLocal {
    /// Called with a thread's value when the thread ends, unless the value is null; may be null.
    pub end: Option<unsafe extern "C" fn(value: *mut c_void)>,
}

/// A thread's values, by the address of their variables.
struct OwnValues(RefCell<Vec<(usize, OwnedWord)>>);

impl Drop for OwnValues {
    /// Destroys the last one first. A destructor may set others.
    fn drop(&mut self) {
        loop {
            let last = self.0.borrow_mut().pop();
            let Some((_, word)) = last else { return };
            end_set(word);
        }
    }
}

/// Null is no value, and has no destructor.
fn end_set(word: OwnedWord) {
    if word.value.is_null() {
        word.into_value();
    }
}

uthread_local!(static VALUES: OwnValues = OwnValues(RefCell::new(Vec::new())));

/// The calling thread's value of the variable; null if it set none, or the caller is no thread of a runtime.
#[unsafe(no_mangle)]
pub extern "C" fn headway_local_get(local: *const HeadwayLocal) -> *mut c_void {
    if !in_thread() {
        return null_mut();
    }
    VALUES.with(|values| {
        let values = values.0.borrow();
        let own = values.iter().find(|(name, _)| *name == local.addr());
        own.map_or(null_mut(), |(_, word)| word.value)
    })
}

/// Sets the calling thread's value of the variable. `end` is not called for the previous value. Called by a thread of a runtime.
///
/// # Safety
/// `local` stays readable while threads that set it run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_local_set(
    local: *const HeadwayLocal,
    value: *mut c_void,
) -> c_int {
    report(|| {
        in_thread_of_runtime("headway_local_set")?;
        // SAFETY: the caller's promise.
        let Some(declared) = (unsafe { local.as_ref() }) else {
            return Err(CallFailure::argument("the variable is null"));
        };
        let name = local.addr();
        VALUES.with(|values| {
            let mut values = values.0.borrow_mut();
            if let Some((_, word)) = values.iter_mut().find(|(found, _)| *found == name) {
                word.value = value;
            } else {
                let end = declared.end;
                values.push((name, OwnedWord { value, end }));
            }
        });
        Ok(())
    })
}

//! TCP for threads in user space, over the packets of a host's daemon.
#![expect(unsafe_code, reason = "functions with names that C links to")]

use std::ffi::{c_char, c_int, c_void};
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use headway_stack::{NetStack, TcpListener, TcpStream, Uthreads};

use crate::status::{
    CallFailure, HEADWAY_E_ADDRESS, HEADWAY_E_CONNECTION, HEADWAY_E_TIMEOUT, report,
};
use crate::text;
use crate::threads::HeadwayRuntime;

/// headway_tcp_wait(): the stream has data, or has ended.
pub const HEADWAY_READABLE: u32 = 1;
/// headway_tcp_wait(): the stream has room for data, or has ended.
pub const HEADWAY_WRITABLE: u32 = 2;

/// A port at which connections are accepted.
pub struct HeadwayListener(TcpListener<Uthreads>);

/// A connection. Any thread may use it.
pub struct HeadwayStream(TcpStream<Uthreads>);

/// A stream, and what is awaited of it.
#[repr(C)]
pub struct HeadwayAwaited {
    /// The stream.
    pub stream: *const HeadwayStream,
    /// HEADWAY_READABLE, HEADWAY_WRITABLE, or both.
    pub events: u32,
    /// Which of them hold; written by headway_tcp_wait().
    pub ready: u32,
}

fn failure(error: &io::Error) -> CallFailure {
    let code = match error.kind() {
        io::ErrorKind::TimedOut => HEADWAY_E_TIMEOUT,
        io::ErrorKind::InvalidInput
        | io::ErrorKind::AddrInUse
        | io::ErrorKind::AddrNotAvailable => HEADWAY_E_ADDRESS,
        _ => HEADWAY_E_CONNECTION,
    };
    CallFailure::new(code, error.to_string())
}

fn null(what: &str) -> CallFailure {
    CallFailure::argument(format!("the {what} is null"))
}

/// Refuses a number of elements that no array has: a slice of more bytes than `isize` holds is undefined behaviour.
fn fits<T>(what: &str, count: usize) -> Result<(), CallFailure> {
    if count <= isize::MAX as usize / size_of::<T>() {
        return Ok(());
    }
    Err(CallFailure::argument(format!(
        "the {what} is {count}: no array has as many"
    )))
}

/// The end of a wait; `None` for one without end.
fn end_of(timeout_ns: u64) -> Option<Instant> {
    Instant::now()
        .checked_add(Duration::from_nanos(timeout_ns))
        .filter(|_| timeout_ns != u64::MAX)
}

/// # Safety
/// `runtime` is null or came from headway_runtime_start().
unsafe fn stack_of<'a>(
    runtime: *const HeadwayRuntime,
) -> Result<&'a Arc<NetStack<Uthreads>>, CallFailure> {
    // SAFETY: the caller's promise.
    let runtime = unsafe { runtime.as_ref() }.ok_or_else(|| null("runtime"))?;
    let stack = runtime.stack.as_ref();
    stack.ok_or_else(|| {
        CallFailure::argument(
            "the runtime has no packets: set application and network_buffer_bytes in its options",
        )
    })
}

/// Listens at a TCP port; 0 is one that the stack chooses. Up to `backlog` connections wait to be accepted. Writes the handle to `*listener`, for
/// headway_tcp_close_listener() to take.
///
/// # Safety
/// `runtime` came from headway_runtime_start() and outlives the listener; `listener` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_tcp_listen(
    runtime: *const HeadwayRuntime,
    port: u16,
    backlog: usize,
    listener: *mut *mut HeadwayListener,
) -> c_int {
    report(|| {
        if listener.is_null() {
            return Err(null("place for the listener"));
        }
        // SAFETY: the caller's promise.
        let stack = unsafe { stack_of(runtime) }?;
        let made = TcpListener::bind(stack, port, backlog).map_err(|error| failure(&error))?;
        // SAFETY: the caller's promise.
        unsafe { listener.write(Box::into_raw(Box::new(HeadwayListener(made)))) };
        Ok(())
    })
}

/// Waits for a connection, at most for `timeout_ns` (UINT64_MAX: without end), and writes its handle to `*stream`, for headway_tcp_close() to take.
/// HEADWAY_E_TIMEOUT: none came.
///
/// # Safety
/// `listener` came from headway_tcp_listen() and is open; `stream` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_tcp_accept(
    listener: *const HeadwayListener,
    timeout_ns: u64,
    stream: *mut *mut HeadwayStream,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let listener = unsafe { listener.as_ref() }.ok_or_else(|| null("listener"))?;
        if stream.is_null() {
            return Err(null("place for the stream"));
        }
        let accepted = match end_of(timeout_ns) {
            Some(end) => listener.0.accept_until(end),
            None => Some(listener.0.accept().map_err(|error| failure(&error))?),
        };
        let none = || CallFailure::new(HEADWAY_E_TIMEOUT, "no connection came");
        let accepted = accepted.ok_or_else(none)?;
        // SAFETY: the caller's promise.
        unsafe { stream.write(Box::into_raw(Box::new(HeadwayStream(accepted)))) };
        Ok(())
    })
}

/// Connects to an IPv4 or IPv6 address, within `timeout_ns`, and writes the handle to `*stream`, for headway_tcp_close() to take.
///
/// # Safety
/// `runtime` came from headway_runtime_start() and outlives the stream; `address` ends with a NUL; `stream` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_tcp_connect(
    runtime: *const HeadwayRuntime,
    address: *const c_char,
    port: u16,
    timeout_ns: u64,
    stream: *mut *mut HeadwayStream,
) -> c_int {
    report(|| {
        if stream.is_null() {
            return Err(null("place for the stream"));
        }
        // SAFETY: the caller's promise.
        let (stack, address) = unsafe { (stack_of(runtime)?, text::optional(address, "address")?) };
        let address = address.ok_or_else(|| null("address"))?;
        let ip: IpAddr = address.parse().map_err(|_| {
            let what = format!("'{address}' is no IPv4 or IPv6 address");
            CallFailure::new(HEADWAY_E_ADDRESS, what)
        })?;
        let timeout = Duration::from_nanos(timeout_ns);
        let connected = TcpStream::connect(stack, SocketAddr::new(ip, port), timeout);
        let connected = connected.map_err(|error| failure(&error))?;
        // SAFETY: the caller's promise.
        unsafe { stream.write(Box::into_raw(Box::new(HeadwayStream(connected)))) };
        Ok(())
    })
}

/// Reads the available bytes, waiting for at least one, and writes their number to `*bytes`: 0 after the peer's end.
///
/// # Safety
/// `stream` is an open stream; `to` has `room` writable bytes; `bytes` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_tcp_receive(
    stream: *const HeadwayStream,
    to: *mut c_void,
    room: usize,
    bytes: *mut usize,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let stream = unsafe { stream.as_ref() }.ok_or_else(|| null("stream"))?;
        if to.is_null() || bytes.is_null() {
            return Err(null("place for the bytes"));
        }
        fits::<u8>("room", room)?;
        // SAFETY: the caller's promise.
        let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), room) };
        let received = stream.0.receive(to).map_err(|error| failure(&error))?;
        // SAFETY: the caller's promise.
        unsafe { bytes.write(received) };
        Ok(())
    })
}

/// Writes all bytes into the stream's buffer, waiting for room. They reach the peer later.
///
/// # Safety
/// `stream` is an open stream; `from` has `bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_tcp_send(
    stream: *const HeadwayStream,
    from: *const c_void,
    bytes: usize,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let stream = unsafe { stream.as_ref() }.ok_or_else(|| null("stream"))?;
        if from.is_null() {
            return Err(null("place of the bytes"));
        }
        fits::<u8>("number of bytes", bytes)?;
        // SAFETY: the caller's promise.
        let mut rest = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) };
        while !rest.is_empty() {
            let sent = stream.0.send(rest).map_err(|error| failure(&error))?;
            rest = &rest[sent..];
        }
        Ok(())
    })
}

/// Waits until an awaited event of one of `count` streams holds, at most for `timeout_ns` (UINT64_MAX: without end; 0: not at all), and writes
/// which hold. HEADWAY_E_TIMEOUT: none.
///
/// # Safety
/// `awaited` has `count` elements, whose streams are open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_tcp_wait(
    runtime: *const HeadwayRuntime,
    awaited: *mut HeadwayAwaited,
    count: usize,
    timeout_ns: u64,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let stack = unsafe { stack_of(runtime) }?;
        if awaited.is_null() {
            return Err(null("list of streams"));
        }
        fits::<HeadwayAwaited>("number of streams", count)?;
        // SAFETY: the caller's promise.
        let awaited = unsafe { std::slice::from_raw_parts_mut(awaited, count) };
        if awaited.iter().any(|one| one.stream.is_null()) {
            return Err(null("stream"));
        }
        let ready = stack.wait_until(end_of(timeout_ns), |waker| {
            let mut is_any = false;
            for one in awaited.iter_mut() {
                // SAFETY: the caller's promise.
                let (readable, writable) = unsafe { &*one.stream }.0.readiness(waker);
                let readable = if readable { HEADWAY_READABLE } else { 0 };
                let writable = if writable { HEADWAY_WRITABLE } else { 0 };
                one.ready = one.events & (readable | writable);
                is_any |= one.ready != 0;
            }
            is_any.then_some(())
        });
        ready.ok_or_else(|| CallFailure::new(HEADWAY_E_TIMEOUT, "no stream is ready"))
    })
}

/// Ends writing: the peer sees the end after all that was sent.
///
/// # Safety
/// `stream` is an open stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_tcp_shutdown(stream: *const HeadwayStream) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let stream = unsafe { stream.as_ref() }.ok_or_else(|| null("stream"))?;
        stream.0.shutdown(Shutdown::Write);
        Ok(())
    })
}

/// Closes a stream and frees its handle. What was sent still reaches the peer.
///
/// # Safety
/// `stream` is null or an open stream, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_tcp_close(stream: *mut HeadwayStream) -> c_int {
    report(|| {
        if !stream.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(stream) });
        }
        Ok(())
    })
}

/// Closes a listener and frees its handle. Connections that nobody accepted are closed.
///
/// # Safety
/// `listener` is null or open, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_tcp_close_listener(listener: *mut HeadwayListener) -> c_int {
    report(|| {
        if !listener.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(listener) });
        }
        Ok(())
    })
}

/// Waits until the peers of closed streams have all that was sent, at most for `timeout_ns`. Call it before the program ends. HEADWAY_E_TIMEOUT: they
/// have not, or never will: a reset or a timeout ended a closed stream early since the last call.
///
/// # Safety
/// `runtime` came from headway_runtime_start().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_tcp_flush(
    runtime: *const HeadwayRuntime,
    timeout_ns: u64,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let stack = unsafe { stack_of(runtime) }?;
        let has_all = stack.flush(Duration::from_nanos(timeout_ns));
        has_all.then_some(()).ok_or_else(|| {
            CallFailure::new(
                HEADWAY_E_TIMEOUT,
                "the peers have not acknowledged everything, or a reset or a timeout ended a stream early",
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_has_no_more_bytes_than_an_address_space() {
        fits::<u8>("room", isize::MAX as usize).unwrap();
        fits::<u8>("room", isize::MAX as usize + 1).unwrap_err();
        fits::<HeadwayAwaited>("number of streams", 1 << 16).unwrap();
        fits::<HeadwayAwaited>("number of streams", usize::MAX / 16).unwrap_err();
    }
}

//! Lines on standard error that block nobody: whoever reads it may stand still, and suspended code may hold the standard library's lock.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, getsockopt, send, sockopt};
use nix::unistd::write;

/// How long a line waits for a reader that fell behind. Later lines do not wait until one was written again.
const READER_PATIENCE: Duration = Duration::from_millis(100);
/// Bytes that a pipe takes in one piece.
const PIECE_BYTES: usize = libc::PIPE_BUF;

/// Whether the last line found no room.
static STANDS_STILL: AtomicBool = AtomicBool::new(false);
/// Lines that found no room, in whole or in part, and are not told of yet.
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

/// Writes the line and its end. A line that finds no room within a tenth of a second is left out, and the next one says how many were. Nobody is
/// left to be told if standard error is closed.
pub fn write_line(line: &str) {
    let left_out = LEFT_OUT.swap(0, Ordering::Relaxed);
    let remark = match left_out {
        0 => String::new(),
        count => format!("({count} lines are left out here: nobody read standard error)\n"),
    };
    let text = format!("{remark}{line}\n");
    let patience = if STANDS_STILL.load(Ordering::Relaxed) {
        Duration::ZERO
    } else {
        READER_PATIENCE
    };
    let written = write_to(io::stderr().as_fd(), text.as_bytes(), patience);
    let stands_still = written.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    if stands_still {
        LEFT_OUT.fetch_add(left_out + 1, Ordering::Relaxed);
    }
    STANDS_STILL.store(stands_still, Ordering::Relaxed);
}

/// Writes all of it, or fails with [`ErrorKind::WouldBlock`] when the reader makes no room within `patience`.
fn write_to(descriptor: BorrowedFd<'_>, text: &[u8], patience: Duration) -> io::Result<()> {
    let mut stream = StderrStream::of(descriptor);
    let until = Instant::now() + patience;
    let mut left = text;
    while !left.is_empty() {
        let wait = until.saturating_duration_since(Instant::now());
        let wait = PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO);
        if poll(&mut [PollFd::new(descriptor, PollFlags::POLLOUT)], wait)? == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        match stream.write(&left[..left.len().min(PIECE_BYTES)]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => left = &left[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Another writer was faster, or the room is too small for a piece.
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A way to write to standard error whose calls do not wait. `O_NONBLOCK` on the descriptor itself would hold for every process that shares it.
enum StderrStream<'a> {
    /// A pipe or terminal, opened anew: it has flags of its own.
    Anew(File),
    Plain(BorrowedFd<'a>),
    Socket(BorrowedFd<'a>),
}

impl<'a> StderrStream<'a> {
    /// Takes no descriptor where none is free: that is among what a line may tell of.
    fn of(descriptor: BorrowedFd<'a>) -> Self {
        if getsockopt(&descriptor, sockopt::SockType).is_ok() {
            return Self::Socket(descriptor);
        }
        let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        let kind = fs::metadata(&path).map(|about| about.file_type());
        if kind.is_ok_and(|kind| kind.is_fifo() || kind.is_char_device()) {
            let mut options = OpenOptions::new();
            let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
            if let Ok(anew) = options.write(true).custom_flags(flags).open(path) {
                return Self::Anew(anew);
            }
        }
        // Without /proc or a descriptor, or where the pipe is another user's, what `poll` said must do.
        Self::Plain(descriptor)
    }
}

impl Write for StderrStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Anew(file) => file.write(bytes),
            Self::Plain(descriptor) => Ok(write(*descriptor, bytes)?),
            Self::Socket(socket) => {
                let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
                Ok(send(socket.as_raw_fd(), bytes, flags)?)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    /// Writes until nothing more finds room, and returns what found some.
    fn fill(descriptor: BorrowedFd<'_>) -> usize {
        let mut lines = 0;
        loop {
            match write_to(descriptor, b"a line\n", Duration::ZERO) {
                Ok(()) => lines += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    return lines;
                }
            }
        }
    }

    #[test]
    fn a_pipe_or_socket_that_nobody_reads_blocks_no_writer() {
        let (mut reader, writer) = io::pipe().unwrap();
        let lines = fill(writer.as_fd());
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "a line\n".repeat(lines));

        let (mut reader, writer) = UnixStream::pair().unwrap();
        let lines = fill(writer.as_fd());
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "a line\n".repeat(lines));
    }

    #[test]
    fn a_line_longer_than_a_pipe_waits_for_its_reader() {
        let (mut reader, writer) = io::pipe().unwrap();
        let line = "x".repeat(1 << 20);
        let reads = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        write_to(writer.as_fd(), line.as_bytes(), Duration::from_secs(60)).unwrap();
        drop(writer);
        assert!(reads.join().unwrap().unwrap() == line);
    }

    #[test]
    fn a_pipe_without_a_reader_is_an_error() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let error = write_to(writer.as_fd(), b"a line\n", Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    }
}

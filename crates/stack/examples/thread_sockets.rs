//! A TCP echo server on threads in user space, with the packets of a host's daemon. As root:
//!
//! ```sh
//! headway host --device eth1 --app echo:ip=10.0.0.9/24
//! cargo run --release -p headway-stack --example thread_sockets -- /run/headway/host.sock echo
//! ```
#![expect(
    unsafe_code,
    reason = "threads in user space change their kthreads by a promise"
)]

use headway_host::client::{ClientOptions, HostClient};
use headway_stack::{NetStack, TcpListener, Uthreads};
use headway_threads::{Migration, Runtime, STOP_AT_SIGNAL, spawn};
use std::error::Error;
use std::io::{Read as _, Write as _};
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, socket, name] = &args[..] else {
        return Err("name the daemon's socket and the application".into());
    };
    serve(socket, name)
}

/// Sends back on each connection to port 7 what comes by it.
pub(crate) fn serve(socket: &str, name: &str) -> Result<(), Box<dyn Error>> {
    let options = ClientOptions {
        network: true,
        at_signal: STOP_AT_SIGNAL,
        ..ClientOptions::new(name, 2)
    };
    let client = Arc::new(HostClient::register(socket, &options)?);
    let stack = NetStack::of_host(&client, 64 << 10, Uthreads)?;
    // SAFETY: no thread holds a thread-local variable or a lock of `std` across a call that waits.
    let runtime = Runtime::builder().source(client, unsafe { Migration::allow() });
    let runtime = runtime.packets(Arc::<NetStack<Uthreads>>::clone(&stack));
    let runtime = runtime.stack_bytes(256 << 10).start()?;
    let served = runtime.run(move || -> std::io::Result<()> {
        let listener = TcpListener::bind(&stack, 7, 64)?;
        loop {
            let stream = listener.accept()?;
            spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(bytes @ 1..) = (&stream).read(&mut buffer) {
                    if (&stream).write_all(&buffer[..bytes]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    Ok(served?)
}

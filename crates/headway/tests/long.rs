//! Handlers that are long as a whole, by `#[long]`: a server that goes by feedback interrupts them and no other.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use headway::fiber::suspensions;
use headway::prelude::*;

#[long]
fn scan(call: &mut Call<'_>) {
    works_on(call, Duration::from_secs(60));
}

#[long]
#[preemptible]
fn marked_twice(call: &mut Call<'_>, most: u32) -> Option<u32> {
    let before = suspensions();
    for round in 0..most {
        if suspensions() != before {
            call.reply(b"interrupted");
            return Some(round);
        }
    }
    None
}

/// Works until it is interrupted, or for this time.
fn works_on(call: &mut Call<'_>, most: Duration) {
    let (before, deadline) = (suspensions(), Instant::now() + most);
    while suspensions() == before && Instant::now() < deadline {
        checkpoint();
    }
    let interrupted = suspensions() != before;
    call.reply(if interrupted {
        b"interrupted"
    } else {
        b"to the end"
    });
}

fn serve(handler: impl Fn(&mut Call<'_>) + Send + Sync + 'static) -> Server {
    Server::builder()
        .policy("shinjuku-sq,q=5us")
        .class("get", Duration::from_micros(1))
        .class("scan", Duration::from_millis(1))
        .workers(1)
        .layout(Layout::Inline)
        .look_every(Duration::from_micros(5))
        .by_feedback(true)
        .handler(handler)
        .listen_udp("127.0.0.1:0".parse().unwrap())
        .start()
        .unwrap()
}

/// Asks for a scan and, while it runs, for gets; what the scan says.
fn asked(addr: SocketAddr) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(addr).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(5)))
        .unwrap();
    let send = |class: u8| {
        let (flag, index, time_ns) = (Flag::REQUEST, 0, 0);
        let header = Header {
            class,
            flag,
            index,
            time_ns,
        };
        socket.send(&header.encode()).unwrap();
    };
    send(1);
    let (deadline, mut buffer) = (Instant::now() + Duration::from_secs(60), [0; 64]);
    loop {
        assert!(Instant::now() < deadline, "the scan is not answered");
        send(0);
        match socket.recv(&mut buffer) {
            Ok(len) if len > HEADER_BYTES => return buffer[HEADER_BYTES..len].to_vec(),
            _ => {}
        }
    }
}

#[test]
fn a_long_handler_is_interrupted_and_no_other() {
    let server = serve(|call| {
        if call.class().0 == 1 {
            scan(call);
        }
    });
    assert_eq!(asked(server.local_addr().unwrap()), b"interrupted");
    let server = serve(|call| {
        if call.class().0 == 1 {
            works_on(call, Duration::from_millis(200));
        }
    });
    assert_eq!(asked(server.local_addr().unwrap()), b"to the end");
    assert_eq!(server.stats().preemptions, 0);
}

#[test]
fn both_attributes_go_on_one_function() {
    let server = serve(|call| {
        if call.class().0 == 1 {
            while marked_twice(call, 1_000_000).is_none() {}
        }
    });
    assert_eq!(asked(server.local_addr().unwrap()), b"interrupted");
}

//! The example is started, asked, and stopped by a signal.

use headway::prelude::*;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What the server answers to the request of this number.
fn ask(client: &UdpSocket, index: u32, class: u8, payload: &str) -> (Status, String) {
    let header = Header {
        class,
        flag: Flag::REQUEST,
        index,
        time_ns: 0,
    };
    let request = [&header.encode()[..], payload.as_bytes()].concat();
    client.send(&request).unwrap();
    let mut answer = [0; 2048];
    let len = client.recv(&mut answer).unwrap();
    let (header, payload) = Header::parse(&answer[..len]).unwrap();
    assert_eq!(header.index, index);
    let payload = String::from_utf8(payload.to_vec()).unwrap();
    (header.flag.status(), payload)
}

#[test]
fn whole_drains_on_a_signal() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_headway-whole-example"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(server.stdout.take().unwrap());
    let mut address = String::new();
    printed.read_line(&mut address).unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(address.trim()).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let answered = |answer: &str| (Status::Ok, answer.to_owned());
    assert_eq!(ask(&client, 1, 0, "ping"), answered("pong"));
    assert_eq!(ask(&client, 2, 1, "sum"), answered("5000050000"));
    let id = server.id().to_string();
    assert!(Command::new("kill").arg(&id).status().unwrap().success());
    let mut said = String::new();
    let mut errors = server.stderr.take().unwrap();
    errors.read_to_string(&mut said).unwrap();
    assert!(server.wait().unwrap().success(), "{said}");
    assert!(said.contains("received 2, answered 2 (served 2,"), "{said}");
}

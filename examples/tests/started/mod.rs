//! An example that was started, and a client of it.

use headway::prelude::*;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// An example that runs, and a client of it.
pub(crate) struct Example {
    pub(crate) child: Child,
    printed: BufReader<ChildStdout>,
    client: UdpSocket,
    asked: u32,
}

impl Example {
    pub(crate) fn start(program: &mut Command) -> Self {
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        let mut address = String::new();
        printed.read_line(&mut address).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(address.trim()).unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self {
            child,
            printed,
            client,
            asked: 0,
        }
    }

    pub(crate) fn send(&mut self, class: u8, payload: &str) -> u32 {
        self.asked += 1;
        let header = Header {
            class,
            flag: Flag::REQUEST,
            index: self.asked,
            time_ns: 0,
        };
        let request = [&header.encode()[..], payload.as_bytes()].concat();
        self.client.send(&request).unwrap();
        self.asked
    }

    /// The next answer: to which request, how it went, and its payload.
    pub(crate) fn receive(&self) -> (u32, Status, String) {
        let mut answer = [0; 2048];
        let len = self.client.recv(&mut answer).unwrap();
        let (header, payload) = Header::parse(&answer[..len]).unwrap();
        let payload = String::from_utf8(payload.to_vec()).unwrap();
        (header.index, header.flag.status(), payload)
    }

    pub(crate) fn ask(&mut self, class: u8, payload: &str) -> (Status, String) {
        let index = self.send(class, payload);
        let (answered, status, payload) = self.receive();
        assert_eq!(answered, index);
        (status, payload)
    }

    /// Its last words, once its standard input has ended.
    pub(crate) fn stop(mut self) -> String {
        drop(self.child.stdin.take());
        let mut words = String::new();
        self.printed.read_to_string(&mut words).unwrap();
        assert!(self.child.wait().unwrap().success(), "{words}");
        words
    }
}

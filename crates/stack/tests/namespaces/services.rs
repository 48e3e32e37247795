//! Servers for real clients, on threads in user space: HTTP, DNS over UDP and TCP, and memcached's text protocol.

use crate::roles::threads_of;
use crate::{pattern, respond};
use headway_stack::{NetStack, TcpListener, TcpStream, UdpSocket, Uthreads};
use headway_threads::{Mutex, spawn};
use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

type ServiceStream = TcpStream<Uthreads>;
type Items = Arc<Mutex<HashMap<String, Item>>>;

/// The address of every name.
pub(crate) const ADDRESS: [u8; 4] = [10, 9, 8, 7];

/// The page at every path.
pub(crate) fn page() -> Vec<u8> {
    let letter = |byte: &u8| b'a' + byte % 26;
    pattern(200_000, 3).iter().map(letter).collect()
}

/// What memcached keeps of a key.
#[derive(Clone)]
struct Item {
    flags: String,
    value: Vec<u8>,
}

pub(crate) fn serve(socket: &Path) {
    let (runtime, stack) = threads_of("kv", socket);
    runtime.run(move || {
        let names = UdpSocket::bind(&stack, 53).expect("the port");
        spawn(move || {
            let mut buffer = [0; 2000];
            loop {
                let (bytes, from) = names.recv_from(&mut buffer).expect("a datagram");
                if let Some(answer) = resolve(&buffer[..bytes]) {
                    names.send_to(&answer, from).expect("sent");
                }
            }
        });
        each_connection(&stack, 53, |stream| {
            while let Ok(query) = framed(stream) {
                let Some(answer) = resolve(&query) else { break };
                let length = (answer.len() as u16).to_be_bytes();
                let written = (&mut &*stream).write_all(&[&length[..], &answer].concat());
                if written.is_err() {
                    break;
                }
            }
        });
        let items = Items::new(Mutex::new(HashMap::new()));
        each_connection(&stack, 11211, move |stream| {
            // An error is the end of the connection.
            let _ = keep(stream, &items);
        });
        let page = page();
        let listener = TcpListener::bind(&stack, 80, 64).expect("the port");
        loop {
            let stream = listener.accept().expect("a connection");
            let page = page.clone();
            spawn(move || respond(&stream, &page));
        }
    });
}

/// Serves each connection to a port in a thread of its own.
fn each_connection(
    stack: &Arc<NetStack<Uthreads>>,
    port: u16,
    serve: impl Fn(&ServiceStream) + Clone + Send + 'static,
) {
    let listener = TcpListener::bind(stack, port, 64).expect("the port");
    spawn(move || {
        loop {
            let stream = listener.accept().expect("a connection");
            let serve = serve.clone();
            spawn(move || serve(&stream));
        }
    });
}

/// The next message of DNS over TCP, behind its length.
fn framed(stream: &ServiceStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    (&mut &*stream).read_exact(&mut length)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    (&mut &*stream).read_exact(&mut message)?;
    Ok(message)
}

/// The answer to a query for an IPv4 address; `None` for another message.
fn resolve(query: &[u8]) -> Option<Vec<u8>> {
    let (head, question) = query.split_at_checked(12)?;
    let mut end = 0;
    while *question.get(end)? != 0 {
        end += 1 + usize::from(question[end]);
    }
    let question = question.get(..end + 5)?;
    let mut answer = head[..2].to_vec();
    // An authoritative answer, with one question and one record.
    answer.extend([0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    answer.extend(question);
    // The name of the question, an address of the Internet, for a minute.
    answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
    answer.extend(ADDRESS);
    Some(answer)
}

/// Answers memcached's `get` and `set`.
fn keep(stream: &ServiceStream, items: &Items) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words[..] {
            ["get" | "gets", ref keys @ ..] => found(items, keys),
            ["set", key, flags, _, length, ref quiet @ ..] => {
                let length: usize = length.parse().map_err(io::Error::other)?;
                let mut value = vec![0; length + 2];
                reader.read_exact(&mut value)?;
                value.truncate(length);
                let flags = flags.to_owned();
                items.lock().insert(key.to_owned(), Item { flags, value });
                let answer = if quiet.is_empty() { "STORED\r\n" } else { "" };
                answer.into()
            }
            ["version"] => b"VERSION 1.6.0\r\n".to_vec(),
            ["quit"] => return Ok(()),
            _ => b"ERROR\r\n".to_vec(),
        };
        (&mut &*stream).write_all(&answer)?;
        line.clear();
    }
    Ok(())
}

fn found(items: &Items, keys: &[&str]) -> Vec<u8> {
    let mut answer = Vec::new();
    for &key in keys {
        let item = items.lock().get(key).cloned();
        if let Some(Item { flags, value }) = item {
            let head = format!("VALUE {key} {flags} {}\r\n", value.len());
            answer.extend(head.as_bytes());
            answer.extend(&value);
            answer.extend(b"\r\n");
        }
    }
    answer.extend(b"END\r\n");
    answer
}

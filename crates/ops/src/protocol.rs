//! The protocol between a running server and `headway ctl`: one JSON object a line, each way.
//!
//! | request | response |
//! |---|---|
//! | `{"command":"status"}` | `{"ok":STATUS}` |
//! | `{"command":"stacks"}` | `{"ok":STACKS}` |
//! | `{"command":"set","params":{"q":"5us"}}` | `{"ok":{"changes":[…]}}` |
//! | `{"command":"add","server":"10.0.0.1:7000,cores=4"}`, `drain` or `remove` | `{"ok":SERVER}`, of a rack's switch |
//! | anything else | `{"error":"what is wrong"}` |
//!
//! The fuzz target and its test include this file by its path: it knows nothing of servers.

use serde_json::{Map, Value, json};
use std::io::{self, BufRead, Read, Write};

/// A request is no longer than this, its newline included.
pub const REQUEST_BYTES_MAX: usize = 4096;
/// The most parameters that one request sets.
const PARAMS_MAX: usize = 64;

/// A client's request.
#[derive(Clone, PartialEq, Debug)]
pub enum CtlRequest {
    /// The server's status and counters.
    Status,
    /// Where the server's suspended requests stand.
    Stacks,
    /// New values of these parameters.
    Set(Vec<(String, String)>),
    /// An order about a server of a rack's switch.
    Server(ServerOrder, String),
}

/// What is to become of a rack's server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerOrder {
    /// It gets requests.
    Add,
    /// It gets no new request, and leaves once it has answered.
    Drain,
    /// It leaves at once.
    Remove,
}

impl ServerOrder {
    const ALL: [Self; 3] = [Self::Add, Self::Drain, Self::Remove];

    /// Its word in the protocol, and on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Drain => "drain",
            Self::Remove => "remove",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.word() == word)
    }
}

impl CtlRequest {
    /// Reads a line, with or without its newline.
    ///
    /// # Errors
    /// A sentence about the mistake.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        const FORM: &str = "a request is {\"command\":\"status\"}, {\"command\":\"stacks\"} or {\"command\":\"set\",\"params\":{\"KEY\":\"VALUE\"}} on one line";
        let value: Value =
            serde_json::from_slice(line).map_err(|error| format!("{error}; {FORM}"))?;
        let Value::Object(mut fields) = value else {
            return Err(FORM.into());
        };
        let command = fields.remove("command");
        let request = match command.as_ref().and_then(Value::as_str) {
            Some("status") => Self::Status,
            Some("stacks") => Self::Stacks,
            Some("set") => Self::Set(params(fields.remove("params"))?),
            Some(other) => match ServerOrder::of_word(other) {
                Some(order) => Self::Server(order, server(fields.remove("server"))?),
                None => return Err(format!("there is no command '{other}': {FORM}")),
            },
            None => return Err(FORM.into()),
        };
        match fields.keys().next() {
            Some(key) => Err(format!("'{key}' means nothing here: {FORM}")),
            None => Ok(request),
        }
    }

    /// The request as a line, with its newline.
    #[must_use]
    pub fn line(&self) -> String {
        let value = match self {
            Self::Status => json!({ "command": "status" }),
            Self::Stacks => json!({ "command": "stacks" }),
            Self::Set(params) => {
                let params = params
                    .iter()
                    .map(|(key, value)| (key.clone(), json!(value)));
                json!({ "command": "set", "params": params.collect::<Map<_, _>>() })
            }
            Self::Server(order, server) => json!({ "command": order.word(), "server": server }),
        };
        format!("{value}\n")
    }
}

/// A server as on the command line.
fn server(value: Option<Value>) -> Result<String, String> {
    match value {
        Some(Value::String(text)) => Ok(text),
        _ => Err("it needs \"server\", the address of one, such as \"10.0.0.1:7000\"".into()),
    }
}

/// Values are texts as in a spec; a number without a unit may stand as such.
fn params(value: Option<Value>) -> Result<Vec<(String, String)>, String> {
    let Some(Value::Object(params)) = value else {
        return Err("set needs \"params\", an object of parameters and their values".into());
    };
    if params.is_empty() || params.len() > PARAMS_MAX {
        return Err(format!("set takes 1 to {PARAMS_MAX} parameters"));
    }
    params
        .into_iter()
        .map(|(key, value)| match value {
            Value::String(text) => Ok((key, text)),
            Value::Number(number) => Ok((key, number.to_string())),
            _ => Err(format!("the value of '{key}' is no text, such as \"5us\"")),
        })
        .collect()
}

/// The server's answer.
pub type CtlResponse = Result<Value, String>;

/// The response as a line, with its newline.
#[must_use]
pub fn response_line(response: &CtlResponse) -> String {
    let value = match response {
        Ok(value) => json!({ "ok": value }),
        Err(error) => json!({ "error": error }),
    };
    format!("{value}\n")
}

/// Reads a response's line.
///
/// # Errors
/// The line is not a response.
pub fn parse_response(line: &[u8]) -> Result<CtlResponse, String> {
    let none = || "the server's answer is none of this protocol".to_string();
    let value: Value = serde_json::from_slice(line).map_err(|_| none())?;
    let Value::Object(mut fields) = value else {
        return Err(none());
    };
    match (fields.remove("ok"), fields.remove("error")) {
        (Some(value), None) => Ok(Ok(value)),
        (None, Some(Value::String(error))) => Ok(Err(error)),
        _ => Err(none()),
    }
}

/// Reads the next line of at most `bytes_max` bytes. `None` at the end.
///
/// # Errors
/// As the reader; [`io::ErrorKind::InvalidData`] when a line is longer, or cut off by the end.
pub fn read_line(reader: &mut impl BufRead, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    reader.take(bytes_max as u64).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) => {
            let what = if line.len() < bytes_max {
                "the line ends before its newline".to_string()
            } else {
                format!("a line has at most {bytes_max} bytes")
            };
            Err(io::Error::new(io::ErrorKind::InvalidData, what))
        }
    }
}

/// Writes a line and sees it off.
///
/// # Errors
/// As the writer.
pub fn write_line(mut writer: impl Write, line: &str) -> io::Result<()> {
    writer.write_all(line.as_bytes())?;
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        CtlRequest::parse(line.as_bytes()).unwrap_err()
    }

    #[test]
    fn requests_read_back_as_written() {
        let set = CtlRequest::Set(vec![
            ("factor".into(), "3".into()),
            ("q".into(), "5us".into()),
        ]);
        let servers =
            ServerOrder::ALL.map(|order| CtlRequest::Server(order, "10.0.0.1:7000,cores=4".into()));
        let plain = [CtlRequest::Status, CtlRequest::Stacks, set];
        for request in plain.into_iter().chain(servers) {
            assert_eq!(CtlRequest::parse(request.line().as_bytes()), Ok(request));
        }
        let number = CtlRequest::parse(br#"{"command":"set","params":{"factor":3}}"#);
        assert_eq!(
            number,
            Ok(CtlRequest::Set(vec![("factor".into(), "3".into())]))
        );
    }

    #[test]
    fn what_is_no_request_is_refused_with_what_would_be_one() {
        assert!(refused("").contains("a request is"));
        assert!(refused("[1]").contains("a request is"));
        assert!(refused(r#"{"command":"stop"}"#).contains("no command 'stop'"));
        assert!(refused(r#"{"command":"set"}"#).contains("needs \"params\""));
        assert!(refused(r#"{"command":"drain"}"#).contains("needs \"server\""));
        assert!(refused(r#"{"command":"set","params":{}}"#).contains("1 to 64"));
        assert!(refused(r#"{"command":"set","params":{"q":[]}}"#).contains("'q' is no text"));
        assert!(refused(r#"{"command":"status","now":true}"#).contains("'now' means nothing"));
    }

    #[test]
    fn responses_read_back_as_written() {
        for response in [
            Ok(json!({ "workers": [1, 2] })),
            Err("it is \"so\"\n".into()),
        ] {
            let line = response_line(&response);
            assert_eq!(line.matches('\n').count(), 1, "one line");
            assert_eq!(parse_response(line.as_bytes()), Ok(response));
        }
        assert!(parse_response(b"{}").is_err());
        assert!(parse_response(b"HTTP/1.1 400").is_err());
    }

    #[test]
    fn lines_are_bounded() {
        let mut lines = &b"one\ntwo\nthree"[..];
        assert_eq!(read_line(&mut lines, 4).unwrap(), Some(b"one\n".to_vec()));
        assert_eq!(read_line(&mut lines, 4).unwrap(), Some(b"two\n".to_vec()));
        assert!(
            read_line(&mut lines, 4)
                .unwrap_err()
                .to_string()
                .contains("at most 4 bytes")
        );
        let mut cut = &b"one"[..];
        assert!(
            read_line(&mut cut, 9)
                .unwrap_err()
                .to_string()
                .contains("before its newline")
        );
        assert_eq!(read_line(&mut &b""[..], 9).unwrap(), None);
    }
}

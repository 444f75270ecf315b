//! Just enough of HTTP to see what really crosses the connection.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Where `text` stands in the body.
    pub(crate) fn at(&self, text: &str) -> usize {
        self.body.find(text).unwrap_or_else(|| panic!("`{text}` is missing in: {}", self.body))
    }
}

/// Sends bytes and reads until the other end closes, or for a second.
pub(crate) fn exchange(address: SocketAddr, request: &str) -> String {
    let mut connection = TcpStream::connect(address).expect("it listens");
    // A server may refuse the rest of a broken request.
    let _ = connection.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let wait = Duration::from_secs(if request.contains("Connection: close") { 60 } else { 1 });
    connection.set_read_timeout(Some(wait)).expect("a timeout");
    let _ = connection.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Server-sent events as they come.
pub(crate) struct Events {
    connection: TcpStream,
    status: u16,
    read: String,
}

impl Events {
    pub(crate) fn open(address: SocketAddr, path: &str) -> Self {
        let mut connection = TcpStream::connect(address).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        connection.write_all(request.as_bytes()).expect("sent");
        connection.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let mut events = Self { connection, status: 0, read: String::new() };
        events.status = Answer::read(&events.until("\r\n\r\n")).status;
        events
    }

    /// Whether events follow.
    pub(crate) fn is_open(&self) -> bool {
        self.status == 200
    }

    /// The name and the data of the next event.
    pub(crate) fn next(&mut self) -> (String, String) {
        loop {
            let block = self.until("\n\n");
            let named = block.split_once("event: ").and_then(|(_, event)| event.split_once("\ndata: "));
            if let Some((name, data)) = named {
                return (name.to_owned(), data.trim().to_owned());
            }
        }
    }

    /// The data of the next event called `name` that holds `text`.
    pub(crate) fn wait_for(&mut self, name: &str, text: &str) -> String {
        loop {
            let (named, data) = self.next();
            assert!(named != "ended" || name == "ended", "the end came before {name} with {text}");
            if named == name && data.contains(text) {
                return data;
            }
        }
    }

    /// What comes before `mark`.
    fn until(&mut self, mark: &str) -> String {
        loop {
            if let Some(at) = self.read.find(mark) {
                let rest = self.read.split_off(at + mark.len());
                return std::mem::replace(&mut self.read, rest);
            }
            let mut piece = [0; 1024];
            let bytes = self.connection.read(&mut piece).expect("an event in time");
            assert!(bytes > 0, "the stream ended: {}", self.read);
            self.read.push_str(&String::from_utf8_lossy(&piece[..bytes]));
        }
    }
}

//! A page that stays open in Chromium and is inspected by the DevTools protocol over a WebSocket (RFC 6455).

use super::chromium;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// A page in its own browser, which is ended on drop.
pub struct OpenPage {
    browser: Child,
    connection: TcpStream,
    asked: u64,
}

impl OpenPage {
    /// Opens `url` in a window of `width` by `height` pixels. The browser keeps its files in `folder`.
    ///
    /// # Panics
    /// Chromium fails.
    pub fn open(folder: &Path, url: &str, (width, height): (u32, u32)) -> Self {
        let mut browser = chromium::command(folder)
            .arg(format!("--window-size={width},{height}"))
            .args(["--remote-debugging-port=0", url])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("Chromium starts");
        let said = BufReader::new(browser.stderr.take().expect("standard error is piped"));
        let mut lines = said.lines().map(|line| line.expect("text"));
        let address = lines.find_map(|line| {
            let (_, rest) = line.split_once("DevTools listening on ws://")?;
            Some(rest.split('/').next().unwrap_or_default().to_owned())
        });
        // Its messages must go somewhere until it ends.
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.expect("Chromium says where it listens");
        let path = crate::wait_until("Chromium has the page", || page(&address));
        let mut open = Self { browser, connection: upgraded(&address, &path), asked: 0 };
        // A script in the blank page before it cannot open another address: the browser drops that for its own.
        let is_open = format!("document.readyState === 'complete' && location.href === new URL({}).href", json!(url));
        crate::wait_until("the page is loaded", || open.evaluate(&is_open).as_bool().filter(|is_open| *is_open));
        open
    }

    /// Returns the value of a JavaScript expression in the page, or null while another page is loaded.
    ///
    /// # Panics
    /// Chromium is gone.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        self.call("Runtime.evaluate", &json!({ "expression": expression, "returnByValue": true }))["result"]["value"]
            .take()
    }

    /// Opens another address.
    ///
    /// # Panics
    /// Chromium is gone.
    pub fn go(&mut self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
    }

    /// Sets the size of the page in pixels, which may be less than a window's minimum.
    ///
    /// # Panics
    /// Chromium is gone.
    pub fn resize(&mut self, (width, height): (u32, u32)) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Applies the page's print style.
    ///
    /// # Panics
    /// Chromium is gone.
    pub fn print_media(&mut self) {
        self.call("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
    }

    /// Calls a method of the protocol and returns its result.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        self.send(&json!({ "id": self.asked, "method": method, "params": params }).to_string());
        loop {
            let mut message: Value = serde_json::from_slice(&self.receive()).expect("Chromium answers in JSON");
            if message["id"] == self.asked {
                return message["result"].take();
            }
        }
    }

    /// Sends a text frame. Clients must mask their frames; a mask of zeros leaves the payload unchanged (section 5.3).
    fn send(&mut self, text: &str) {
        let length = u64::try_from(text.len()).expect("a length");
        let head = [&[0x81, 0x80 | 127][..], &length.to_be_bytes(), &[0; 4]].concat();
        self.connection.write_all(&[&head, text.as_bytes()].concat()).expect("Chromium listens");
    }

    /// Returns the payload of the next frame (section 5.2). Chromium does not fragment its messages.
    fn receive(&mut self) -> Vec<u8> {
        let mut read = |bytes: usize| {
            let mut read = vec![0; bytes];
            self.connection.read_exact(&mut read).expect("Chromium answers");
            read
        };
        let bytes = match read(2)[1] {
            126 => read(2),
            127 => read(8),
            short => vec![short],
        };
        let length = bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        read(length)
    }
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        // timeout(1) hands SIGTERM on to the browser, which it could not with SIGKILL.
        if let Ok(pid) = i32::try_from(self.browser.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        let _ = self.browser.wait();
    }
}

/// Returns the path of the page's WebSocket, or `None` if there is no page yet.
fn page(address: &str) -> Option<String> {
    let mut connection = TcpStream::connect(address).expect("Chromium listens");
    write!(connection, "GET /json/list HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        answer.read_line(&mut line).expect("an answer");
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    answer.read_exact(&mut body).expect("the answer's body");
    let pages: Value = serde_json::from_slice(&body).expect("JSON");
    let page = pages.as_array()?.iter().find(|page| page["type"] == "page")?;
    let (_, path) = page["webSocketDebuggerUrl"].as_str()?.strip_prefix("ws://")?.split_once('/')?;
    Some(format!("/{path}"))
}

/// Opens a WebSocket connection (section 4.1).
fn upgraded(address: &str, path: &str) -> TcpStream {
    let mut connection = TcpStream::connect(address).expect("Chromium listens");
    connection.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13";
    let key = "Sec-WebSocket-Key: bGluZXJhdGUgdGVzdHM=";
    write!(connection, "GET {path} HTTP/1.1\r\nHost: {address}\r\n{upgrade}\r\n{key}\r\n\r\n").expect("sent");
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        connection.read_exact(&mut byte).expect("an answer");
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    connection
}

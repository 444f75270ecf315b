//! The NATS server, on its own port.

use super::port::ClaimedPort;
use crate::{program, wait_until};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running server, which is ended on drop.
pub struct NatsServer {
    /// Folder of its configuration, log and state.
    pub directory: TempDir,
    /// TCP port on 127.0.0.1.
    pub port: u16,
    process: Option<Child>,
    _claim: ClaimedPort,
}

impl NatsServer {
    /// Starts a server. `configuration` returns the text of its configuration file from its address and the folder of
    /// its state. It needs the program `nats-server`.
    pub fn start(configuration: impl FnOnce(&str, &Path) -> String) -> Self {
        let directory = TempDir::new().expect("a directory");
        let claim = ClaimedPort::new();
        let port = claim.number;
        let text = configuration(&format!("127.0.0.1:{port}"), directory.path());
        std::fs::write(directory.path().join("nats.conf"), text).expect("the configuration");
        let mut server = Self { directory, port, process: None, _claim: claim };
        server.restart();
        server
    }

    /// Returns the address of the server for clients.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Returns the number of its process.
    ///
    /// # Panics
    /// It was ended.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("the server runs").id()
    }

    /// Ends the server at once, as a power failure does, but keeps its port, configuration and state.
    pub fn end(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended already.
            let _ = process.kill();
            process.wait().expect("nats-server is our child");
        }
    }

    /// Starts the server again, and waits until it accepts connections.
    pub fn restart(&mut self) {
        self.end();
        let process = Command::new(program("nats-server").expect("the test declares that it needs nats-server"))
            .arg("-c")
            .arg(self.directory.path().join("nats.conf"))
            .arg("-l")
            .arg(self.directory.path().join("log"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server starts");
        self.process = Some(process);
        let port = self.port;
        wait_until("nats-server accepts connections", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.end();
    }
}

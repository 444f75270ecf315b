//! Debian's iperf3 as a server. Tests declare `Program("iperf3")`.

use super::port::ClaimedPort;
use crate::wait_until;
use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A server of iperf3 on loopback; it ends with this.
pub struct Iperf3 {
    process: Child,
    port: ClaimedPort,
    folder: TempDir,
}

impl Iperf3 {
    /// Starts it with further options.
    ///
    /// # Panics
    /// It does not listen within a minute.
    pub fn serve(options: &[&str]) -> Self {
        let (port, folder) = (ClaimedPort::new(), tempfile::tempdir().expect("a folder"));
        let said = File::create(folder.path().join("said")).expect("a file");
        let process = Command::new("iperf3")
            .args(["--server", "--forceflush", "--port", &port.number.to_string()])
            .args(options)
            .stdin(Stdio::null())
            .stdout(said.try_clone().expect("dup"))
            .stderr(said)
            .spawn()
            .expect("iperf3 starts");
        let server = Self { process, port, folder };
        // A connection would be taken for a client's. Port, state and inode stand in the kernel's table of sockets.
        let listens = format!(":{:04X} ", server.port.number);
        wait_until("iperf3 listens", || {
            let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
            let listening = |line: &str| line.contains(&listens) && line.split_whitespace().nth(3) == Some("0A");
            tables.iter().flat_map(|table| table.lines()).any(listening).then_some(())
        });
        server
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// What it has printed.
    pub fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).unwrap_or_default()
    }

    /// Ends it at once, as the kernel does when memory is short.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Asks it to end, as who types Ctrl-C does.
    pub fn interrupt(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
    }
}

impl Drop for Iperf3 {
    fn drop(&mut self) {
        self.kill();
    }
}

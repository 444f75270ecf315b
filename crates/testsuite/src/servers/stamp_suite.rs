//! stamp-suite, a sender and reflector of STAMP. Tests declare `Program("stamp-suite")`.

use super::port::ClaimedPort;
use crate::wait_until;
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A reflector of stamp-suite on loopback, which is ended on drop.
pub struct StampSuite {
    process: Child,
    port: ClaimedPort,
    _folder: TempDir,
}

impl StampSuite {
    /// Starts a reflector that counts the packets of each session, with further options.
    ///
    /// # Panics
    /// It does not listen within a minute.
    pub fn reflect(options: &[&str]) -> Self {
        let port = ClaimedPort::new();
        let folder = tempfile::tempdir().expect("a folder");
        let log = File::create(folder.path().join("log")).expect("a file");
        let process = Command::new("stamp-suite")
            .args(["--is-reflector", "--stateful-reflector", "--local-addr", "127.0.0.1", "--local-port"])
            .arg(port.number.to_string())
            .args(options)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("dup"))
            .stderr(log)
            .spawn()
            .expect("stamp-suite starts");
        let suite = Self { process, port, _folder: folder };
        let listens = format!(":{:04X} ", suite.port.number);
        wait_until("stamp-suite listens", || {
            let table = fs::read_to_string("/proc/net/udp").unwrap_or_default();
            table.contains(&listens).then_some(())
        });
        suite
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// Runs a sender to `port` on loopback, with further options. Returns its summary.
    ///
    /// # Panics
    /// It fails, or takes longer than a minute.
    pub fn send(port: u16, options: &[&str]) -> Value {
        let output = Command::new("timeout")
            .args(["60", "stamp-suite", "--remote-addr", "127.0.0.1", "--local-addr", "127.0.0.1", "--remote-port"])
            .arg(port.to_string())
            .args(["--output-format", "json"])
            .args(options)
            .output()
            .expect("timeout starts");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "stamp-suite: {log}");
        let lines = String::from_utf8_lossy(&output.stdout);
        let summary = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).next_back();
        summary.unwrap_or_else(|| panic!("stamp-suite printed no summary: {log}"))
    }

    /// Writes a key of 32 bytes, in hexadecimal digits, to a file that only this user can read. Returns its digits.
    ///
    /// # Panics
    /// The file cannot be written.
    pub fn write_key(file: &Path) -> String {
        use std::os::unix::fs::PermissionsExt as _;
        let digits = "000102030405060708090a0b0c0d0e0f".repeat(2);
        fs::write(file, &digits).expect("written");
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("set");
        digits
    }
}

impl Drop for StampSuite {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

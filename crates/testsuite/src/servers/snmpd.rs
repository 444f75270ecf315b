//! The SNMP agent snmpd of net-snmp, on its own port.

use super::port::ClaimedPort;
use crate::program;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running service, which is ended on drop.
pub struct Snmpd {
    /// Folder of its configuration, log and state.
    pub directory: TempDir,
    /// UDP port on 127.0.0.1.
    pub port: u16,
    process: Child,
    _claim: ClaimedPort,
}

impl Snmpd {
    /// Starts a service with `settings` in its configuration. It needs the program `snmpd`.
    pub fn start(settings: &str) -> Self {
        let directory = TempDir::new().expect("a directory");
        let claim = ClaimedPort::new();
        let port = claim.number;
        let settings = format!("agentaddress udp:127.0.0.1:{port}\n{settings}");
        std::fs::write(directory.path().join("snmpd.conf"), settings).expect("the configuration");
        let process = spawn(directory.path());
        Self { directory, port, process, _claim: claim }
    }

    /// Ends the service, but keeps its port and settings.
    pub fn end(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        self.process.wait().expect("snmpd is our child");
    }

    /// Starts the service again, with the same port and settings.
    pub fn restart(&mut self) {
        self.end();
        self.process = spawn(self.directory.path());
    }
}

impl Drop for Snmpd {
    fn drop(&mut self) {
        self.end();
    }
}

fn spawn(directory: &Path) -> Child {
    Command::new(program("snmpd").expect("the test declares that it needs snmpd"))
        // Only one service of a machine can serve SMUX.
        .args(["-f", "-r", "-I", "-smux", "-C", "-c"])
        .arg(directory.join("snmpd.conf"))
        .arg("-Lf")
        .arg(directory.join("log"))
        .arg("-p")
        .arg(directory.join("pid"))
        // Where it keeps a snmpd.conf of its own making.
        .env("SNMP_PERSISTENT_DIR", directory.join("state"))
        .env("MIBS", "")
        .stdin(Stdio::null())
        .spawn()
        .expect("snmpd starts")
}

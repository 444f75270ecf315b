//! net-snmp's snmpd on a port of the test's own. The program's tests use it too.

use std::io::Write as _;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running service, ended with the test.
pub(crate) struct Snmpd {
    pub(crate) directory: TempDir,
    pub(crate) port: u16,
    process: Child,
}

impl Snmpd {
    /// None if there is no snmpd here, which is a failure in CI and said aloud elsewhere.
    pub(crate) fn start(test: &str, settings: &str) -> Option<Self> {
        let Some(program) = program() else {
            assert!(std::env::var_os("CI").is_none(), "{test} needs snmpd in CI");
            // Not eprintln!, which the test harness would swallow.
            writeln!(std::io::stderr(), "SKIPPED: {test}: it needs snmpd (Debian package snmpd)").expect("stderr");
            return None;
        };
        let directory = TempDir::new().expect("a directory");
        let probe = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let port = probe.local_addr().expect("an address").port();
        let settings = format!("agentaddress udp:127.0.0.1:{port}\n{settings}");
        std::fs::write(directory.path().join("snmpd.conf"), settings).expect("the configuration");
        drop(probe);
        let process = spawn(&program, directory.path());
        Some(Self { directory, port, process })
    }

    /// Ends the service; its port and its settings stay.
    pub(crate) fn end(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        self.process.wait().expect("snmpd is our child");
    }

    /// The same service anew.
    #[allow(dead_code, reason = "not every test that has this module restarts it")]
    pub(crate) fn restart(&mut self) {
        self.end();
        self.process = spawn(&program().expect("found before"), self.directory.path());
    }
}

impl Drop for Snmpd {
    fn drop(&mut self) {
        self.end();
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    places.map(|place| place.join("snmpd")).find(|program| program.is_file())
}

fn spawn(program: &Path, directory: &Path) -> Child {
    Command::new(program)
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

//! Prometheus and Alertmanager of Debian, each on its own port.

use super::port::ClaimedPort;
use crate::program;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running Prometheus that takes remote writes. It is ended on drop.
pub struct Prometheus {
    server: Server,
}

/// A running Alertmanager without receivers and without a cluster. It is ended on drop.
pub struct Alertmanager {
    server: Server,
}

struct Server {
    port: u16,
    process: Child,
    _directory: TempDir,
    _claim: ClaimedPort,
}

impl Prometheus {
    /// Starts a server that scrapes `scraped`, a list of `host:port`, every second. It needs the program `prometheus`.
    pub fn start(scraped: &[String]) -> Self {
        let directory = TempDir::new().expect("a directory");
        let configuration = directory.path().join("prometheus.yml");
        let targets = serde_json::to_string(scraped).expect("JSON");
        let text = format!(
            "global: {{scrape_interval: 1s}}\n\
             scrape_configs: [{{job_name: linerate, honor_labels: true, static_configs: [{{targets: {targets}}}]}}]\n"
        );
        std::fs::write(&configuration, text).expect("the configuration");
        let claim = ClaimedPort::new();
        let mut command = Command::new(program("prometheus").expect("the test declares that it needs prometheus"));
        command
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{}", claim.number))
            .arg("--web.enable-remote-write-receiver");
        Self { server: Server::start(command, directory, claim) }
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.server.port
    }
}

impl Alertmanager {
    /// Starts a server. It needs the program `prometheus-alertmanager`.
    pub fn start() -> Self {
        let directory = TempDir::new().expect("a directory");
        let configuration = directory.path().join("alertmanager.yml");
        std::fs::write(&configuration, "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
            .expect("the configuration");
        let claim = ClaimedPort::new();
        let alertmanager = program("prometheus-alertmanager");
        let mut command = Command::new(alertmanager.expect("the test declares that it needs prometheus-alertmanager"));
        command
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!("--storage.path={}", directory.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{}", claim.number))
            .arg("--cluster.listen-address=");
        Self { server: Server::start(command, directory, claim) }
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.server.port
    }
}

impl Server {
    fn start(mut command: Command, directory: TempDir, claim: ClaimedPort) -> Self {
        let log = File::create(directory.path().join("log")).expect("a log");
        let process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("the server starts");
        Self { port: claim.number, process, _directory: directory, _claim: claim }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! The lab shared by all tools: two hosts joined by one link, created by `linerate lab --keep`.

use crate::process::{self, Output, Running};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Lab host of the sender or client.
pub(crate) const SENDER: &str = "a";

/// Lab host of the receiver or server.
pub(crate) const RECEIVER: &str = "b";

/// Time limit of a short command inside a lab host.
const LIMIT: Duration = Duration::from_secs(60);

/// Time within which a peer's server must listen.
const LISTEN_LIMIT: Duration = Duration::from_secs(5);

/// A lab that goes down when dropped.
pub(crate) struct Lab {
    program: PathBuf,
    store: PathBuf,
    up: bool,
}

impl Lab {
    /// Brings up the bench `cable` with `program`, or with a linerate built now. Records go to a store in `folder`.
    pub(crate) fn up(program: Option<&Path>, folder: &Path) -> Result<Self> {
        Self::up_with(program, folder, &["--bench", "cable"], &[])
    }

    /// Brings up a lab with the options `bench` of `linerate lab`, and runs the linerate command `first` in it.
    ///
    /// The lab's hosts may use the folders named in `first`.
    pub(crate) fn up_with(program: Option<&Path>, folder: &Path, bench: &[&str], first: &[String]) -> Result<Self> {
        let program = find_or_build(program)?;
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        let mut lab = Self { program, store: folder.join("store.sqlite"), up: false };
        let mut command = Command::new(&lab.program);
        // Its processes must outlive it and Ctrl-C, so it gets its own process group and is not started by
        // `process::run`.
        command.arg("lab").args(bench).arg("--keep").stdin(Stdio::null()).process_group(0);
        if !first.is_empty() {
            command.arg("--").args(first).arg("--store").arg(&lab.store).stdout(Stdio::null());
        }
        let status = command.status().context("starting `linerate lab`")?;
        if !status.success() {
            bail!("`linerate lab {} --keep` failed ({status}); its message is above", bench.join(" "));
        }
        lab.up = true;
        process::check_interrupt()?;
        Ok(lab)
    }

    /// Returns a linerate command for the lab's hosts that prints its record as JSON.
    pub(crate) fn linerate(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).arg("--json").arg("--store").arg(&self.store);
        command
    }

    /// Returns a command inside a lab host.
    pub(crate) fn inside(&self, host: &str, words: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["lab", "shell", host, "--"]).args(words);
        command
    }

    /// Runs a short command inside a lab host to its end.
    pub(crate) fn ask(&self, host: &str, words: &[&str]) -> Result<Output> {
        process::run(self.inside(host, words), LIMIT)
    }

    /// Returns the IPv4 address of a host's link.
    pub(crate) fn address(&self, host: &str) -> Result<String> {
        let listing = self.ask(host, &["ip", "-j", "-4", "address", "show", "scope", "global"])?.stdout;
        first_address(&listing).with_context(|| format!("lab host {host} has no IPv4 address: {listing}"))
    }

    /// Waits until a server listens on `port` in the receiving host. Does not connect, because some servers serve once.
    pub(crate) fn await_listening(&self, server: &mut Running, port: u16) -> Result<()> {
        let began = Instant::now();
        let ending = format!(":{port}");
        loop {
            let sockets = self.ask(RECEIVER, &["ss", "-Hlntu"])?.stdout;
            if sockets.split_whitespace().any(|word| word.ends_with(&ending)) {
                return Ok(());
            }
            if !server.is_running()? {
                bail!("the peer's server ended before it listened");
            }
            if began.elapsed() > LISTEN_LIMIT {
                bail!("the peer's server did not listen on port {port} within {} s", LISTEN_LIMIT.as_secs());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Takes the lab down.
    pub(crate) fn down(mut self) -> Result<()> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.up) {
            return Ok(());
        }
        let mut command = Command::new(&self.program);
        command.args(["lab", "down"]);
        // `process::run` would fail after an interrupt.
        let output = command.output().context("starting `linerate lab down`")?;
        if !output.status.success() {
            bail!("`linerate lab down` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Err(error) = self.take_down() {
            eprintln!("warning: {error:#}; the lab may still be up");
        }
    }
}

/// Returns the linerate to measure: `program`, or one built now with the release profile.
pub(crate) fn find_or_build(program: Option<&Path>) -> Result<PathBuf> {
    match program {
        Some(program) => program.canonicalize().with_context(|| format!("finding {}", program.display())),
        None => build(&["--package", "linerate"], "linerate"),
    }
}

/// Builds the packages of `selection` with the profile `dist`, as for a release, and returns the program `name`.
pub(crate) fn build(selection: &[&str], name: &str) -> Result<PathBuf> {
    build_as("dist", selection, name)
}

/// Builds a program with a profile and returns its path.
pub(crate) fn build_as(profile: &str, selection: &[&str], name: &str) -> Result<PathBuf> {
    let mut command = process::cargo();
    command.args(["build", "--profile", profile, "--message-format", "json-render-diagnostics"]).args(selection);
    let output = command.stderr(Stdio::inherit()).output().context("starting `cargo build`")?;
    if !output.status.success() {
        bail!("building {name} with the profile `{profile}` failed; cargo's message is above");
    }
    executable(&String::from_utf8_lossy(&output.stdout), name)
        .with_context(|| format!("cargo built no program called {name}"))
}

/// Finds the program's file in cargo's messages.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// Returns the first address in the output of `ip -j address`.
fn first_address(listing: &str) -> Option<String> {
    let links: Value = serde_json::from_str(listing).ok()?;
    let addresses = links.as_array()?.iter().filter_map(|link| link["addr_info"].as_array()).flatten();
    addresses.filter_map(|address| address["local"].as_str()).next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_address() {
        let listing = r#"[{},{"ifname":"eth0","addr_info":[{"family":"inet","local":"198.18.0.1","prefixlen":24}]}]"#;
        assert_eq!(first_address(listing).as_deref(), Some("198.18.0.1"));
        assert_eq!(first_address("[{}]"), None);
        assert_eq!(first_address("Cannot open network namespace"), None);
    }

    #[test]
    fn finds_the_program_among_cargos_messages() {
        let messages = "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"serde\"},\"executable\":null}\n\
            {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"linerate\"},\"executable\":\"/t/dist/linerate\"}\n";
        assert_eq!(executable(messages, "linerate"), Some(PathBuf::from("/t/dist/linerate")));
        assert_eq!(executable("{}\n", "linerate"), None);
    }
}

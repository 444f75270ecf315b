//! Child processes that never outlive the chore. Each leads its own process group, which is killed when the child is
//! stopped, dropped or late, or when the chore is interrupted.

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fmt;
use std::io::{ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Interval between two checks of a running child. It is long enough not to disturb a measurement.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Time that a stopped child, and then its descendants, have to end by themselves.
const GRACE: Duration = Duration::from_secs(3);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The cargo that runs this chore.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

/// Makes Ctrl-C and SIGTERM end waits with an error instead of ending the process, so that everything is cleaned up.
pub(crate) fn catch_interrupts() -> Result<()> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed)).context("installing the Ctrl-C handler")
}

/// Fails if Ctrl-C was pressed.
pub(crate) fn check_interrupt() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}

/// Output of a child.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Error of a child that ended without success.
#[derive(Debug)]
pub(crate) struct CommandFailed {
    /// Exit code. `None` if a signal ended the child.
    pub(crate) code: Option<i32>,
    /// Last lines of its output.
    pub(crate) output: String,
    command: String,
    status: ExitStatus,
}

impl fmt::Display for CommandFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` failed ({}): {}", self.command, self.status, self.output)
    }
}

impl std::error::Error for CommandFailed {}

/// A running child.
pub(crate) struct Running {
    command: String,
    child: Child,
    /// Set once the child was waited for. Its process group may be gone then.
    status: Option<ExitStatus>,
    stdout: Option<Collected>,
    stderr: Option<Collected>,
}

/// Output of a pipe, collected by a thread that reads until the other end is closed.
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Running {
    /// Starts a child and collects its output.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let line = command_line(&command);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting `{line}`"))?;
        let stdout = child.stdout.take().map(Collected::from);
        let stderr = child.stderr.take().map(Collected::from);
        Ok(Self { command: line, child, status: None, stdout, stderr })
    }

    /// Waits until the child has ended by itself, with success.
    ///
    /// # Errors
    ///
    /// [`CommandFailed`] if it ended without success. Another error if it is late or the chore is interrupted.
    pub(crate) fn finish(self, limit: Duration) -> Result<Output> {
        let command = self.command.clone();
        let (status, output) = self.end(limit)?;
        let Some(status) = status else {
            bail!("`{command}` did not end within {} s", limit.as_secs());
        };
        if !status.success() {
            let text = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
            return Err(CommandFailed { code: status.code(), output: last_lines(text), command, status }.into());
        }
        Ok(output)
    }

    /// Waits until the child has ended by itself, or kills it if it is late. Returns its status, `None` if it was
    /// killed, and its output.
    ///
    /// # Errors
    ///
    /// The chore is interrupted.
    pub(crate) fn end(mut self, limit: Duration) -> Result<(Option<ExitStatus>, Output)> {
        let status = self.wait(limit, true)?;
        if status.is_none() {
            self.signal(Signal::SIGKILL);
        }
        Ok((status, self.output(GRACE)))
    }

    /// Sends `signal` to the child, and kills it if it has not ended within [`GRACE`]. Returns its output.
    pub(crate) fn stop(self, signal: Signal) -> Result<Output> {
        self.stop_within(signal, GRACE)
    }

    /// Sends `signal` to the child, and kills it and its descendants if they have not ended within `grace`.
    pub(crate) fn stop_within(mut self, signal: Signal, grace: Duration) -> Result<Output> {
        if self.wait(Duration::ZERO, false)?.is_none() {
            self.signal(signal);
            self.wait(grace, false)?;
        }
        Ok(self.output(grace))
    }

    /// Waits for the first line of the child's standard output.
    ///
    /// # Errors
    ///
    /// The child ends without a line, is late, or the chore is interrupted.
    pub(crate) fn first_line(&mut self, limit: Duration) -> Result<String> {
        let started = Instant::now();
        loop {
            let has_ended = !self.is_running()?;
            let text = self.stdout.as_ref().map(Collected::text).unwrap_or_default();
            if let Some((line, _)) = text.split_once('\n') {
                return Ok(line.to_owned());
            }
            if has_ended || started.elapsed() >= limit {
                self.wait_for_pipes(GRACE);
                let errors = last_lines(&self.stderr.as_ref().map(Collected::text).unwrap_or_default());
                bail!("`{}` wrote no line: {errors}", self.command);
            }
            check_interrupt()?;
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Returns whether the child has not ended yet.
    pub(crate) fn is_running(&mut self) -> Result<bool> {
        Ok(self.wait(Duration::ZERO, false)?.is_none())
    }

    fn wait(&mut self, limit: Duration, interruptible: bool) -> Result<Option<ExitStatus>> {
        let started = Instant::now();
        loop {
            if self.status.is_none() {
                self.status = self.child.try_wait().with_context(|| format!("waiting for `{}`", self.command))?;
            }
            if self.status.is_some() || started.elapsed() >= limit {
                return Ok(self.status);
            }
            if interruptible {
                check_interrupt()?;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Signals the whole group. Ignores the error of a group that is gone.
    fn signal(&self, signal: Signal) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            let _ = killpg(Pid::from_raw(group), signal);
        }
    }

    /// Returns the output of the child and its descendants, and kills those that still write after `grace`.
    ///
    /// A process that left the group may keep the pipes open; its later output is ignored.
    fn output(&mut self, grace: Duration) -> Output {
        self.wait_for_pipes(grace);
        self.signal(Signal::SIGKILL);
        self.wait_for_pipes(GRACE);
        Output {
            stdout: self.stdout.as_ref().map(Collected::text).unwrap_or_default(),
            stderr: self.stderr.as_ref().map(Collected::text).unwrap_or_default(),
        }
    }

    /// Waits until both pipes are closed, at most for `grace`.
    fn wait_for_pipes(&self, grace: Duration) {
        let started = Instant::now();
        while [&self.stdout, &self.stderr].into_iter().flatten().any(|pipe| !pipe.reader.is_finished())
            && started.elapsed() < grace
        {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        if self.status.is_none() {
            let _ = self.child.wait();
        }
    }
}

/// Runs a command to its end, with success.
pub(crate) fn run(command: Command, limit: Duration) -> Result<Output> {
    Running::start(command)?.finish(limit)
}

impl Collected {
    fn from(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            // Bytes read before an error are kept. The child's status shows its failure.
            loop {
                match pipe.read(&mut buffer) {
                    Ok(length @ 1..) => {
                        collected.lock().unwrap_or_else(PoisonError::into_inner).extend(&buffer[..length]);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => (),
                    Ok(_) | Err(_) => return,
                }
            }
        });
        Self { bytes, reader }
    }

    /// Returns the text collected so far.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Returns the last eight lines, which usually have a program's error message. valgrind adds five to it.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn first_line_is_returned_while_the_child_runs() {
        let limit = Duration::from_secs(60);
        let mut child = Running::start(shell("echo one; echo two; exec sleep 60")).unwrap();
        assert_eq!(child.first_line(limit).unwrap(), "one");
        let mut silent = Running::start(shell("echo why >&2; exit 1")).unwrap();
        assert!(silent.first_line(limit).unwrap_err().to_string().ends_with("wrote no line: why"));
    }

    #[test]
    fn collects_both_pipes() {
        let output = run(shell("echo out; echo err >&2"), Duration::from_secs(60)).unwrap();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", "err\n"));
    }

    #[test]
    fn error_has_command_status_and_output() {
        let error = run(shell("echo no such host >&2; exit 3"), Duration::from_secs(60)).unwrap_err().to_string();
        assert!(error.contains("sh -c") && error.contains("no such host") && error.contains('3'), "{error}");
    }

    #[test]
    fn ends_a_late_child_with_its_children() {
        let started = Instant::now();
        let error = run(shell("sleep 300 & sleep 300"), Duration::from_millis(100)).unwrap_err().to_string();
        assert!(error.contains("did not end within"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn pipes_held_outside_the_group_do_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!("echo out; setsid sleep 300 & echo $! > {}", pid.display());
        let output = run(shell(&script), Duration::from_secs(60)).unwrap();
        assert_eq!(output.stdout, "out\n");
        let pid: i32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }

    #[test]
    fn output_after_the_signal_is_collected() {
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let script =
            format!("trap 'echo bye; exit' TERM; echo up; : > {}; while :; do sleep 0.05; done", ready.display());
        let running = Running::start(shell(&script)).unwrap();
        while !ready.exists() {
            thread::sleep(POLL_INTERVAL);
        }
        // A shell cannot trap SIGINT if it was started with SIGINT ignored, as in the background of another shell.
        assert_eq!(running.stop_within(Signal::SIGTERM, Duration::from_secs(60)).unwrap().stdout, "up\nbye\n");
    }
}

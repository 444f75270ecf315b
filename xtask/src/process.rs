//! Child processes that never outlive the chore: each leads its own process group, which is killed whole when the child is
//! stopped, dropped, late, or the chore is interrupted.

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

/// How often a running child is looked at; long enough to leave a measurement alone.
const LOOK: Duration = Duration::from_millis(20);

/// How long a stopped child, and then what it started, may take to end by itself.
const GRACE: Duration = Duration::from_secs(3);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The cargo that runs this chore.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

/// From here on Ctrl-C and SIGTERM end waits with an error instead of the process, so that everything is cleaned up.
pub(crate) fn catch_interrupts() -> Result<()> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed)).context("installing the Ctrl-C handler")
}

/// An error if Ctrl-C was pressed.
pub(crate) fn check_interrupt() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}

/// What a child wrote.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A child ended without success.
#[derive(Debug)]
pub(crate) struct CommandFailed {
    /// Its exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
    /// The last lines of what it wrote.
    pub(crate) said: String,
    what: String,
    status: ExitStatus,
}

impl fmt::Display for CommandFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` failed ({}): {}", self.what, self.status, self.said)
    }
}

impl std::error::Error for CommandFailed {}

/// A running child.
pub(crate) struct Running {
    what: String,
    child: Child,
    /// Set once the child was waited for; its process group may be gone then.
    status: Option<ExitStatus>,
    stdout: Option<Collected>,
    stderr: Option<Collected>,
}

/// What comes out of a pipe, by a thread that reads until nobody holds the other end.
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Running {
    /// Starts a child; what it writes is collected.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let what = describe(&command);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting `{what}`"))?;
        let stdout = child.stdout.take().map(Collected::from);
        let stderr = child.stderr.take().map(Collected::from);
        Ok(Self { what, child, status: None, stdout, stderr })
    }

    /// Waits for the child to end by itself, with success.
    ///
    /// # Errors
    ///
    /// [`CommandFailed`] if it ended without success; another error if it is late or the chore is interrupted.
    pub(crate) fn finish(self, limit: Duration) -> Result<Output> {
        let what = self.what.clone();
        let (status, output) = self.end(limit)?;
        let Some(status) = status else {
            bail!("`{what}` did not end within {} s", limit.as_secs());
        };
        if !status.success() {
            let said = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
            let said = last_lines(said);
            return Err(CommandFailed { code: status.code(), said, what, status }.into());
        }
        Ok(output)
    }

    /// Waits for the child to end by itself, and kills it if it is late: then it has no status. Returns what it wrote, too.
    ///
    /// # Errors
    ///
    /// If the chore is interrupted.
    pub(crate) fn end(mut self, limit: Duration) -> Result<(Option<ExitStatus>, Output)> {
        let status = self.wait(limit, true)?;
        if status.is_none() {
            self.signal(Signal::SIGKILL);
        }
        Ok((status, self.output()))
    }

    /// Asks the child to end by `signal`, or kills it after a grace; returns what it wrote.
    pub(crate) fn stop(self, signal: Signal) -> Result<Output> {
        self.stop_within(signal, GRACE)
    }

    fn stop_within(mut self, signal: Signal, grace: Duration) -> Result<Output> {
        if self.wait(Duration::ZERO, false)?.is_none() {
            self.signal(signal);
            self.wait(grace, false)?;
        }
        Ok(self.output())
    }

    /// Waits for the first line that the child writes to its standard output.
    ///
    /// # Errors
    ///
    /// If it ends before, is late, or the chore is interrupted.
    pub(crate) fn first_line(&mut self, limit: Duration) -> Result<String> {
        let began = Instant::now();
        loop {
            let ended = !self.is_running()?;
            let text = self.stdout.as_ref().map(Collected::text).unwrap_or_default();
            if let Some((line, _)) = text.split_once('\n') {
                return Ok(line.to_owned());
            }
            if ended || began.elapsed() >= limit {
                self.wait_for_last_words();
                let said = last_lines(&self.stderr.as_ref().map(Collected::text).unwrap_or_default());
                bail!("`{}` wrote no line: {said}", self.what);
            }
            check_interrupt()?;
            thread::sleep(LOOK);
        }
    }

    /// True while the child has not ended.
    pub(crate) fn is_running(&mut self) -> Result<bool> {
        Ok(self.wait(Duration::ZERO, false)?.is_none())
    }

    fn wait(&mut self, limit: Duration, interruptible: bool) -> Result<Option<ExitStatus>> {
        let began = Instant::now();
        loop {
            if self.status.is_none() {
                self.status = self.child.try_wait().with_context(|| format!("waiting for `{}`", self.what))?;
            }
            if self.status.is_some() || began.elapsed() >= limit {
                return Ok(self.status);
            }
            if interruptible {
                check_interrupt()?;
            }
            thread::sleep(LOOK);
        }
    }

    /// Signals the whole group. A group that is gone needs no signal, so the error is of no interest.
    fn signal(&self, signal: Signal) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            let _ = killpg(Pid::from_raw(group), signal);
        }
    }

    /// What was written, by the child and by what it started: those may have last words too, for a grace. Then they end.
    /// Who left the group may hold the pipes for ever: what it writes later is not waited for.
    fn output(&mut self) -> Output {
        self.wait_for_last_words();
        self.signal(Signal::SIGKILL);
        self.wait_for_last_words();
        let text = |collected: &Option<Collected>| collected.as_ref().map(Collected::text).unwrap_or_default();
        Output { stdout: text(&self.stdout), stderr: text(&self.stderr) }
    }

    fn wait_for_last_words(&self) {
        let began = Instant::now();
        let writes = |pipe: &Option<Collected>| pipe.as_ref().is_some_and(|pipe| !pipe.reader.is_finished());
        while (writes(&self.stdout) || writes(&self.stderr)) && began.elapsed() < GRACE {
            thread::sleep(LOOK);
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
        let kept = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut piece = vec![0; 64 << 10];
            // A pipe that breaks leaves what was read so far; the child's status tells the rest.
            loop {
                match pipe.read(&mut piece) {
                    Ok(length @ 1..) => {
                        kept.lock().unwrap_or_else(PoisonError::into_inner).extend(&piece[..length]);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => (),
                    Ok(_) | Err(_) => return,
                }
            }
        });
        Self { bytes, reader }
    }

    /// What came so far.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The last few lines: where programs say what went wrong.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
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
    fn waits_for_the_first_line_of_a_child_that_goes_on() {
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
    fn names_what_failed_and_what_it_said() {
        let error = run(shell("echo no such host >&2; exit 3"), Duration::from_secs(60)).unwrap_err().to_string();
        assert!(error.contains("sh -c") && error.contains("no such host") && error.contains('3'), "{error}");
    }

    #[test]
    fn ends_a_late_child_with_its_children() {
        let began = Instant::now();
        let error = run(shell("sleep 300 & sleep 300"), Duration::from_millis(100)).unwrap_err().to_string();
        assert!(error.contains("did not end within"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn who_left_the_group_and_holds_the_pipes_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!("echo out; setsid sleep 300 & echo $! > {}", pid.display());
        let output = run(shell(&script), Duration::from_secs(60)).unwrap();
        assert_eq!(output.stdout, "out\n");
        let pid: i32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }

    #[test]
    fn a_stopped_child_may_say_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let script =
            format!("trap 'echo bye; exit' TERM; echo up; : > {}; while :; do sleep 0.05; done", ready.display());
        let running = Running::start(shell(&script)).unwrap();
        while !ready.exists() {
            thread::sleep(LOOK);
        }
        // A shell cannot trap SIGINT where it was started with SIGINT ignored, as in the background of another shell.
        assert_eq!(running.stop_within(Signal::SIGTERM, Duration::from_secs(60)).unwrap().stdout, "up\nbye\n");
    }
}

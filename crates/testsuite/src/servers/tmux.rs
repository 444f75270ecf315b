//! A terminal without a window, by tmux. It shows the output of a program and sends it keys and size changes. Tests
//! declare `Program("tmux")`.

use crate::program;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A terminal with a shell. Both end on drop.
pub struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    /// Opens a terminal of that size. Its shell runs in `folder`, where tmux has its socket too, with the variables of
    /// `environment`.
    ///
    /// # Panics
    /// tmux fails.
    pub fn start(folder: &Path, columns: u16, rows: u16, environment: &[(&str, &OsStr)]) -> Self {
        let terminal = Self { socket: folder.join("tmux") };
        let mut shell = terminal.command(&["new-session", "-d"]);
        shell.args(["-x", &columns.to_string(), "-y", &rows.to_string()]).arg("-c").arg(folder);
        for (name, value) in environment {
            let mut variable = OsStr::new(name).to_owned();
            variable.push("=");
            variable.push(value);
            shell.arg("-e").arg(variable);
        }
        done(shell.args(["env", "PS1=$ ", "sh"]));
        terminal
    }

    /// Types a line to the program in the terminal.
    ///
    /// # Panics
    /// tmux fails.
    pub fn line(&self, text: &str) {
        done(&mut self.command(&["send-keys", "-l", text]));
        self.key("Enter");
    }

    /// Presses a key by tmux's name of it, as in `q`, `C-c` or `Escape`.
    ///
    /// # Panics
    /// tmux fails.
    pub fn key(&self, name: &str) {
        done(&mut self.command(&["send-keys", name]));
    }

    /// Changes the terminal's size.
    ///
    /// # Panics
    /// tmux fails.
    pub fn resize(&self, columns: u16, rows: u16) {
        done(&mut self.command(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]));
    }

    /// Returns the screen, with a line for each row.
    ///
    /// # Panics
    /// tmux fails.
    pub fn screen(&self) -> String {
        done(&mut self.command(&["capture-pane", "-p"]))
    }

    /// Returns the scrollback and the screen.
    ///
    /// # Panics
    /// tmux fails.
    pub fn history(&self) -> String {
        done(&mut self.command(&["capture-pane", "-p", "-S", "-"]))
    }

    /// Returns a tmux format of the terminal, as in `#{cursor_flag}`.
    ///
    /// # Panics
    /// tmux fails.
    pub fn property(&self, format: &str) -> String {
        done(&mut self.command(&["display-message", "-p", format])).trim().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let tmux = program("tmux").expect("the test declares that it needs tmux");
        let mut command = Command::new(tmux);
        // Nobody's settings, and characters beyond ASCII.
        command.args(["-u", "-f", "/dev/null", "-S"]).arg(&self.socket).args(arguments);
        command.env_remove("TMUX");
        command
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

/// Runs a tmux command and returns its output.
fn done(command: &mut Command) -> String {
    let output = command.output().expect("tmux starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

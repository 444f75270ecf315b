//! The program for Windows under Wine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Environment variable with the path of the program for Windows. `cargo xtask test --wine` sets it.
pub const PROGRAM_VARIABLE: &str = "LINERATE_WINDOWS_PROGRAM";
/// Environment variable with the folder in which Wine has made its files.
const PREFIX_VARIABLE: &str = "LINERATE_WINE_PREFIX";
/// Wine and its server, as Debian's package wine64 has them.
const WINE: &str = "/usr/lib/wine/wine64";
const SERVER: &str = "/usr/lib/wine/wineserver64";

/// A Windows host: a prefix of Wine with a server of its own, which opens the sockets of all its programs. It is in the network namespace of
/// [`WindowsHost::boot`].
#[derive(Debug)]
pub struct WindowsHost {
    prefix: TempDir,
}

impl WindowsHost {
    /// Creates a host with the system files of the prepared prefix, and files of its own elsewhere.
    ///
    /// # Panics
    /// The prefix is missing, or cannot be copied.
    pub fn create() -> Self {
        let from = PathBuf::from(std::env::var_os(PREFIX_VARIABLE).expect("set by cargo xtask test --wine"));
        let prefix = tempfile::tempdir().expect("a folder");
        let to = prefix.path();
        for name in ["system.reg", "user.reg", "userdef.reg", ".update-timestamp"] {
            fs::copy(from.join(name), to.join(name)).expect("a file of Wine");
        }
        fs::create_dir_all(to.join("drive_c")).expect("a folder");
        let copied = Command::new("cp").arg("-a").arg(from.join("drive_c/users")).arg(to.join("drive_c")).status();
        assert!(copied.is_ok_and(|status| status.success()), "the users' folders are copied");
        fs::create_dir(to.join("drive_c/ProgramData")).expect("a folder");
        for shared in ["windows", "Program Files", "Program Files (x86)"] {
            let folder = from.join("drive_c").join(shared);
            if folder.exists() {
                symlink(folder, to.join("drive_c").join(shared)).expect("a link");
            }
        }
        fs::create_dir(to.join("dosdevices")).expect("a folder");
        symlink("../drive_c", to.join("dosdevices/c:")).expect("a link");
        symlink("/", to.join("dosdevices/z:")).expect("a link");
        Self { prefix }
    }

    /// Returns a command that runs `linerate` with `arguments` on the host. Its store and its keys are on drive C.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(WINE);
        command.arg(program()).args(arguments).stdin(Stdio::null());
        command.env("WINEPREFIX", self.prefix.path()).env("WINEDEBUG", "-all").current_dir(self.drive());
        for name in ["XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "LINERATE_STORE"] {
            command.env_remove(name);
        }
        command
    }

    /// Returns the commands that start the host's server and its services, which stay until the host is dropped. Without the first, both
    /// would end whenever no program runs; without the second, the services would have the output of the first program.
    pub fn boot(&self) -> [Command; 2] {
        let mut server = Command::new(SERVER);
        server.arg("--persistent").env("WINEPREFIX", self.prefix.path()).env("WINEDEBUG", "-all");
        let mut commands = [server, self.command(&["--version"])];
        for command in &mut commands {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        }
        commands
    }

    /// Returns the folder of drive C.
    pub fn drive(&self) -> PathBuf {
        self.prefix.path().join("drive_c")
    }
}

impl Drop for WindowsHost {
    fn drop(&mut self) {
        // It ends all programs of the prefix. A server that did not start needs no end.
        let _ = Command::new(SERVER).arg("-k").env("WINEPREFIX", self.prefix.path()).status();
        let _ = Command::new(SERVER).arg("-w").env("WINEPREFIX", self.prefix.path()).status();
    }
}

/// Returns the path of the program for Windows.
fn program() -> PathBuf {
    Path::new(&std::env::var_os(PROGRAM_VARIABLE).expect("set by cargo xtask test --wine")).to_owned()
}

//! A PostgreSQL server with its own cluster, on loopback.

use super::port::ClaimedPort;
use crate::{program, wait_until};
use linerate_sys::process::{Placement, spawn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, chown};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Administrator of the cluster. Connections need no password.
pub const ADMINISTRATOR: &str = "linerate";
/// Role that must give [`Postgres::PASSWORD`].
pub const GUARDED_ROLE: &str = "guarded";

/// A running server, which is ended on drop.
pub struct Postgres {
    directory: TempDir,
    programs: PathBuf,
    /// Unprivileged user, as whom the server runs if this process is root's: it refuses to run as root.
    user: Option<User>,
    child: Option<Child>,
    /// Whether the server ends with the thread that starts it.
    ends_with_thread: bool,
    settings: Vec<String>,
    /// TCP port on 127.0.0.1.
    pub port: u16,
    _claim: ClaimedPort,
}

impl Postgres {
    /// Password of [`GUARDED_ROLE`].
    pub const PASSWORD: &str = "a secret";

    /// Creates a cluster and starts its server. It needs the program `pg_ctlcluster|postgres`.
    ///
    /// # Panics
    /// It is not ready within a minute.
    pub fn start() -> Self {
        // Nothing needs to outlive this machine.
        Self::create(&["fsync=off"], false)
    }

    /// Creates a cluster and starts a server that ends with this thread, however it ends.
    ///
    /// # Panics
    /// It is not ready within a minute.
    pub fn start_with_thread() -> Self {
        Self::create(&["fsync=off"], true)
    }

    /// Starts a server with further settings, as in `shared_buffers=512MB`.
    ///
    /// # Panics
    /// It is not ready within a minute.
    pub fn start_with(settings: &[&str]) -> Self {
        Self::create(settings, false)
    }

    fn create(settings: &[&str], ends_with_thread: bool) -> Self {
        let directory = tempfile::tempdir().expect("a folder");
        let claim = ClaimedPort::new();
        let user = nix::unistd::geteuid().is_root().then(unprivileged_user);
        if let Some(user) = &user {
            chown(directory.path(), Some(user.uid), Some(user.gid)).expect("a folder of that user");
        }
        let port = claim.number;
        let mut server = Self {
            directory,
            programs: programs(),
            user,
            child: None,
            ends_with_thread,
            settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
            port,
            _claim: claim,
        };
        server.create_cluster();
        server.resume();
        server.sql("postgres", &format!("CREATE ROLE {GUARDED_ROLE} LOGIN PASSWORD '{}'", Self::PASSWORD));
        server
    }

    /// Returns the URL of a database for a role.
    pub fn url(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates an empty database. Returns its URL for the administrator.
    pub fn create_database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(ADMINISTRATOR, name)
    }

    /// Runs statements as the administrator. Returns the rows that they print, a line each with columns separated by `|`.
    ///
    /// # Panics
    /// A statement fails.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        let mut child = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-f", "-"])
            .arg(self.url(ADMINISTRATOR, database))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("psql starts");
        let mut input = child.stdin.take().expect("it is piped");
        input.write_all(statements.as_bytes()).expect("psql reads");
        drop(input);
        let output = child.wait_with_output().expect("psql ends");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statements}: {error}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Ends the server at once, as a crash would; its children end by themselves.
    pub fn crash(&mut self) {
        self.end(Signal::SIGQUIT);
    }

    /// Ends the server in order.
    pub fn stop(&mut self) {
        self.end(Signal::SIGINT);
    }

    /// Starts the server again, with the same port and data.
    ///
    /// # Panics
    /// It is not ready within a minute.
    pub fn resume(&mut self) {
        let socket_folder = self.directory.path().display().to_string();
        let mut command = self.command("postgres");
        command
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string(), "-k", &socket_folder])
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=50"])
            .args(self.settings.iter().flat_map(|setting| ["-c", setting]))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(self.directory.path().join("log")).expect("a log"));
        let placement = Placement { ends_with_thread: self.ends_with_thread, ..Placement::default() };
        self.child = Some(spawn(&mut command, &placement).expect("postgres starts"));
        let status = self.data().join("postmaster.pid");
        wait_until("PostgreSQL is ready", || {
            let text = std::fs::read_to_string(&status).ok()?;
            text.lines().nth(7).filter(|state| state.trim() == "ready").map(drop)
        });
    }

    fn create_cluster(&self) {
        let created = self
            .command("initdb")
            .arg("-D")
            .arg(self.data())
            .args(["-U", ADMINISTRATOR, "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"])
            .stdout(Stdio::null())
            .status()
            .expect("initdb starts");
        assert!(created.success(), "initdb creates a cluster");
        let rules = format!(
            "host all {GUARDED_ROLE} 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\nlocal all all trust\n"
        );
        std::fs::write(self.data().join("pg_hba.conf"), rules).expect("rules of access");
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(self.directory.path());
        if let Some(user) = &self.user {
            command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
        }
        command
    }

    fn end(&mut self, signal: Signal) {
        if let Some(mut child) = self.child.take() {
            let id = i32::try_from(child.id()).expect("a process id");
            let _ = kill(Pid::from_raw(id), signal);
            child.wait().expect("postgres is our child");
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the folder of the server's programs. Debian keeps each version in one of its own, outside PATH.
fn programs() -> PathBuf {
    // In PATH may be a link to one of the programs.
    if let Some(postgres) = program("postgres").and_then(|link| link.canonicalize().ok()) {
        return postgres.parent().map(Path::to_owned).unwrap_or_default();
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, folder): &(u32, PathBuf)| folder.join("postgres").is_file())
        .collect();
    folders.sort();
    folders.pop().expect("the test declares that it needs PostgreSQL").1
}

/// Returns a user without rights.
fn unprivileged_user() -> User {
    let named = |name| User::from_name(name).ok().flatten();
    named("postgres").or_else(|| named("nobody")).expect("each system has the user nobody")
}

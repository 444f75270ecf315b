//! Debian's iperf3 as a server. Tests declare `Program("iperf3")`, and those that log in `Program("openssl")`.

use super::port::ClaimedPort;
use crate::wait_until;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A server of iperf3 on loopback, which is ended on drop.
pub struct Iperf3 {
    process: Child,
    port: ClaimedPort,
    folder: TempDir,
}

/// Files of an RSA key pair, in PEM.
pub struct KeyPair {
    /// The private key.
    pub private: PathBuf,
    /// The public key.
    pub public: PathBuf,
}

impl KeyPair {
    /// Creates a key of 2,048 bits, with its files in `folder`.
    ///
    /// # Panics
    /// openssl fails.
    pub fn create(folder: &Path) -> Self {
        let keys = Self::within(folder);
        let [private, public] = [&keys.private, &keys.public].map(|file| file.to_str().expect("UTF-8"));
        openssl(&["genrsa", "-out", private, "2048"], &[]);
        openssl(&["rsa", "-in", private, "-pubout", "-out", public], &[]);
        keys
    }

    fn within(folder: &Path) -> Self {
        Self { private: folder.join("private.pem"), public: folder.join("public.pem") }
    }

    /// Decrypts bytes that were encrypted with the public key and this padding, `oaep` or `pkcs1`.
    ///
    /// # Panics
    /// The bytes cannot be decrypted.
    pub fn decrypt(&self, padding: &str, bytes: &[u8]) -> Vec<u8> {
        let (key, mode) = (self.private.to_str().expect("UTF-8"), format!("rsa_padding_mode:{padding}"));
        openssl(&["pkeyutl", "-decrypt", "-inkey", key, "-pkeyopt", &mode], bytes)
    }
}

/// Runs openssl with `input` and returns its output.
fn openssl(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("openssl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl starts");
    // A command that wants no input may have ended.
    let _ = child.stdin.take().expect("it is piped").write_all(input);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "openssl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

impl Iperf3 {
    /// Starts a server with further options.
    ///
    /// # Panics
    /// It does not listen within a minute.
    pub fn serve(options: &[&str]) -> Self {
        Self::serve_in(tempfile::tempdir().expect("a folder"), options)
    }

    /// Starts a server for one user, who must log in.
    ///
    /// # Panics
    /// It does not listen within a minute.
    pub fn serve_user(user: &str, password: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = KeyPair::create(folder.path());
        // What is hashed is iperf3's choice.
        let hash = openssl(&["dgst", "-sha256", "-r"], format!("{{{user}}}{password}").as_bytes());
        let hash = hash.split(|byte| *byte == b' ').next().unwrap_or_default();
        let users = folder.path().join("users");
        fs::write(&users, format!("{user},{}\n", String::from_utf8_lossy(hash))).expect("written");
        let [private, users] = [&keys.private, &users].map(|file| file.to_str().expect("UTF-8"));
        Self::serve_in(folder, &["--rsa-private-key-path", private, "--authorized-users-path", users])
    }

    fn serve_in(folder: TempDir, options: &[&str]) -> Self {
        let port = ClaimedPort::new();
        let said = File::create(folder.path().join("said")).expect("a file");
        let process = Command::new("iperf3")
            .args(["--server", "--forceflush", "--port", &port.number.to_string()])
            .args(options)
            .stdin(Stdio::null())
            .stdout(said.try_clone().expect("dup"))
            .stderr(said)
            .spawn()
            .expect("iperf3 starts");
        let server = Self { process, port, folder };
        // A connection would be taken for a client's. Port, state and inode stand in the kernel's table of sockets.
        let listens = format!(":{:04X} ", server.port.number);
        wait_until("iperf3 listens", || {
            let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
            let listening = |line: &str| line.contains(&listens) && line.split_whitespace().nth(3) == Some("0A");
            tables.iter().flat_map(|table| table.lines()).any(listening).then_some(())
        });
        server
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// Returns the keys of [`Self::serve_user`].
    pub fn keys(&self) -> KeyPair {
        KeyPair::within(self.folder.path())
    }

    /// Returns the output so far.
    pub fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).unwrap_or_default()
    }

    /// Kills the server at once, like the kernel when memory is short.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Interrupts the server, like Ctrl-C.
    pub fn interrupt(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
    }
}

impl Drop for Iperf3 {
    fn drop(&mut self) {
        self.kill();
    }
}

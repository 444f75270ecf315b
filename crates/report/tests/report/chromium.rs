//! A real browser without a window, for the tests of all pages.
//!
//! Needs Chromium (Debian package `chromium`). Without it the tests are skipped aloud, and fail where CI=true.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The program, if there is one; `what` is then not tested otherwise.
pub(crate) fn found(what: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths)
        .flat_map(|folder| ["chromium", "chromium-browser", "google-chrome"].map(|name| folder.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "Chromium is missing: apt-get install chromium");
        eprintln!("SKIPPED: {what}: Chromium is not installed; apt-get install chromium");
    }
    found
}

/// The document at `url` after its scripts ran for so long, and what was written to the browser's console. What the browser
/// keeps is in `folder`.
pub(crate) fn dump(
    program: &Path,
    folder: &Path,
    url: &str,
    timeout: Duration,
    options: &[String],
) -> (String, Vec<String>) {
    let output = Command::new("timeout")
        .args(["--kill-after=5", "90"])
        .arg(program)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("--virtual-time-budget={}", timeout.as_millis()))
        .args(["--window-size=1200,1600", "--dump-dom"])
        .args(options)
        .arg(url)
        .output()
        .expect("Chromium starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "Chromium ended with {}: {said}", output.status);
    let console = said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    (String::from_utf8_lossy(&output.stdout).into_owned(), console)
}

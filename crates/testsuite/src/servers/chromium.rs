//! Headless Chromium. Tests declare `Program("chromium|chromium-browser|google-chrome")`.

use crate::program;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Returns the document at `url` after its scripts ran for `timeout`, and the lines on the browser's console. The
/// browser keeps its files in `folder`.
///
/// # Panics
/// Chromium fails.
pub fn dump(folder: &Path, url: &str, timeout: Duration, options: &[String]) -> (String, Vec<String>) {
    let output = command(folder)
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

/// Returns the number of pages of the document at `url` on paper of the browser's size (US Letter). The browser keeps
/// its files in `folder`.
///
/// # Panics
/// Chromium fails.
pub fn printed_pages(folder: &Path, url: &str) -> usize {
    let file = folder.join("printed.pdf");
    let output = command(folder)
        .arg(format!("--print-to-pdf={}", file.display()))
        .args(["--no-pdf-header-footer", url])
        .output()
        .expect("Chromium starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "Chromium ended with {}: {said}", output.status);
    let pdf = std::fs::read(&file).expect("Chromium wrote the file");
    // Chromium compresses what is on a page, not the objects that are pages.
    let page = b"/Type /Page\n";
    pdf.windows(page.len()).filter(|bytes| bytes == page).count()
}

/// Returns a command of the browser with its files in `folder`. It ends after ten minutes at most, longer than any
/// test.
pub(super) fn command(folder: &Path) -> Command {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let browser = names.into_iter().find_map(program).expect("the test declares that it needs Chromium");
    let mut command = Command::new("timeout");
    // It leaves folders behind wherever temporary ones are.
    command
        .env("TMPDIR", folder)
        .args(["--kill-after=5", "600"])
        .arg(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()));
    command
}

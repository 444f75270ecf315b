//! axe-core, the accessibility checks of Deque, from the npm registry. Tests declare `Program("npm")`.

use std::path::Path;
use std::process::Command;

/// Version of the rules that pages must meet.
const VERSION: &str = "4.14.1";

/// Returns the checks as a script that defines `axe`. The package is fetched once, into a folder of this user.
///
/// # Panics
/// npm fails.
pub fn axe() -> String {
    let folder = std::env::temp_dir().join(format!("linerate-axe-core-{VERSION}-{}", nix::unistd::getuid()));
    let script = folder.join("node_modules/axe-core/axe.min.js");
    if !script.is_file() {
        fetch(&folder);
    }
    std::fs::read_to_string(&script).unwrap_or_else(|error| panic!("{}: {error}", script.display()))
}

/// Fetches the package into a temporary folder next to `folder` and renames it, since another test may fetch it too.
fn fetch(folder: &Path) {
    let own = tempfile::tempdir().expect("a folder for the package");
    let output = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-save", "--prefix"])
        .arg(own.path())
        .arg(format!("axe-core@{VERSION}"))
        .output()
        .expect("npm starts");
    assert!(output.status.success(), "npm: {}", String::from_utf8_lossy(&output.stderr));
    // Who comes second finds the folder filled, and takes that.
    let _ = std::fs::rename(own.path(), folder);
}

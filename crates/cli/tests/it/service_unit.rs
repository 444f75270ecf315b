//! The unit that packages install starts an agent with little to misuse.

use linerate_testsuite::server_test;
use std::path::Path;
use std::process::Command;

/// systemd's own measure of what a service could do if it were taken over: 0 is nothing, 10 all.
#[server_test(Program("systemd-analyze"))]
fn the_systemd_unit_is_exposed_below_3() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/linerate-agent.service");
    let analysed = Command::new("systemd-analyze")
        .args(["security", "--offline=yes", "--threshold=29", "--no-pager"])
        .arg(&unit)
        .output()
        .expect("systemd-analyze runs");
    let said = String::from_utf8_lossy(&analysed.stdout);
    let level = said.lines().last().unwrap_or_default();
    assert!(analysed.status.success() && level.contains("exposure level"), "{level}");
}

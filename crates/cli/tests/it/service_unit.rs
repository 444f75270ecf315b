//! The unit that packages install starts an agent that serves trials, with little to misuse.

use linerate_testsuite::server_test;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

fn unit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/linerate-agent.service")
}

/// systemd's own measure of what a service could do if it were taken over: 0 is nothing, 10 all.
#[server_test(Program("systemd-analyze"))]
fn the_systemd_unit_is_exposed_below_3() {
    let analysed = Command::new("systemd-analyze")
        .args(["security", "--offline=yes", "--threshold=29", "--no-pager"])
        .arg(unit())
        .output()
        .expect("systemd-analyze runs");
    let said = String::from_utf8_lossy(&analysed.stdout);
    let level = said.lines().last().unwrap_or_default();
    assert!(analysed.status.success() && level.contains("exposure level"), "{level}");
}

/// Run beside the agent: trials in which it receives, sends, and serves, and those of an invitation, also after the service was
/// started anew. At the end the service is stopped, and says how it ended.
const TRIALS: &str = r#"
until url=$(journalctl -u linerate-agent -o cat | grep ^linerate://); do
    systemctl -q is-failed linerate-agent && exit 1
    sleep 0.1
done
on_loopback() { sed 's|//[^:]*:|//127.0.0.1:|'; }
url=$(echo "$url" | on_loopback)
set -ex
linerate stream local "$url" --flows 200 --time 500ms --repeats 1
linerate stream local "$url" --udp --direction receive --rate 10Mbit/s --time 500ms --repeats 1
linerate transact local "$url" --time 500ms --repeats 1
linerate nfs local "$url" --time 500ms --repeats 1 --no-tester-limit
linerate copy --tree files=10,folders=2,bytes=10M --from memory --to discard --repeats 1 local "$url"
invitation=$(linerate serve invite --identity /var/lib/linerate-agent --can stream --for 1h | on_loopback)
linerate stream local "$invitation" --time 300ms --repeats 1
systemctl restart linerate-agent
until linerate probe "$url" >/dev/null 2>&1; do systemctl -q is-active linerate-agent; sleep 0.1; done
linerate stream local "$invitation" --time 300ms --repeats 1
systemctl stop linerate-agent
systemctl show --property Result linerate-agent
"#;

/// Runs [`TRIALS`]; systemd ends with its status.
const CHECK: &str = "[Unit]
Wants=linerate-agent.service
After=linerate-agent.service
SuccessAction=exit
FailureAction=exit
[Service]
Type=oneshot
Environment=HOME=/tmp PATH=/opt/linerate:/usr/bin:/bin
ExecStart=sh /etc/systemd/system/trials.sh
ExecStopPost=sh -c 'journalctl -u linerate-agent -o cat >/out/journal'
StandardOutput=file:/out/said
StandardError=file:/out/errors
";

/// systemd starts the unit as it is, in a container with this host's programs, no network and nothing of its own.
#[server_test(Root, Program("systemd-nspawn"))]
fn the_systemd_unit_starts_an_agent_that_serves_trials() {
    let folder = tempfile::tempdir().expect("a folder");
    let (units, out) = (folder.path().join("units"), folder.path().join("out"));
    for made in [&units.join("linerate-agent.service.d"), &units.join("multi-user.target.wants"), &out] {
        fs::create_dir_all(made).expect("a folder");
    }
    let write = |name: &str, text: &str| fs::write(units.join(name), text).expect("a file");
    fs::copy(unit(), units.join("linerate-agent.service")).expect("the unit");
    write("linerate-agent.service.d/path.conf", "[Service]\nExecSearchPath=/opt/linerate\n");
    write("check.service", CHECK);
    write("trials.sh", TRIALS);
    symlink("../check.service", units.join("multi-user.target.wants/check.service")).expect("a link");
    let ran = Command::new("timeout")
        .args(["180", "systemd-nspawn", "--quiet", "--directory=/", "--volatile=yes", "--boot", "--private-network"])
        .args(["--register=no", "--keep-unit", "--console=pipe"])
        .arg(format!("--bind-ro={}:/etc/systemd/system", units.display()))
        .arg(format!("--bind-ro={}:/opt/linerate/linerate", env!("CARGO_BIN_EXE_linerate")))
        .arg(format!("--bind={}:/out", out.display()))
        .output()
        .expect("systemd-nspawn runs");
    let [said, errors, journal] =
        ["said", "errors", "journal"].map(|name| fs::read_to_string(out.join(name)).unwrap_or_default());
    assert!(ran.status.success(), "{}\n{said}\n{errors}\n{journal}\n{ran:?}", ran.status);
    assert!(said.lines().last() == Some("Result=success"), "{said}\n{journal}");
    for part in ["capabilities: none", "stream: received ", "stream: sent ", "nfs: served ", "copy: received "] {
        assert!(journal.contains(part), "`{part}` is missing in {journal}");
    }
}

//! Installs and runs each package in its own root: the program alone, the Debian package on a fresh Debian, the RPM
//! package, the image. Programs for another processor run under qemu-user.

use super::tree::Tree;
use super::{Architecture, LIMIT, Release};
use crate::process;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Emulators for programs of another processor, by [`Architecture`].
pub(super) const EMULATOR_OF: [[&str; 1]; 2] = [["qemu-x86_64-static"], ["qemu-aarch64-static"]];

/// Script that starts an agent and measures the path to it, in network and process namespaces that end with the script.
///
/// Arguments: $1 is the root, in which /proc is mounted; $2 the agent's command; $3 the client's command.
const LOOK: &str = r#"set -eu
files=$(dirname "$0")
ip link set lo up
ip address add 198.18.0.1/32 dev lo
mkdir -p "$1/proc"
mount -t proc proc "$1/proc"
rm -f "$files/url"
eval "exec env $2" >"$files/url" 2>"$files/errors" &
agent=$!
until [ -s "$files/url" ]; do
    kill -0 "$agent" 2>/dev/null || { cat "$files/errors" >&2; exit 1; }
    sleep 0.1
done
eval "$3 \"$(head -n 1 "$files/url")\"" || { cat "$files/errors" >&2; exit 1; }
# A shell without a terminal starts background commands with SIGINT ignored.
kill -TERM "$agent"
wait "$agent" || [ $? -eq 143 ]
"#;

/// Tries all packages.
pub(super) fn run(release: &Release, trees: &[Tree], files: &[PathBuf]) -> Result<()> {
    ensure!(nix::unistd::geteuid().is_root(), "--try-out makes roots and network namespaces: run it as root");
    let folder = tempfile::tempdir().context("making a folder for the roots")?;
    for tree in trees {
        let root = folder.path().join(format!("empty-{}", tree.architecture.name()));
        empty_root(tree, &root)?;
        let file_of = |end: &str| {
            let file = files.iter().find(|file| file.to_string_lossy().ends_with(end));
            file.with_context(|| format!("no package ends with {end}"))
        };
        rpm(tree, file_of(&format!(".{}.rpm", tree.architecture.name()))?, folder.path())?;
        if tree.architecture.is_native() {
            deb(file_of(&format!("_{}.deb", tree.architecture.debian()))?, folder.path())?;
            image(release, file_of("-oci.tar")?, folder.path())?;
        }
    }
    Ok(())
}

/// Tries the program alone in a root without library, shell or user.
fn empty_root(tree: &Tree, root: &Path) -> Result<()> {
    fs::create_dir_all(root.join("tmp")).with_context(|| format!("making {}", root.display()))?;
    fs::copy(tree.root.join(Tree::PROGRAM), root.join("linerate")).context("copying the program")?;
    let mut program = format!("HOME=/tmp chroot {} ", root.display());
    if !tree.architecture.is_native() {
        let [emulator] = EMULATOR_OF[tree.architecture as usize];
        fs::copy(Path::new("/usr/bin").join(emulator), root.join("qemu"))
            .with_context(|| format!("copying {emulator}: `scripts/install-packages.sh package` installs it"))?;
        program.push_str("/qemu ");
    }
    program.push_str("/linerate");
    fs::create_dir_all(root.join("data")).context("making a folder for a study")?;
    for file in ["filecopy-2003.toml", "data/filecopy-2003.csv"] {
        fs::copy(Path::new("studies").join(file), root.join(file)).with_context(|| format!("copying {file}"))?;
    }
    let what = format!("the program for {} in an empty root", tree.architecture.name());
    check_output(&what, &format!("{program} limits --medium 1000base-t"), "1000BASE-T")?;
    check_output(&what, &format!("{program} report /filecopy-2003.toml"), "filecopy-2003.csv")?;
    look(&what, &format!("{program} serve --ephemeral"), &program, root)
}

/// Tries the Debian package on a fresh Debian of this machine's release, with essential packages only.
fn deb(file: &Path, folder: &Path) -> Result<()> {
    let root = folder.join("debian");
    let mut system = Command::new("mmdebstrap");
    system.args(["--quiet", "--variant=essential", &codename()?]).arg(&root);
    system.args(sources()?);
    process::run(system, LIMIT)
        .context("making a fresh Debian: `scripts/install-packages.sh package` installs mmdebstrap")?;
    fs::copy(file, root.join("linerate.deb")).context("copying the Debian package")?;
    let inside = |command: &str| shell(&format!("HOME=/root chroot {} {command}", root.display()));
    inside("dpkg --install /linerate.deb")?;
    inside("dpkg --verify linerate")?;
    for path in ["/usr/share/man/man1/linerate-stream.1.gz", "/usr/share/bash-completion/completions/linerate"] {
        ensure!(root.join(&path[1..]).is_file(), "the Debian package lacks {path}");
    }
    let enabled = root.join("etc/systemd/system/multi-user.target.wants/linerate-agent.service");
    ensure!(!enabled.exists(), "the Debian package enables the agent");
    let unit =
        fs::read_to_string(root.join("usr/lib/systemd/system/linerate-agent.service")).context("reading the unit")?;
    let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).context("the unit starts nothing")?;
    let program = format!("HOME=/root chroot {} linerate", root.display());
    let what = "the Debian package on a fresh Debian";
    look(what, &format!("chroot {} {command}", root.display()), &program, &root)?;
    inside("dpkg --purge linerate")?;
    ensure!(!root.join("usr/bin/linerate").exists(), "dpkg --purge leaves the program");
    println!("{what}: installed, measured, removed");
    Ok(())
}

fn rpm(tree: &Tree, file: &Path, folder: &Path) -> Result<()> {
    let root = folder.join(format!("rpm-{}", tree.architecture.name()));
    fs::create_dir_all(&root).with_context(|| format!("making {}", root.display()))?;
    let mut rpm = Command::new("rpm");
    rpm.arg("--root").arg(&root).args(["--install", "--ignorearch", "--nodeps"]).arg(file);
    process::run(rpm, LIMIT)?;
    for path in tree.files()? {
        let path = root.join(path.to_string_lossy().replace("vendor-completions", "site-functions"));
        ensure!(path.is_file(), "the RPM package lacks {}", path.display());
    }
    println!("the RPM package for {}: installed, with every file", tree.architecture.name());
    Ok(())
}

/// Tries the image: skopeo checks every sum and size, then the program of the layer runs with the image's command.
fn image(release: &Release, file: &Path, folder: &Path) -> Result<()> {
    let layout = folder.join("image");
    let architecture =
        Architecture::ALL.into_iter().find(|architecture| architecture.is_native()).context("an unknown processor")?;
    let mut skopeo = Command::new("skopeo");
    skopeo
        .args(["--override-arch", architecture.debian(), "copy", "--quiet"])
        .arg(format!("oci-archive:{}", file.display()))
        .arg(format!("dir:{}", layout.display()));
    process::run(skopeo, LIMIT).context("reading the image: `scripts/install-packages.sh package` installs skopeo")?;
    let manifest = fs::read_to_string(layout.join("manifest.json")).context("reading the image's manifest")?;
    let manifest: serde_json::Value = serde_json::from_str(&manifest).context("reading the image's manifest")?;
    let blob =
        |value: &serde_json::Value| layout.join(value.as_str().unwrap_or_default().trim_start_matches("sha256:"));
    let config =
        fs::read_to_string(blob(&manifest["config"]["digest"])).context("reading the image's configuration")?;
    let config: serde_json::Value = serde_json::from_str(&config).context("reading the image's configuration")?;
    let words =
        |key: &str| -> Vec<String> { serde_json::from_value(config["config"][key].clone()).unwrap_or_default() };
    let root = folder.join("image-root");
    fs::create_dir_all(&root).with_context(|| format!("making {}", root.display()))?;
    let mut tar = release.command("tar");
    tar.arg("--extract").arg(format!("--directory={}", root.display()));
    tar.arg(format!("--file={}", blob(&manifest["layers"][0]["digest"]).display()));
    process::run(tar, LIMIT)?;
    let chroot = format!("HOME=/var/lib/linerate-agent chroot {} ", root.display());
    let agent = chroot.clone() + &[words("Entrypoint"), words("Cmd")].concat().join(" ");
    look("the image", &agent, &(chroot + &words("Entrypoint").join(" ")), &root)
}

/// Measures the path from the program to its own agent, and fails if there is no figure.
fn look(what: &str, agent: &str, program: &str, root: &Path) -> Result<()> {
    let script = root.with_file_name("look.sh");
    fs::write(&script, LOOK).with_context(|| format!("writing {}", script.display()))?;
    let mut command = Command::new("unshare");
    command.args(["--net", "--pid", "--mount-proc", "--fork", "--kill-child", "--", "sh"]);
    command.arg(script).arg(root).args([agent, program]);
    let output =
        process::run(command, LIMIT).with_context(|| format!("{what}: a look at the path to its own agent"))?;
    let text = output.stdout;
    if !text.contains("bit/s") {
        bail!("{what}: a look at the path to its own agent gave no figure:\n{text}");
    }
    let first = text.lines().find(|line| line.contains("bit/s")).unwrap_or_default();
    println!("{what}: {}", first.trim());
    Ok(())
}

fn check_output(what: &str, command: &str, expected: &str) -> Result<()> {
    let text = shell(command)?;
    ensure!(text.contains(expected), "{what}: `{command}` does not say `{expected}`:\n{text}");
    Ok(())
}

fn shell(script: &str) -> Result<String> {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    Ok(process::run(command, LIMIT)?.stdout)
}

/// Returns the code name of this machine's Debian.
fn codename() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release").context("reading /etc/os-release")?;
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    name.map(str::to_owned).context("this machine is no Debian, which --try-out needs")
}

/// Returns the files with the package sources of this machine's apt.
fn sources() -> Result<Vec<PathBuf>> {
    let mut sources = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(folder) = fs::read_dir("/etc/apt/sources.list.d") {
        sources.extend(folder.flatten().map(|entry| entry.path()));
    }
    sources.retain(|path| {
        path.is_file() && path.extension().is_some_and(|extension| extension == "list" || extension == "sources")
    });
    sources.sort();
    ensure!(!sources.is_empty(), "apt of this machine has no sources");
    Ok(sources)
}

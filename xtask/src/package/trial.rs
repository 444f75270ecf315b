//! Packages tried as their users get them, each in a root of its own: the program alone, the Debian package on a fresh Debian, the RPM
//! package, the image. Programs for another processor run by qemu-user.

use super::tree::Tree;
use super::{Architecture, LIMIT, Release};
use crate::process;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What runs programs for a processor that is not this machine's, by [`Architecture`].
pub(super) const EMULATOR_OF: [[&str; 1]; 2] = [["qemu-x86_64-static"], ["qemu-aarch64-static"]];

/// Serves, and measures a look at the path to itself, in a network and among processes that end with the script.
/// $1: the root, which gets a /proc as every container has; $2: how the agent is started; $3: the program, as the client is started.
const LOOK: &str = r#"set -eu
files=$(dirname "$0")
ip link set lo up
ip address add 198.18.0.1/32 dev lo
mkdir -p "$1/proc"
mount -t proc proc "$1/proc"
rm -f "$files/url"
eval "exec env $2" >"$files/url" 2>"$files/said" &
agent=$!
until [ -s "$files/url" ]; do
    kill -0 "$agent" 2>/dev/null || { cat "$files/said" >&2; exit 1; }
    sleep 0.1
done
eval "$3 \"$(head -n 1 "$files/url")\"" || { cat "$files/said" >&2; exit 1; }
# A shell without a terminal starts what is in the background with SIGINT ignored.
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
            let named = |file: &&PathBuf| file.to_string_lossy().ends_with(end);
            files.iter().find(named).with_context(|| format!("no package ends with {end}"))
        };
        rpm(tree, file_of(&format!(".{}.rpm", tree.architecture.name()))?, folder.path())?;
        if tree.architecture.is_ours() {
            deb(file_of(&format!("_{}.deb", tree.architecture.debian()))?, folder.path())?;
            image(release, file_of("-oci.tar")?, folder.path())?;
        }
    }
    Ok(())
}

/// The program alone in a root, where there is no library, no shell and no user.
fn empty_root(tree: &Tree, root: &Path) -> Result<()> {
    fs::create_dir_all(root.join("tmp")).with_context(|| format!("making {}", root.display()))?;
    fs::copy(tree.root.join(Tree::PROGRAM), root.join("linerate")).context("copying the program")?;
    let mut program = format!("HOME=/tmp chroot {} ", root.display());
    if !tree.architecture.is_ours() {
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
    says(&what, &format!("{program} limits --medium 1000base-t"), "1000BASE-T")?;
    says(&what, &format!("{program} report /filecopy-2003.toml"), "filecopy-2003.csv")?;
    look(&what, &format!("{program} serve --ephemeral"), &program, root)
}

/// The Debian package on the Debian of this machine, which has only what every Debian has.
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
    for wanted in ["/usr/share/man/man1/linerate-stream.1.gz", "/usr/share/bash-completion/completions/linerate"] {
        ensure!(root.join(&wanted[1..]).is_file(), "the Debian package lacks {wanted}");
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

/// skopeo checks every sum and size; then the program of the layer runs as the image says.
fn image(release: &Release, file: &Path, folder: &Path) -> Result<()> {
    let layout = folder.join("image");
    let architecture = Architecture::ALL.into_iter().find(|one| one.is_ours()).context("an unknown processor")?;
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

/// A look at the path from the program to an agent of its own ends with figures and a verdict.
fn look(what: &str, agent: &str, program: &str, root: &Path) -> Result<()> {
    let script = root.with_file_name("look.sh");
    fs::write(&script, LOOK).with_context(|| format!("writing {}", script.display()))?;
    let mut command = Command::new("unshare");
    command.args(["--net", "--pid", "--mount-proc", "--fork", "--kill-child", "--", "sh"]);
    command.arg(script).arg(root).args([agent, program]);
    let said = process::run(command, LIMIT).with_context(|| format!("{what}: a look at the path to its own agent"))?;
    let said = said.stdout;
    if !said.contains("bit/s") {
        bail!("{what}: a look at the path to its own agent gave no figure:\n{said}");
    }
    let first = said.lines().find(|line| line.contains("bit/s")).unwrap_or_default();
    println!("{what}: {}", first.trim());
    Ok(())
}

fn says(what: &str, command: &str, expected: &str) -> Result<()> {
    let said = shell(command)?;
    ensure!(said.contains(expected), "{what}: `{command}` does not say `{expected}`:\n{said}");
    Ok(())
}

fn shell(script: &str) -> Result<String> {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    Ok(process::run(command, LIMIT)?.stdout)
}

/// The name of this machine's Debian.
fn codename() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release").context("reading /etc/os-release")?;
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    name.map(str::to_owned).context("this machine is no Debian, which --try-out needs")
}

/// Where this machine's apt finds packages.
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

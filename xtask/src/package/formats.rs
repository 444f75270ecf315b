//! The files of a package as `.tar.gz`, `.deb` and `.rpm`, by the tools of their own world.

use super::tree::{Tree, set_mode};
use super::{LIMIT, Release};
use crate::process;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SUMMARY: &str = "measures what a network path can carry, layer by layer, and says what limits it";

/// Packs a folder below `parent`, the same for the same files: sorted, root's, with the time of the commit.
pub(super) fn tar(release: &Release, parent: &Path, member: &str, to: &Path) -> Result<()> {
    let mut tar = release.command("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"])
        .arg(format!("--mtime=@{}", release.epoch))
        .arg(format!("--directory={}", parent.display()));
    if to.extension().is_some_and(|extension| extension == "gz") {
        tar.arg("--use-compress-program=gzip --best --no-name");
    }
    tar.arg("--create").arg(format!("--file={}", to.display())).arg(member);
    process::run(tar, LIMIT).map(drop)
}

/// The archive for those who install by hand, and for `cargo binstall`.
pub(super) fn archive(release: &Release, tree: &Tree) -> Result<PathBuf> {
    let name = format!("linerate-{}-{}", release.version, tree.architecture.target());
    let parent = release.out.join("root");
    let folder = parent.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    // Program, README and licences lie on top, where people look; the rest as it is installed.
    for file in tree.files()? {
        let top = file == Path::new(Tree::PROGRAM) || file.starts_with("usr/share/doc");
        let to = folder.join(if top { Path::new(file.file_name().unwrap_or_default()) } else { &file });
        fs::create_dir_all(to.parent().unwrap_or(&folder)).with_context(|| format!("making {}", to.display()))?;
        fs::copy(tree.root.join(&file), &to).with_context(|| format!("copying to {}", to.display()))?;
    }
    let to = release.out.join(format!("{name}.tar.gz"));
    tar(release, &parent, &name, &to)?;
    fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    Ok(to)
}

/// The Debian package. Its scripts (`packaging/deb`) leave the agent's unit off until `systemctl enable`.
pub(super) fn deb(release: &Release, tree: &Tree) -> Result<PathBuf> {
    let architecture = tree.architecture.debian();
    let control = format!(
        "Package: linerate\nVersion: {}\nArchitecture: {architecture}\nSection: net\nPriority: optional\n\
         Maintainer: The linerate authors <linerate@localhost>\nInstalled-Size: {}\n\
         Description: {SUMMARY}\n Streams, transactions, RPC, NFS, raw frames and copies between hosts or through a device, with\n \
         the evidence for the limit of each result. Includes an agent as a systemd service, which is off\n \
         until it is enabled.\n",
        release.version,
        tree.bytes()?.div_ceil(1024),
    );
    let mut md5sum = Command::new("md5sum");
    md5sum.current_dir(&tree.root).arg("--").args(tree.files()?);
    let sums = process::run(md5sum, LIMIT)?.stdout;
    let folder = tree.root.join("DEBIAN");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    for (name, text) in [("control", control), ("md5sums", sums)] {
        fs::write(folder.join(name), text).with_context(|| format!("writing {name} of the Debian package"))?;
    }
    for name in ["postinst", "prerm", "postrm"] {
        let script = folder.join(name);
        fs::copy(Path::new("packaging/deb").join(name), &script)
            .with_context(|| format!("copying {name} of the Debian package"))?;
        set_mode(&script, 0o755)?;
    }
    let to = release.out.join(format!("linerate_{}_{architecture}.deb", release.version));
    let mut build = release.command("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&tree.root).arg(&to);
    process::run(build, LIMIT)?;
    fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    Ok(to)
}

/// The RPM package, by `packaging/linerate.spec`.
pub(super) fn rpm(release: &Release, tree: &Tree) -> Result<PathBuf> {
    let architecture = tree.architecture.name();
    let work = release.out.join("rpm");
    let mut build = release.command("rpmbuild");
    build.args(["-bb", "--quiet", "--target", architecture]);
    let definitions = [
        ("_topdir", work.display().to_string()),
        ("_rpmdir", release.out.display().to_string()),
        ("_rpmfilename", format!("linerate-{}-1.%{{ARCH}}.rpm", release.version)),
        ("linerate_version", release.version.clone()),
        ("linerate_summary", SUMMARY.to_owned()),
        ("linerate_root", tree.root.display().to_string()),
        // What would differ from machine to machine, and from day to day.
        ("_buildhost", "localhost".to_owned()),
        ("use_source_date_epoch_as_buildtime", "1".to_owned()),
        ("clamp_mtime_to_source_date_epoch", "1".to_owned()),
    ];
    for (name, value) in definitions {
        build.args(["--define", &format!("{name} {value}")]);
    }
    build.arg("packaging/linerate.spec");
    process::run(build, LIMIT)?;
    fs::remove_dir_all(&work).with_context(|| format!("removing {}", work.display()))?;
    Ok(release.out.join(format!("linerate-{}-1.{architecture}.rpm", release.version)))
}

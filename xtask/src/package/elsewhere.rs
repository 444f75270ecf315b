//! Programs and packages for systems other than Linux.

use super::{LIMIT, Release, formats, runs, sbom};
use crate::process::{self, cargo};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Version of cargo-zigbuild that the builds were tested with.
const ZIGBUILD_VERSION: &str = "0.24.1";
/// Source of the Windows installer.
const INSTALLER: &str = "packaging/linerate.wxs";
/// Folder with the documentation, and single files beside the program.
const DOCUMENTS: &str = "docs";
const FILES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// A system that packages are built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum System {
    Linux,
    Windows,
    Macos,
    Freebsd,
}

impl System {
    pub(super) const ALL: [Self; 4] = [Self::Linux, Self::Windows, Self::Macos, Self::Freebsd];

    /// Returns the compiler's targets. Those of Linux are of `Architecture`.
    fn targets(self) -> &'static [&'static str] {
        match self {
            Self::Linux => &[],
            Self::Windows => &["x86_64-pc-windows-gnu"],
            Self::Macos => &["aarch64-apple-darwin", "x86_64-apple-darwin"],
            Self::Freebsd => &["x86_64-unknown-freebsd"],
        }
    }

    /// Returns the name of the program.
    fn program(self) -> &'static str {
        if self == Self::Windows { "linerate.exe" } else { "linerate" }
    }

    /// Returns whether nobody has reported that the program runs. Its packages say so.
    fn is_untested(self) -> bool {
        matches!(self, Self::Macos | Self::Freebsd)
    }

    /// Adds the tools that this machine lacks to build for this system.
    pub(super) fn find_missing(self, missing: &mut Vec<String>) {
        let tools: &[&str] = match self {
            Self::Linux => &[],
            Self::Windows => &["x86_64-w64-mingw32-gcc", "zip", "wixl"],
            Self::Macos | Self::Freebsd => &["cargo-zigbuild"],
        };
        for tool in tools.iter().filter(|tool| !runs(tool)) {
            missing.push(match *tool {
                "cargo-zigbuild" => {
                    format!("the command cargo-zigbuild (`pip install cargo-zigbuild=={ZIGBUILD_VERSION} ziglang`)")
                }
                tool => format!("the command {tool}"),
            });
        }
    }
}

/// Builds the packages of a system. Returns their files.
pub(super) fn write(release: &Release, system: System, download_url: Option<&str>) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for target in system.targets() {
        let program = build(release, system, target)?;
        let name = format!("linerate-{}-{target}", release.version);
        let folder = lay_out(release, system, &program, &name)?;
        if system == System::Windows {
            let archive = release.out.join(format!("{name}.zip"));
            zip(release, &folder, &archive)?;
            if let Some(url) = download_url {
                files.extend(manifests(release, &archive, &name, url)?);
            }
            files.push(archive);
            files.push(installer(release, &folder, &name)?);
        } else {
            let archive = release.out.join(format!("{name}.tar.gz"));
            formats::tar(release, &release.out.join("root"), &name, &archive)?;
            files.push(archive);
        }
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
        files.push(sbom::write(release, target, target)?);
    }
    Ok(files)
}

/// Builds the program. Returns its path.
fn build(release: &Release, system: System, target: &str) -> Result<PathBuf> {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", target]);
    process::run(rustup, LIMIT).with_context(|| format!("adding to the toolchain: {target}"))?;
    let mut command = cargo();
    command
        .arg(if system == System::Windows { "build" } else { "zigbuild" })
        .args(["--locked", "--profile", "dist", "--package", "linerate", "--target-dir", "target", "--target", target])
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
        .env("RUSTFLAGS", super::path_maps()?.for_rust);
    let started = Instant::now();
    let status = command.status().context("starting cargo")?;
    if !status.success() {
        bail!("the program was not built for {target} ({status})");
    }
    println!("built for {target} in {:.0} s", started.elapsed().as_secs_f64());
    Ok(Path::new("target").join(target).join("dist").join(system.program()))
}

/// Lays out the files of an archive in a folder of its own.
fn lay_out(release: &Release, system: System, program: &Path, name: &str) -> Result<PathBuf> {
    let folder = release.out.join("root").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    let documents = folder.join(DOCUMENTS);
    fs::create_dir_all(&documents).with_context(|| format!("making {}", documents.display()))?;
    let copy = |from: &Path, to: PathBuf| {
        fs::copy(from, &to).map(drop).with_context(|| format!("copying {} to {}", from.display(), to.display()))
    };
    copy(program, folder.join(system.program()))?;
    for file in FILES {
        copy(Path::new(file), folder.join(file))?;
    }
    for entry in fs::read_dir(DOCUMENTS).with_context(|| format!("listing {DOCUMENTS}"))? {
        let path = entry.with_context(|| format!("listing {DOCUMENTS}"))?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            copy(&path, documents.join(path.file_name().unwrap_or_default()))?;
        }
    }
    if system.is_untested() {
        let note = "This program was built, and never run on this system by its authors. See docs/platforms.md.\n";
        fs::write(folder.join("BUILT-NOT-RUN.txt"), note).context("writing BUILT-NOT-RUN.txt")?;
    }
    Ok(folder)
}

/// Packs a folder. Equal files give equal archives: sorted, with the time of the commit.
fn zip(release: &Release, folder: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_file(to).with_context(|| format!("removing {}", to.display()))?;
    }
    let mut shell = release.command("sh");
    let script = "find \"$1\" -exec touch --no-dereference --date=\"@$SOURCE_DATE_EPOCH\" {} + && \
                  find \"$1\" -type f | LC_ALL=C sort | zip --quiet -X -9 \"$2\" -@";
    let parent = folder.parent().unwrap_or(folder);
    let name = folder.file_name().unwrap_or_default();
    shell.args(["-c", script, "sh"]).arg(name).arg(to).current_dir(parent);
    process::run(shell, LIMIT).map(drop)
}

/// Builds the installer of Windows.
fn installer(release: &Release, folder: &Path, name: &str) -> Result<PathBuf> {
    let to = release.out.join(format!("{name}.msi"));
    let mut wixl = release.command("wixl");
    // wixl takes no absolute paths of files.
    wixl.args(["--arch", "x64", "--define", &format!("Version={}", release.version)])
        .arg("--output")
        .arg(&to)
        .arg(std::path::absolute(INSTALLER).context("finding the installer's source")?)
        .current_dir(folder);
    process::run(wixl, LIMIT)?;
    Ok(to)
}

/// Writes the manifests of winget and scoop for an archive that is to be found below `url`.
fn manifests(release: &Release, archive: &Path, name: &str, url: &str) -> Result<[PathBuf; 2]> {
    let version = &release.version;
    let sum = super::sha256(archive)?;
    let download = format!("{}/{name}.zip", url.trim_end_matches('/'));
    let scoop = json!({
        "version": version,
        "description": "Measures what a network path can carry, layer by layer, and says what limits it",
        "homepage": url,
        "license": "Apache-2.0|MIT",
        "architecture": { "64bit": { "url": download, "hash": sum, "extract_dir": name } },
        "bin": "linerate.exe",
    });
    let winget = format!(
        "PackageIdentifier: Linerate.Linerate\n\
         PackageVersion: {version}\n\
         PackageLocale: en-US\n\
         Publisher: The linerate authors\n\
         PackageName: linerate\n\
         License: Apache-2.0 OR MIT\n\
         ShortDescription: Measures what a network path can carry, layer by layer, and says what limits it\n\
         Installers:\n\
         - Architecture: x64\n  \
           InstallerType: zip\n  \
           NestedInstallerType: portable\n  \
           NestedInstallerFiles:\n  \
           - RelativeFilePath: {name}\\linerate.exe\n    \
             PortableCommandAlias: linerate\n  \
           InstallerUrl: {download}\n  \
           InstallerSha256: {}\n\
         ManifestType: singleton\n\
         ManifestVersion: 1.6.0\n",
        sum.to_uppercase()
    );
    let files = ["linerate.scoop.json", "linerate.winget.yaml"].map(|file| release.out.join(file));
    let scoop = serde_json::to_string_pretty(&scoop).context("writing JSON")? + "\n";
    for (file, text) in files.iter().zip([scoop, winget]) {
        fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(files)
}

//! Compiles the programs that run in the kernel, `crates/*/bpf/*.bpf.c`, into the `.bpf.o` next to each.
//!
//! The objects are kept in the repository, so that building linerate needs no clang. `--check` compiles again and
//! compares. Another version of clang writes other bytes for the same program. In this case the instructions are
//! compared.

use crate::process;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// File with the first line of `clang --version` of the compiler that made the objects.
const COMPILER: &str = "clang-version";
const LIMIT: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write nothing. Fail if an object differs from the result of compiling its source.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let compiler = compiler()?;
    let mut folders: Vec<PathBuf> = fs::read_dir("crates")
        .context("listing crates")?
        .map(|entry| Ok(entry?.path().join("bpf")))
        .collect::<std::io::Result<_>>()
        .context("listing crates")?;
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    for folder in &folders {
        let record = folder.join(COMPILER);
        for source in sources(folder)? {
            let object = source.with_extension("o");
            if arguments.check {
                let made_by = fs::read_to_string(&record).with_context(|| format!("reading {}", record.display()))?;
                check(&source, &object, made_by.trim(), &compiler)?;
            } else {
                compile(&source, &object)?;
                println!("{} is made", object.display());
            }
        }
        if !arguments.check {
            fs::write(&record, format!("{compiler}\n")).with_context(|| format!("writing {}", record.display()))?;
        }
    }
    Ok(())
}

/// Returns the first line of `clang --version`.
fn compiler() -> Result<String> {
    let mut command = Command::new("clang");
    command.arg("--version");
    let output = process::run(command, LIMIT)
        .context("BPF programs are compiled by clang: `scripts/install-packages.sh check` installs it")?;
    Ok(output.stdout.lines().next().unwrap_or_default().trim().to_owned())
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let listing = || format!("listing {}", folder.display());
    let mut sources: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(listing)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()
        .with_context(listing)?;
    sources.retain(|path| path.to_string_lossy().ends_with(".bpf.c"));
    sources.sort();
    Ok(sources)
}

/// Compiles one program. The bytes do not depend on the repository's path.
fn compile(source: &Path, object: &Path) -> Result<()> {
    let root = std::env::current_dir().context("finding the current folder")?;
    let mut clang = Command::new("clang");
    // -g writes the BTF, from which the maps' types are read. The other debugging data is stripped below.
    clang
        .args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3"])
        .arg(format!("-ffile-prefix-map={}=.", root.display()))
        .arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH))
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object);
    process::run(clang, LIMIT)?;
    let mut strip = Command::new("llvm-strip");
    strip.arg("-g").arg(object);
    process::run(strip, LIMIT)?;
    Ok(())
}

fn check(source: &Path, object: &Path, made_by: &str, compiler: &str) -> Result<()> {
    let folder = tempfile::tempdir().context("making a temporary folder")?;
    let fresh = folder.path().join(object.file_name().unwrap_or_default());
    compile(source, &fresh)?;
    let read = |path: &Path| fs::read(path).with_context(|| format!("reading {}", path.display()));
    if read(&fresh)? == read(object)? {
        println!("{} is what its source compiles to", object.display());
        return Ok(());
    }
    if made_by != compiler && instructions(&fresh)? == instructions(object)? {
        println!("{} was made by {made_by}, here is {compiler}: other bytes, the same instructions", object.display());
        return Ok(());
    }
    bail!(
        "{} is not what its source compiles to with {compiler} (it was made by {made_by}): `cargo xtask bpf` makes it anew",
        object.display()
    )
}

/// Returns the instructions of an object, without its name.
fn instructions(object: &Path) -> Result<String> {
    let mut command = Command::new("llvm-objdump");
    command.args(["--disassemble", "--no-show-raw-insn", "--reloc"]).arg(object);
    let output = process::run(command, LIMIT)?;
    Ok(output.stdout.lines().filter(|line| !line.contains("file format")).collect::<Vec<_>>().join("\n"))
}

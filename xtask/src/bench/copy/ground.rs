//! Setting shared by all tools of a copy: the tree, its storage, the state of the caches, and the timing.

use super::Comparison;
use super::ways::{Client, Server, Tool};
use crate::bench::lab::{Lab, RECEIVER, SENDER};
use crate::bench::peers::port;
use crate::process::{self, Running};
use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs::{self, File, FileType};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time limit of one copy.
const LIMIT: Duration = Duration::from_secs(600);
/// Start of a timed script's last line.
const STAMP: &str = "from-to-ns";
/// File to which writing 3 empties the caches (proc_sys_vm(5)).
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// State of the caches at the start of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cache {
    /// The caches have the whole tree.
    Warm,
    /// The caches are empty.
    Cold,
}

impl Cache {
    /// Returns the value of linerate's option `--cache`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
        }
    }
}

/// Number of files below a folder, and of the bytes in them.
type Size = (u64, u64);

/// Lab with a generated tree and a folder for its copies.
pub(super) struct Ground {
    pub(super) lab: Lab,
    to: String,
    folder: TempDir,
    size: Size,
    /// Whether the time of a copy lasts until all data is durable.
    durable: bool,
    runs: u32,
}

impl Ground {
    /// Brings up a lab with the options `bench`, and generates the tree in a folder that the lab's hosts may use.
    pub(super) fn lay(comparison: &Comparison<'_>, bench: &[&str]) -> Result<Self> {
        let Comparison { folder: records, storage, tree, durable, program, .. } = *comparison;
        fs::create_dir_all(storage).with_context(|| format!("making {}", storage.display()))?;
        let folder = tempfile::Builder::new()
            .prefix("linerate-bench-")
            .tempdir_in(storage)
            .with_context(|| format!("making a folder in {}", storage.display()))?;
        spread(folder.path())?;
        let path = folder.path().canonicalize().context("finding the storage")?;
        // The lab allows its hosts the folder that this command names.
        let first =
            format!("copy a --over path --from memory --tree files=1,folders=1,bytes=1 --into {}", path.display());
        let lab = Lab::up_with(program, records, bench, &words(&first))?;
        let to = lab.address(RECEIVER)?;
        let mut ground = Self { lab, to, folder, size: (0, 0), durable, runs: 0 };
        let make = format!("copy a --over path --from memory --tree {tree} --sync none --verify none");
        let mut arguments = words(&make);
        arguments.extend(["--into".to_owned(), ground.tree().display().to_string()]);
        process::run(ground.lab.linerate(&arguments), LIMIT)?;
        remove_links(&ground.tree())?;
        ground.size = census(&ground.tree())?;
        Ok(ground)
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    /// Returns the destination of the current run. Each has its own name, which determines its place after [`spread`].
    fn destination(&self) -> PathBuf {
        self.folder.path().join(format!("into-{}", self.runs))
    }

    /// Returns the size of the tree's files in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.size.1
    }

    /// Copies the tree with `tool` to a new folder, removes the copy, and returns the seconds of the copy.
    pub(super) fn time(&mut self, tool: &Tool, cache: Cache) -> Result<f64> {
        self.runs += 1;
        self.prepare(cache, tool)?;
        let seconds = self.copy(tool, cache)?;
        let copied = census(&self.destination())?;
        if copied != self.size {
            bail!("{} copied {copied:?} of {:?} files and bytes", tool.name, self.size);
        }
        fs::remove_dir_all(self.destination()).context("removing what was copied")?;
        Ok(seconds)
    }

    /// Runs `linerate copy` with `arguments` and warm caches, with `tool`'s server at the receiving host. Returns its
    /// result.
    pub(super) fn copied(&mut self, tool: &Tool, arguments: &str) -> Result<Copied> {
        self.runs += 1;
        self.prepare(Cache::Warm, tool)?;
        let port = port(self.runs);
        let server = self.start(tool, port)?;
        let copied = self.linerate(arguments, Cache::Warm, port);
        if let Some(server) = server {
            server.stop(Signal::SIGTERM)?;
        }
        fs::remove_dir_all(self.destination()).context("removing what was copied")?;
        copied
    }

    fn start(&self, tool: &Tool, port: u16) -> Result<Option<Running>> {
        let Some(Server { script, .. }) = &tool.server else { return Ok(None) };
        let mut server = Running::start(self.shell(RECEIVER, script, port))?;
        self.lab.await_listening(&mut server, port)?;
        Ok(Some(server))
    }

    fn copy(&self, tool: &Tool, cache: Cache) -> Result<f64> {
        let port = port(self.runs);
        let mut server = self.start(tool, port)?;
        let mut seconds = match tool.client {
            Client::Linerate(words) => self.linerate(&format!("{words} --tree $TREE"), cache, port)?.time_ns / 1e9,
            Client::Shell(script) => {
                let (start, mut end) = stamps(&process::run(self.shell(SENDER, script, port), LIMIT)?.stdout)?;
                if tool.server.as_ref().is_some_and(|server| server.ends)
                    && let Some(server) = server.take()
                {
                    end = end.max(stamps(&server.finish(LIMIT)?.stdout)?.1);
                }
                (end - start) as f64 / 1e9
            }
        };
        if let Some(server) = server {
            server.stop(Signal::SIGTERM)?;
        }
        if self.durable && matches!(tool.client, Client::Shell(_)) {
            let started = Instant::now();
            let into = File::open(self.destination()).context("opening what was copied")?;
            nix::unistd::syncfs(&into).context("syncfs of what was copied")?;
            seconds += started.elapsed().as_secs_f64();
        }
        Ok(seconds)
    }

    /// Creates an empty destination, flushes all writes, and sets the state of the caches.
    fn prepare(&self, cache: Cache, tool: &Tool) -> Result<()> {
        fs::create_dir(self.destination()).context("making the folder to copy to")?;
        nix::unistd::sync();
        match cache {
            Cache::Warm => read_all(&self.tree())?,
            Cache::Cold => {
                fs::write(DROP_CACHES, "3\n")
                    .with_context(|| format!("writing {DROP_CACHES}; cold caches need root"))?;
            }
        }
        // linerate's agents are running. For a fair comparison a peer's program must be in the cache too.
        for program in ["sh", "env", "date"].iter().chain(tool.programs) {
            // A program without this option fails, but is in the cache.
            let _ = self.lab.inside(SENDER, [program, "--version"]).output();
        }
        Ok(())
    }

    fn linerate(&self, arguments: &str, cache: Cache, port: u16) -> Result<Copied> {
        let sync = if self.durable { "end" } else { "none" };
        let line = format!("copy {arguments} --cache {} --sync {sync} --repeats 1", cache.name());
        let mut arguments = words(&line);
        for (name, value) in self.names(port) {
            for word in &mut arguments {
                *word = word.replace(&format!("${name}"), &value);
            }
        }
        let record = process::run(self.lab.linerate(&arguments), LIMIT)?;
        Copied::read(&record.stdout)
    }

    /// Returns the variables of arguments and scripts: the folders and the server's address and port.
    fn names(&self, port: u16) -> [(&'static str, String); 5] {
        let folder = |path: PathBuf| path.display().to_string();
        [
            ("TREE", folder(self.tree())),
            ("INTO", folder(self.destination())),
            ("SCRATCH", folder(self.folder.path().to_owned())),
            ("TO", self.to.clone()),
            ("PORT", port.to_string()),
        ]
    }

    /// Returns a script inside a host that prints its start and end.
    fn shell(&self, host: &str, script: &str, port: u16) -> Command {
        let environment = self.names(port).map(|(name, value)| format!("{name}={value}"));
        let script =
            format!("begun=$(date +%s%N)\n({script})\nstatus=$?\necho {STAMP} $begun $(date +%s%N)\nexit $status");
        let words = ["sh".to_owned(), "-c".to_owned(), script];
        self.lab.inside(host, std::iter::once("env".to_owned()).chain(environment).chain(words))
    }
}

/// Result of a copy in linerate's record.
pub(super) struct Copied {
    pub(super) time_ns: f64,
    pub(super) bytes_per_s: f64,
    /// Each client's share of the sum of all rates. Clients are the destinations, or the sources if several write to
    /// one server.
    pub(super) shares: Vec<(String, f64)>,
    /// Stages and their busy shares, in the order of the record.
    pub(super) stages: Vec<(String, f64)>,
    pub(super) busiest: String,
}

impl Copied {
    /// Reads the result from a record. Fails if a file was not copied.
    pub(super) fn read(record: &str) -> Result<Self> {
        let record: Value = serde_json::from_str(record).context("reading linerate's record as JSON")?;
        let result = &record["results"][0];
        let number = |value: &Value, what| value.as_f64().with_context(|| format!("the record lacks {what}"));
        if number(&result["faults_total"], "what was not copied")? > 0.0 {
            bail!("linerate left something out: {}", result["faults"]);
        }
        let clients = result["clients"].as_array().map_or(&[][..], Vec::as_slice);
        let to_one = clients.len() > 1 && clients.iter().all(|client| client["to"] == clients[0]["to"]);
        let shares = clients.iter().map(|client| {
            let name = client[if to_one { "from" } else { "to" }].as_str().context("a client has no name")?;
            Ok((name.to_owned(), number(&client["share"], "a client's share")?))
        });
        let stages = result["stages"].as_object().into_iter().flatten();
        let stages = stages.map(|(name, share)| Ok((name.clone(), number(&share["busy"], "a stage's share")?)));
        Ok(Self {
            time_ns: number(&result["time_ns"], "its time")?,
            bytes_per_s: number(&result["bytes_per_s"], "its rate")?,
            shares: shares.collect::<Result<_>>()?,
            stages: stages.collect::<Result<_>>()?,
            busiest: result["busiest_stage"].as_str().unwrap_or("none").to_owned(),
        })
    }
}

/// Splits a line into words.
pub(super) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Makes the file system place new subfolders far from each other, if it can (chattr(1), `T`).
///
/// For some time after files were removed, ext4 creates files several times as slowly in the same place: it skips every
/// inode that was freed recently (`recently_deleted` in its ialloc.c). Each run would otherwise slow down the next.
fn spread(folder: &Path) -> Result<()> {
    let command = Command::new("chattr").arg("+T").arg(folder).output();
    let output = command.context("starting chattr, of the Debian package e2fsprogs")?;
    if !output.status.success() {
        eprintln!("note: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Returns the start and the end of a timed script, in nanoseconds since 1970.
fn stamps(output: &str) -> Result<(u64, u64)> {
    let line = output.lines().rev().find_map(|line| line.strip_prefix(STAMP));
    let line = line.with_context(|| format!("a script did not tell its times: {output}"))?;
    let mut stamps = line.split_whitespace().map(str::parse);
    match (stamps.next(), stamps.next()) {
        (Some(Ok(start)), Some(Ok(end))) if end > start => Ok((start, end)),
        _ => bail!("a script told no times: {line}"),
    }
}

/// Removes symbolic links, because SMB has none and every way must copy the same tree.
fn remove_links(root: &Path) -> Result<()> {
    below(root, &|kind| kind.is_symlink(), &mut |path| fs::remove_file(path))
}

/// Applies `action` to each regular file below a folder.
fn files(root: &Path, action: &mut dyn FnMut(&Path) -> io::Result<()>) -> Result<()> {
    below(root, &|kind| kind.is_file(), action)
}

/// Applies `action` to everything below a folder with a `wanted` type.
fn below(
    root: &Path,
    wanted: &dyn Fn(FileType) -> bool,
    action: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> Result<()> {
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder)
            .map_err(|error| anyhow::Error::msg(format!("listing {}: {error}", folder.display())))?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if wanted(kind) {
                action(&entry.path()).with_context(|| format!("at {}", entry.path().display()))?;
            }
        }
    }
    Ok(())
}

fn census(root: &Path) -> Result<Size> {
    let mut count = 0;
    let mut bytes = 0;
    files(root, &mut |path| {
        count += 1;
        bytes += path.symlink_metadata()?.len();
        Ok(())
    })?;
    Ok((count, bytes))
}

/// Reads a tree into the cache.
fn read_all(root: &Path) -> Result<()> {
    let mut buffer = vec![0; 256 << 10];
    files(root, &mut |path| {
        let mut file = File::open(path)?;
        while file.read(&mut buffer)? > 0 {}
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_and_end_of_a_script_are_read() {
        assert_eq!(stamps("noise\nfrom-to-ns 5 9\n").unwrap(), (5, 9));
        for wrong in ["", "from-to-ns 9 5", "from-to-ns 9"] {
            assert!(stamps(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_and_bytes_are_counted_without_links() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        fs::write(folder.path().join("in/a"), "abc").unwrap();
        fs::write(folder.path().join("b"), "de").unwrap();
        std::os::unix::fs::symlink("b", folder.path().join("c")).unwrap();
        assert_eq!(census(folder.path()).unwrap(), (2, 5));
        read_all(folder.path()).unwrap();
        remove_links(folder.path()).unwrap();
        assert!(!folder.path().join("c").is_symlink());
        assert_eq!(census(folder.path()).unwrap(), (2, 5));
    }

    #[test]
    fn record_has_time_shares_and_stages_unless_files_are_missing() {
        let record = r#"{"results":[{"time_ns":2e9,"bytes_per_s":5e6,"faults_total":0,"faults":[],"busiest_stage":"send",
            "clients":[{"to":"b","share":0.75},{"to":"c","share":0.25}],
            "stages":{"send":{"busy":0.9},"read":{"busy":0.1}}}]}"#;
        let copied = Copied::read(record).unwrap();
        assert_eq!((copied.time_ns, copied.busiest.as_str()), (2e9, "send"));
        assert_eq!(copied.shares, [("b".to_owned(), 0.75), ("c".to_owned(), 0.25)]);
        assert!(copied.stages.contains(&("send".to_owned(), 0.9)));
        let writing =
            record.replace(r#""to":"b""#, r#""from":"e","to":"a""#).replace(r#""to":"c""#, r#""from":"f","to":"a""#);
        assert_eq!(Copied::read(&writing).unwrap().shares, [("e".to_owned(), 0.75), ("f".to_owned(), 0.25)]);
        let partly = record.replace(r#""faults_total":0"#, r#""faults_total":3"#);
        assert!(Copied::read(&partly).is_err());
    }
}

//! Planted limits: what is built, what is measured in it, and what the verdict must be (`scenarios/*.toml`).

use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// One planted limit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// The name of its file.
    #[serde(skip)]
    pub(super) name: String,
    /// The limit that is planted, by its name in records.
    pub(super) limit: String,
    /// The least confidence that it must be named with.
    pub(super) confidence: String,
    /// What is measured.
    pub(super) test: String,
    /// The bench, as in a bench file.
    bench: toml::Table,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) limit: String,
    pub(super) confidence: String,
    /// It says that the hypervisor took time which may have part in it; then no verdict is sure, by its rule.
    pub(super) stolen: bool,
    /// The verdict in full.
    pub(super) whole: String,
}

impl Scenario {
    /// All of a directory, by name.
    pub(super) fn all(directory: &Path) -> Result<Vec<Self>, String> {
        let entries = fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths
            .iter()
            .filter(|path| path.extension().is_some_and(|kind| kind == "toml"))
            .map(|path| Self::read(path))
            .collect()
    }

    fn read(path: &Path) -> Result<Self, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let mut scenario: Self = toml::from_str(&text).map_err(|error| wrong(&error))?;
        scenario.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(scenario)
    }

    /// The arguments of the program; the bench is written to `bench`.
    pub(super) fn arguments(&self, bench: &Path) -> Result<Vec<String>, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", bench.display());
        let text = toml::to_string(&self.bench).map_err(|error| wrong(&error))?;
        fs::write(bench, text).map_err(|error| wrong(&error))?;
        let mut words: Vec<String> = vec!["lab".into(), "--bench".into(), bench.display().to_string(), "--".into()];
        words.extend(self.test.split_whitespace().map(str::to_owned));
        words.push("--json".into());
        Ok(words)
    }

    /// The verdict of a record of it is the planted limit, as surely as it must be on a machine that had its time.
    pub(super) fn is_met_by(&self, said: &Said) -> bool {
        let least = if said.stolen { rank(&self.confidence).min(rank("medium")) } else { rank(&self.confidence) };
        said.limit == self.limit && rank(&said.confidence) >= least
    }
}

impl Said {
    /// The first verdict of a record.
    pub(super) fn by(record: &Value) -> Option<Self> {
        let places = ["/results/0/verdict", "/outcome/throughput/0/verdict"];
        let verdict = places.iter().find_map(|place| record.pointer(place))?;
        let text = |name: &str| verdict[name].as_str().map(str::to_owned);
        let evidence = verdict["evidence"].as_array()?;
        let stolen = |said: &Value| said.as_str().is_some_and(|said| said.starts_with("The hypervisor took"));
        Some(Self {
            limit: text("limit")?,
            confidence: text("confidence")?,
            stolen: evidence.iter().any(stolen),
            whole: verdict.to_string(),
        })
    }

    /// It named a limit that is not the planted one, and was sure of it.
    pub(super) fn is_surely_wrong(&self, planted: &Scenario) -> bool {
        self.limit != planted.limit && self.confidence == "high"
    }
}

fn rank(confidence: &str) -> usize {
    ["low", "medium", "high"].iter().position(|name| *name == confidence).unwrap_or(0)
}

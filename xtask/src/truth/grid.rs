//! Grid files (`scenarios/CLASS.toml`): the limits planted in a class of cases, over a range of strengths and
//! conditions.

use super::BadInput;
use super::template::Value;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The limits that a verdict can name, as in records.
pub(super) const LIMITS: [&str; 21] = [
    "offered-load",
    "wire",
    "tester",
    "server",
    "storage-read",
    "storage-write",
    "sender-cpu",
    "receiver-cpu",
    "receiver-buffer",
    "softirq-cpu",
    "window",
    "send-buffer",
    "start-up",
    "outage",
    "path-loss",
    "mtu-black-hole",
    "corruption",
    "device",
    "shaper",
    "latency",
    CANNOT_TELL,
];

/// The verdict that names no limit.
pub(super) const CANNOT_TELL: &str = "cannot-tell";

/// The places that a verdict can name, as in records.
const PLACES: [&str; 10] = [
    "sender-application",
    "sender-host",
    "sender-queue",
    "forward-path",
    "return-path",
    "receiver-host",
    "receiver-application",
    "server",
    "storage",
    "device",
];

/// Values of a verdict's steadiness, as in records.
const STEADINESS: [&str; 3] = ["steady", "varying", "rising"];

/// One class of cases: a grid file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Class {
    /// Name of the file, without its extension.
    #[serde(skip)]
    pub(super) name: String,
    #[serde(rename = "grid")]
    pub(super) grids: Vec<Grid>,
}

/// One test on one bench, with axes along which both vary.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Grid {
    /// Name within the class.
    pub(super) name: String,
    /// The planted limits. A verdict that names one of them is right.
    #[serde(default)]
    pub(super) limits: Vec<String>,
    /// The planted properties of a device by name, with axes in braces ([`Findings`](super::findings::Findings)).
    /// They are judged in place of a verdict.
    #[serde(default)]
    pub(super) findings: toml::Table,
    /// The places that are right; empty if the place is not judged.
    #[serde(default)]
    pub(super) places: Vec<String>,
    /// The link of a chain of routers where the limit is planted, as in `2-3`, with axes in braces. `None` if the section is not judged.
    pub(super) link: Option<String>,
    /// Whether the load goes from the second host to the first, so that hops are counted from the second.
    #[serde(default)]
    pub(super) reverse: bool,
    /// Steadiness that the verdict must name. `None` if steadiness is not judged.
    pub(super) steadiness: Option<String>,
    /// This test cannot distinguish the planted limits from each other, or from no limit.
    #[serde(default)]
    pub(super) undecidable: bool,
    /// The result may be compared with that of iperf3.
    #[serde(default)]
    pub(super) witness: bool,
    /// Whether every case of the grid is for tuning.
    #[serde(default)]
    pub(super) tune_only: bool,
    /// Maximum number of cases in each set. `None` takes all.
    pub(super) cases: Option<usize>,
    /// The arguments of linerate, with axes in braces.
    pub(super) test: String,
    /// The values of each axis.
    #[serde(default)]
    pub(super) axes: BTreeMap<String, Vec<Value>>,
    /// The bench, as in a bench file, with axes in braces.
    pub(super) bench: toml::Table,
}

impl Class {
    /// Reads all grid files of a folder, by name.
    ///
    /// # Errors
    ///
    /// [`BadInput`] that names the file and the mistake.
    pub(super) fn read_all(folder: &Path) -> Result<Vec<Self>, BadInput> {
        let entries =
            fs::read_dir(folder).map_err(|error| BadInput(format!("reading {}: {error}", folder.display())))?;
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|kind| kind == "toml"));
        paths.sort();
        if paths.is_empty() {
            return Err(BadInput(format!("{} holds no grid file (*.toml)", folder.display())));
        }
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Result<Self, BadInput> {
        let text =
            fs::read_to_string(path).map_err(|error| BadInput(format!("reading {}: {error}", path.display())))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&name, &text).map_err(|problem| BadInput(format!("{}: {problem}", path.display())))
    }

    /// Parses the text of the grid file of class `name`.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut class: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        name.clone_into(&mut class.name);
        for (number, grid) in class.grids.iter().enumerate() {
            if class.grids[..number].iter().any(|other| other.name == grid.name) {
                return Err(format!("two grids are called `{}`", grid.name));
            }
            grid.check().map_err(|problem| format!("grid `{}`: {problem}", grid.name))?;
        }
        Ok(class)
    }
}

impl Grid {
    fn check(&self) -> Result<(), String> {
        if self.limits.is_empty() == self.findings.is_empty() {
            return Err("name what is planted, in either `limits` or `findings`".to_owned());
        }
        check_names("limits", &self.limits, &LIMITS)?;
        check_names("places", &self.places, &PLACES)?;
        check_names("steadiness", self.steadiness.as_slice(), &STEADINESS)?;
        if self.undecidable && !(self.places.is_empty() && self.steadiness.is_none()) {
            return Err("`undecidable` excludes `places` and `steadiness`".to_owned());
        }
        match self.axes.iter().find(|(_, values)| values.is_empty()) {
            Some((axis, _)) => Err(format!("axis `{axis}` has no value")),
            None => Ok(()),
        }
    }
}

/// Fails if `names`, the value of `field`, has a name that is not in `all`.
fn check_names(field: &str, names: &[String], all: &[&str]) -> Result<(), String> {
    match names.iter().find(|name| !all.contains(&name.as_str())) {
        Some(name) => Err(format!("`{field}` has `{name}`; linerate knows {}", all.join(", "))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: &str =
        "[[grid]]\nname = 'tcp'\nlimits = ['shaper']\ntest = 'stream a b'\n[grid.bench]\nhosts = ['a', 'b']\n";

    #[test]
    fn unknown_key_is_reported_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shaper.toml");
        fs::write(&file, GRID.replace("limits", "confidence = 'high'\nlimits")).unwrap();
        let BadInput(problem) = Class::read_all(folder.path()).unwrap_err();
        assert!(problem.contains("shaper.toml") && problem.contains("unknown field `confidence`"), "{problem}");
        fs::write(&file, GRID).unwrap();
        assert_eq!(Class::read_all(folder.path()).unwrap()[0].name, "shaper");
    }

    #[test]
    fn unknown_limits_and_places_are_refused() {
        let wrong = |from: &str, to: &str| Class::parse("shaper", &GRID.replace(from, to)).unwrap_err();
        assert!(wrong("'shaper'", "'shapr'").contains("grid `tcp`: `limits` has `shapr`"));
        assert!(wrong("['shaper']", "[]").contains("in either `limits` or `findings`"));
        let both = wrong("[grid.bench]", "[grid.findings]\npause = 'absent'\n[grid.bench]");
        assert!(both.contains("in either `limits` or `findings`"), "{both}");
        let places = wrong("test =", "places = ['path']\ntest =");
        assert!(places.contains("`places` has `path`") && places.contains("forward-path"), "{places}");
        assert!(wrong("test =", "steadiness = 'calm'\ntest =").contains("`calm`"));
        assert!(wrong("test =", "undecidable = true\nsteadiness = 'steady'\ntest =").contains("excludes"));
        assert!(wrong("[grid.bench]", "[grid.axes]\nrate = []\n[grid.bench]").contains("axis `rate` has no value"));
        let twice = Class::parse("shaper", &GRID.repeat(2)).unwrap_err();
        assert!(twice.contains("two grids are called `tcp`"), "{twice}");
    }

    #[test]
    fn folder_without_grid_files_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let BadInput(problem) = Class::read_all(folder.path()).unwrap_err();
        assert!(problem.contains("holds no grid file"), "{problem}");
        let BadInput(problem) = Class::read_all(&folder.path().join("missing")).unwrap_err();
        assert!(problem.contains("missing"), "{problem}");
    }
}

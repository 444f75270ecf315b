//! The published rates: a table in docs/verdicts.md, between two markers.

use super::matrix::Matrix;
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Document with the published rates.
pub(super) const DOCUMENT: &str = "docs/verdicts.md";

const BEGIN: &str = "<!-- cargo xtask truth --write-summary: begin -->";
const END: &str = "<!-- cargo xtask truth --write-summary: end -->";

/// Date, machine and size of the measurement.
pub(super) struct Occasion {
    date: String,
    kernel: String,
    cores: usize,
    pub(super) runs: u32,
    pub(super) cases: usize,
}

impl Occasion {
    /// Describes a measurement made today on this machine.
    ///
    /// # Errors
    ///
    /// The date or the kernel's release cannot be read.
    pub(super) fn now(runs: u32, cases: usize) -> Result<Self> {
        let date = std::process::Command::new("date").args(["-u", "+%-d %B %Y"]).env("LC_ALL", "C").output();
        let date = String::from_utf8(date.context("running `date`")?.stdout).context("reading what `date` wrote")?;
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").context("reading the kernel's release")?;
        let cores = std::thread::available_parallelism().context("counting the cores")?.get();
        Ok(Self { date: date.trim().to_owned(), kernel: kernel.trim().to_owned(), cores, runs, cases })
    }
}

/// Replaces the table of rates in the document.
///
/// # Errors
///
/// The document cannot be read or written, or lacks the markers.
pub(super) fn write(document: &Path, matrix: &Matrix, occasion: &Occasion) -> Result<()> {
    let text = fs::read_to_string(document).with_context(|| format!("reading {}", document.display()))?;
    let Some(text) = replace_table(&text, &table(matrix, occasion)) else {
        bail!("{} lacks the lines `{BEGIN}` and `{END}`", document.display());
    };
    fs::write(document, text).with_context(|| format!("writing {}", document.display()))
}

/// Returns `document` with `table` between the markers, or `None` if it lacks them.
fn replace_table(document: &str, table: &str) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}{END}{after}"))
}

fn table(matrix: &Matrix, occasion: &Occasion) -> String {
    let Occasion { date, kernel, cores, runs, cases } = occasion;
    let total = matrix.total();
    let times = if *runs == 1 { String::from("once") } else { format!("{runs} times") };
    let mut text = format!(
        "{date}: {cases} held-out cases, measured {times} on {cores} cores (Linux {kernel}). {} of {} verdicts were right \
         ({}, 95 % interval {}), {} wrong with high confidence.\n\n",
        total.right,
        total.all,
        total.share(),
        total.interval(),
        total.surely_wrong
    );
    text.push_str("| class | verdicts | right | 95 % interval | surely wrong | named |\n|---|---|---|---|---|---|\n");
    for (class, counts) in matrix.classes() {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {class} | {} | {} | {} | {} | {} |",
            counts.all,
            counts.share(),
            counts.interval(),
            counts.surely_wrong,
            counts.labels()
        );
    }
    let goals = matrix.goals();
    let (met, below): (Vec<_>, Vec<_>) = goals.iter().partition(|goal| goal.is_met());
    let _ = writeln!(text, "\nGoals met: {} of {}.", met.len(), goals.len());
    for goal in below {
        let _ = writeln!(text, "- {goal}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_replaces_the_text_between_the_markers() {
        let document = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let new = replace_table(&document, "new\n").unwrap();
        assert_eq!(new, format!("before\n{BEGIN}\nnew\n{END}\nafter\n"));
        assert_eq!(replace_table("no markers", "new"), None);
    }

    #[test]
    fn shipped_document_has_the_markers() {
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(DOCUMENT);
        assert!(replace_table(&fs::read_to_string(document).unwrap(), "").is_some());
    }

    #[test]
    fn table_names_date_cores_and_kernel() {
        let occasion =
            Occasion { date: "23 November 2026".into(), kernel: "6.18".into(), cores: 2, runs: 3, cases: 170 };
        let text = table(&Matrix::default(), &occasion);
        assert!(
            text.starts_with("23 November 2026: 170 held-out cases, measured 3 times on 2 cores (Linux 6.18)."),
            "{text}"
        );
    }
}

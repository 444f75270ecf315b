//! The confusion matrix: how often each limit was named in each class, and the rates compared with the goals.

use super::cases::{Case, Judgement};
use super::interval::Interval;
use super::verdict::Verdict;
use std::collections::BTreeMap;
use std::fmt;

/// Share of all verdicts that must be right.
const RIGHT: f64 = 0.95;
/// Share of a class's verdicts that must be right.
const RIGHT_IN_CLASS: f64 = 0.85;
/// Share of the undecidable cases that must be reported as undecidable.
const UNDECIDABLE_RIGHT: f64 = 0.80;

/// Share of the located limits whose place must be one link.
const ONE_LINK: f64 = 0.80;

/// Counts of verdicts.
#[derive(Debug, Default, Clone)]
pub(super) struct Counts {
    pub(super) all: u32,
    pub(super) right: u32,
    pub(super) surely_wrong: u32,
    /// Verdicts whose bench reported that it did not keep its limits.
    late: u32,
    late_right: u32,
    undecidable: u32,
    undecidable_right: u32,
    /// Verdicts whose section is judged, and those of them that name one link.
    sections: u32,
    links: u32,
    /// Number of verdicts by label ([`Case::label`]).
    labels: BTreeMap<String, u32>,
}

/// Counts of each class.
#[derive(Debug, Default)]
pub(super) struct Matrix {
    classes: BTreeMap<String, Counts>,
}

/// A share to be reached, and the counts towards it.
pub(super) struct Goal {
    pub(super) text: String,
    hits: u32,
    all: u32,
    required_share: f64,
}

impl Counts {
    fn add(&mut self, case: &Case, verdict: &Verdict) {
        let judgement = case.judge(verdict);
        let right = u32::from(judgement == Judgement::Right);
        self.all += 1;
        self.right += right;
        self.surely_wrong += u32::from(judgement == Judgement::SurelyWrong);
        if verdict.late {
            self.late += 1;
            self.late_right += right;
        }
        if let Some(is_one_link) = case.is_one_link(verdict) {
            self.sections += 1;
            self.links += u32::from(is_one_link);
        }
        if case.undecidable {
            self.undecidable += 1;
            self.undecidable_right += right;
        }
        *self.labels.entry(case.label(verdict)).or_default() += 1;
    }

    fn write_row(&self, class: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { all, right, surely_wrong, .. } = self;
        let share = self.share();
        let interval = self.interval();
        let labels = self.labels();
        writeln!(f, "{class:<18} {all:>5} {right:>5} {share:>8}  {interval:<16} {surely_wrong:>12}  {labels}")
    }

    fn merge(&mut self, other: &Self) {
        self.all += other.all;
        self.right += other.right;
        self.surely_wrong += other.surely_wrong;
        self.late += other.late;
        self.late_right += other.late_right;
        self.sections += other.sections;
        self.links += other.links;
        self.undecidable += other.undecidable;
        self.undecidable_right += other.undecidable_right;
    }

    /// Returns the share that was right, as in `94.4 %`.
    pub(super) fn share(&self) -> String {
        percent(f64::from(self.right) / f64::from(self.all.max(1)))
    }

    /// Returns the 95 % confidence interval of [`Self::share`], as in `72.7 .. 99.9 %`.
    pub(super) fn interval(&self) -> String {
        interval(self.right, self.all)
    }

    /// Lists the labels with their counts, the most frequent first.
    pub(super) fn labels(&self) -> String {
        let mut labels: Vec<(&String, &u32)> = self.labels.iter().collect();
        labels.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
        let texts: Vec<String> = labels.iter().map(|(limit, times)| format!("{limit} {times}")).collect();
        texts.join("; ")
    }
}

impl Matrix {
    /// Counts a verdict.
    pub(super) fn add(&mut self, case: &Case, verdict: &Verdict) {
        self.classes.entry(case.class.clone()).or_default().add(case, verdict);
    }

    /// The classes in alphabetical order.
    pub(super) fn classes(&self) -> impl Iterator<Item = (&String, &Counts)> {
        self.classes.iter()
    }

    /// The counts of all classes together.
    pub(super) fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.classes.values().for_each(|counts| total.merge(counts));
        total
    }

    /// Returns the goals that have at least one case.
    pub(super) fn goals(&self) -> Vec<Goal> {
        let total = self.total();
        let mut goals = vec![Goal::new("right in all classes", total.right, total.all, RIGHT)];
        for (class, counts) in &self.classes {
            let share = if counts.undecidable == counts.all { UNDECIDABLE_RIGHT } else { RIGHT_IN_CLASS };
            goals.push(Goal::new(format!("right in class {class}"), counts.right, counts.all, share));
        }
        goals.push(Goal::new(
            "undecidable, and said so",
            total.undecidable_right,
            total.undecidable,
            UNDECIDABLE_RIGHT,
        ));
        goals.push(Goal::new("place is a single link", total.links, total.sections, ONE_LINK));
        goals.retain(|goal| goal.all > 0);
        goals
    }

    /// Fails if a verdict was surely wrong, or if a rate misses its goal by more than chance explains.
    ///
    /// # Errors
    ///
    /// A sentence for each missed goal.
    pub(super) fn judge(&self) -> Result<(), String> {
        let mut missed: Vec<String> =
            self.goals().iter().filter(|goal| goal.is_missed()).map(|goal| goal.to_string()).collect();
        let surely_wrong = self.total().surely_wrong;
        if surely_wrong > 0 {
            missed.push(format!("{surely_wrong} verdicts were wrong with high confidence; the goal is none"));
        }
        if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
    }
}

impl Goal {
    fn new(text: impl Into<String>, hits: u32, all: u32, required_share: f64) -> Self {
        Self { text: text.into(), hits, all, required_share }
    }

    /// Returns whether even the upper bound of the interval is below the goal.
    pub(super) fn is_missed(&self) -> bool {
        Interval::clopper_pearson(self.hits, self.all).high < self.required_share
    }

    /// Returns whether the observed share reaches the goal.
    pub(super) fn is_met(&self) -> bool {
        f64::from(self.hits) >= self.required_share * f64::from(self.all)
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, hits, all, required_share } = self;
        let state = match (self.is_met(), self.is_missed()) {
            (true, _) => "met",
            (false, true) => "MISSED",
            (false, false) => "below the goal, within chance",
        };
        write!(
            f,
            "{text}: {hits} of {all} ({}); the goal is {}: {state}",
            interval(*hits, *all),
            percent(*required_share)
        )
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<18} {:>5} {:>5} {:>8}  {:<16} {:>12}  named",
            "class", "cases", "right", "share", "95 % interval", "surely wrong"
        )?;
        for (class, counts) in &self.classes {
            counts.write_row(class, f)?;
        }
        self.total().write_row("all", f)?;
        for goal in self.goals().iter().filter(|goal| !goal.is_met() || !goal.text.contains("class ")) {
            writeln!(f, "{goal}")?;
        }
        let Counts { surely_wrong, late, late_right, .. } = self.total();
        if late > 0 {
            writeln!(
                f,
                "benches that did not keep their limits: {late} (right: {late_right}); they count as the others do"
            )?;
        }
        writeln!(f, "wrong with high confidence: {surely_wrong}; the goal is none")
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn interval(hits: u32, all: u32) -> String {
    let Interval { low, high } = Interval::clopper_pearson(hits, all);
    format!("{:.1} .. {:.1} %", 100.0 * low, 100.0 * high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(right: u32, missed: u32, surely_wrong: u32) -> Matrix {
        let all = right + missed + surely_wrong;
        let labels = [("wire".to_owned(), right), ("shaper".to_owned(), missed + surely_wrong)].into();
        let counts = Counts { all, right, surely_wrong, labels, ..Counts::default() };
        Matrix { classes: [("wire".to_owned(), counts)].into() }
    }

    #[test]
    fn goal_is_missed_only_beyond_chance() {
        assert!(matrix(68, 0, 0).judge().is_ok() && matrix(64, 4, 0).judge().is_ok());
        let missed = matrix(58, 10, 0).judge().unwrap_err();
        assert!(missed.contains("right in all classes: 58 of 68") && !missed.contains("class wire"), "{missed}");
        assert!(matrix(40, 28, 0).judge().unwrap_err().contains("right in class wire: 40 of 68"));
    }

    #[test]
    fn one_surely_wrong_verdict_fails() {
        assert!(matrix(999, 0, 1).judge().unwrap_err().contains("1 verdicts were wrong with high confidence"));
    }

    #[test]
    fn undecidable_cases_have_their_own_goal() {
        let counts = Counts { all: 50, right: 40, undecidable: 50, undecidable_right: 40, ..Counts::default() };
        let mut matrix = matrix(9_950, 0, 0);
        matrix.classes.insert("undecidable".to_owned(), counts);
        assert!(matrix.judge().is_ok());
        let counts = matrix.classes.get_mut("undecidable").unwrap();
        counts.right = 30;
        counts.undecidable_right = 30;
        assert!(matrix.judge().unwrap_err().contains("undecidable, and said so: 30 of 50"));
    }

    #[test]
    fn matrix_shows_shares_intervals_and_limits() {
        let text = matrix(64, 4, 0).to_string();
        let line = text.lines().nth(1).unwrap();
        assert!(
            line.contains("94.1 %") && line.contains("85.6 .. 98.4 %") && line.ends_with("wire 64; shaper 4"),
            "{line}"
        );
    }
}

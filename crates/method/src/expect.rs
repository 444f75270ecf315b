//! Expectations that turn a measurement into an exit code: `throughput>=9Gbit/s`, `loss<=0.1%`, `p99<200us`,
//! `limit!=receiver-cpu`.

use crate::Metric;
use linerate_model::{DeviceFound, DevicePlan, Limit, Measurement, Trial, Verdict};
use std::fmt;
use std::str::FromStr;

/// How it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    AtLeast,
    AtMost,
    Above,
    Below,
}

/// One expectation.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    of: Expected,
    text: String,
}

/// What is expected.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Expected {
    /// A figure is on one side of a threshold.
    Figure { metric: Metric, comparison: Comparison, threshold: f64 },
    /// The verdict names a limit, or names another.
    Limit { limit: Limit, is: bool },
}

/// A text that is no expectation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not an expectation: {problem}; write METRIC, one of >= <= > <, and a value, as in 'throughput>=9Gbit/s', \
     'transactions>=20k', 'loss<=0.1%', 'p99<200us' or 'share>=95%'; of the verdict, 'limit=wire' or 'limit!=receiver-cpu'"
)]
pub struct BadExpectation {
    text: String,
    problem: String,
}

/// How one result stands to one expectation.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The result's name; empty if it is about none.
    pub result: String,
    /// The expectation as it was typed.
    pub expectation: String,
    /// It is met.
    pub met: bool,
    /// The result, its figure and the expectation, in words.
    pub text: String,
}

/// Longest first, so that `>=` is not read as `>`.
const COMPARISONS: [(&str, Comparison); 4] =
    [(">=", Comparison::AtLeast), ("<=", Comparison::AtMost), (">", Comparison::Above), ("<", Comparison::Below)];

impl FromStr for Expectation {
    type Err = BadExpectation;

    fn from_str(text: &str) -> Result<Self, BadExpectation> {
        let fail = |problem: String| BadExpectation { text: text.to_owned(), problem };
        if let Some((name, limit)) =
            text.split_once('=').filter(|(name, _)| name.trim_end_matches('!').trim() == "limit")
        {
            let known = Limit::ALL.into_iter().find(|known| known.name() == limit.trim());
            let limit = known.ok_or_else(|| {
                let names = Limit::ALL.map(Limit::name).join(", ");
                fail(format!("`{}` is no limit; the limits are {names}", limit.trim()))
            })?;
            let of = Expected::Limit { limit, is: !name.ends_with('!') };
            return Ok(Self { of, text: text.to_owned() });
        }
        let at = text.find(['<', '>']).ok_or_else(|| fail("there is no comparison".into()))?;
        let (name, rest) = text.split_at(at);
        let (sign, comparison) = COMPARISONS
            .into_iter()
            .find(|(sign, _)| rest.starts_with(sign))
            .ok_or_else(|| fail("there is no comparison".into()))?;
        let metric = Metric::named(name.trim())
            .ok_or_else(|| fail(format!("`{}` is not a metric: they are {}", name.trim(), Metric::names(|_| true))))?;
        let value = rest[sign.len()..].trim();
        let threshold = metric.parse(value).map_err(fail)?;
        Ok(Self { of: Expected::Figure { metric, comparison, threshold }, text: text.to_owned() })
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Expectation {
    /// The metric that it is about; none if it is about the verdict.
    pub fn metric(&self) -> Option<Metric> {
        match self.of {
            Expected::Figure { metric, .. } => Some(metric),
            Expected::Limit { .. } => None,
        }
    }

    /// Whether trials of this kind give what it is about. A threshold that nothing is compared with must not pass.
    pub fn applies_to(&self, trial: &Trial) -> bool {
        self.metric().is_none_or(|metric| metric.applies_to(trial))
    }

    /// Judges one result by its median (latency: over all runs), or by its verdict. A result without the figure misses the expectation.
    pub fn judge(&self, result: &Measurement) -> Judgement {
        match self.of {
            Expected::Figure { .. } if !result.firmness().is_firm() => self.missed(
                &result.name,
                "the figure is not firm, because the tester did not send all frames that were due",
            ),
            Expected::Figure { metric, .. } => self.weigh(&result.name, metric.of(result)),
            Expected::Limit { .. } => self.weigh_limit(&result.name, Some(&result.verdict)),
        }
    }

    /// Judges a result that is not firm: it is missed, unless it is its verdict that is asked for.
    pub fn judge_not_firm(&self, result: &Measurement) -> Judgement {
        match self.of {
            Expected::Figure { .. } => self.missed(
                &result.name,
                "the figure is not firm, because the client did not send all operations that were due at the next load",
            ),
            Expected::Limit { .. } => self.judge(result),
        }
    }

    /// Judges what was found about a device at each of the plan's frame sizes.
    pub fn judge_device(&self, plan: &DevicePlan, outcome: &DeviceFound) -> Vec<Judgement> {
        let judge = |size: u32| {
            let name = format!("{size} bytes");
            match self.of {
                Expected::Figure { metric, .. } => {
                    let figure = metric.of_device(size, outcome);
                    match figure.filter(|_| !metric.firmness_of_device(size, outcome).is_firm()) {
                        Some(figure) => self.missed(
                            &name,
                            &format!(
                                "{} is not firm, because the tester did not offer the loads that were to decide",
                                metric.show(figure)
                            ),
                        ),
                        None => self.weigh(&name, figure),
                    }
                }
                Expected::Limit { .. } => {
                    let found = outcome.throughput.iter().find(|found| found.frame_bytes == size);
                    self.weigh_limit(&name, found.map(|found| &found.verdict))
                }
            }
        };
        plan.sizes.iter().map(|size| judge(size.get())).collect()
    }

    /// That it is missed by `result`, or by the whole run if that is empty, for `why`.
    pub fn missed(&self, result: &str, why: &str) -> Judgement {
        self.judgement(result, false, &format!("{why}: {} is missed", self.text))
    }

    fn judgement(&self, result: &str, met: bool, said: &str) -> Judgement {
        let text = if result.is_empty() { said.to_owned() } else { format!("{result}: {said}") };
        Judgement { result: result.to_owned(), expectation: self.text.clone(), met, text }
    }

    /// A limit that was reached as well is one of the limits.
    fn weigh_limit(&self, name: &str, verdict: Option<&Verdict>) -> Judgement {
        let (Expected::Limit { limit, is }, Some(verdict)) = (self.of, verdict) else {
            return self.judgement(name, false, &format!("no verdict to hold against {}", self.text));
        };
        let named = verdict.limit != Limit::CannotTell && verdict.also.contains(&limit) || verdict.limit == limit;
        let met = named == is;
        let verb = if met { "meets" } else { "misses" };
        let said = format!("limit {} ({} confidence) {verb} {}", verdict.limit, verdict.confidence, self.text);
        self.judgement(name, met, &said)
    }

    fn weigh(&self, name: &str, figure: Option<f64>) -> Judgement {
        let Expected::Figure { metric, comparison, threshold } = self.of else {
            return self.weigh_limit(name, None);
        };
        let Some(value) = figure else {
            return self.judgement(name, false, &format!("no figure to hold against {}", self.text));
        };
        let met = match comparison {
            Comparison::AtLeast => value >= threshold,
            Comparison::AtMost => value <= threshold,
            Comparison::Above => value > threshold,
            Comparison::Below => value < threshold,
        };
        let verb = if met { "meets" } else { "misses" };
        // What is rounded to the threshold must not look like it.
        let looks_equal = value != threshold && metric.show(value) == metric.show(threshold);
        let shown = if looks_equal { metric.show_exactly(value) } else { metric.show(value) };
        self.judgement(name, met, &format!("{shown} {verb} {}", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::tests::placed;
    use crate::copy::tests::{cell, plan};
    use crate::loaded_latency;
    use crate::measure::tests::{measure, record_of};
    use crate::results::measurements;
    use crate::transfer::tests::{spec, trial};
    use linerate_model::{CopyFigures, Detail, Histogram, Transactions};

    fn measured(received: u64, lost: u64) -> Measurement {
        measure(&[], &[placed(trial(received, lost))])
    }

    fn judge(text: &str) -> Judgement {
        text.parse::<Expectation>().expect(text).judge(&measured(9_900, 100))
    }

    #[test]
    fn compares_the_median_with_the_threshold() {
        // 9,900 datagrams of 1,000 bytes in a second.
        for (text, met) in [
            ("throughput>=79.2Mbit/s", true),
            ("throughput > 79.2Mbit/s", false),
            ("throughput>=80Mbit/s", false),
            ("loss<=1%", true),
            ("loss<1/100", false),
            ("packets>=9.9kpps", true),
        ] {
            let judgement = judge(text);
            assert_eq!(judgement.met, met, "{}", judgement.text);
            assert!(judgement.text.contains("udp 1000"), "{}", judgement.text);
        }
    }

    #[test]
    fn what_misses_by_little_is_shown_exactly() {
        let judge = |text: &str, value: f64| text.parse::<Expectation>().expect(text).weigh("udp", Some(value)).text;
        for (text, value, shown) in [
            ("loss<=0%", 3e-6, "udp: 0.0003 % misses loss<=0%"),
            ("throughput>=9.3Gbit/s", 9.296e9, "udp: 9,296,000,000 bit/s misses throughput>=9.3Gbit/s"),
            ("p99<200us", 200_400.0, "udp: 200,400 ns misses p99<200us"),
            ("transactions>=20k", 19_999.6, "udp: 19999.6/s misses transactions>=20k"),
            ("added.p50<=0ms", -50_000.0, "udp: -50 us meets added.p50<=0ms"),
            ("loss<=1%", 0.01, "udp: 1.000 % meets loss<=1%"),
        ] {
            assert_eq!(judge(text, value), shown);
        }
    }

    #[test]
    fn a_copy_is_held_against_its_bytes_and_files_a_second() {
        let copy = cell(plan(&["b"]));
        let figures = CopyFigures { bytes_per_s: 50e6, files_per_s: 700.0, ..CopyFigures::default() };
        let found = Measurement { detail: Detail::Copy(Box::new(figures)), ..measured(1, 0) };
        for (text, met) in [("throughput>=50MB/s", true), ("throughput>401Mbit/s", false), ("files>=700", true)] {
            let expectation: Expectation = text.parse().expect(text);
            assert!(expectation.applies_to(&copy) && !expectation.judge(&found).text.is_empty());
            assert_eq!(expectation.judge(&found).met, met, "{text}");
        }
        let other: Expectation = "loss<1%".parse().expect("valid");
        assert!(!other.applies_to(&copy) && !other.judge(&found).met);
        let files: Expectation = "files>=700".parse().expect("valid");
        assert!(!files.applies_to(&spec()) && !files.judge(&measured(9_900, 100)).met);
    }

    #[test]
    fn a_figure_that_is_missing_is_a_miss_and_is_refused_beforehand() {
        assert!(!judge("p99<1s").met);
        let expectation: Expectation = "p99<1s".parse().expect("valid");
        assert!(!expectation.applies_to(&spec()));
    }

    #[test]
    fn latency_under_load_is_compared_where_it_was_measured() {
        let asked = |nanos| {
            let mut latency = Histogram::default();
            latency.record_many(nanos, 50);
            Transactions { completed: 50, latency, ..Transactions::default() }
        };
        let (idle, loaded) = loaded_latency::tests::run(asked(90_000), asked(40_000));
        let cell = loaded.trial.clone();
        let mut record = record_of(&[], std::slice::from_ref(&loaded), Vec::new());
        record.trials = vec![idle, loaded];
        let measured = measurements(&record);
        for (text, met, shown) in [
            ("added.p50<=1ms", true, "-50 us meets"),
            ("added.p99>0", false, "-50 us misses"),
            // 60 s / 40 us.
            ("rpm>=1.49M", true, "round trips a minute meets"),
            ("rpm>=1.51M", false, "round trips a minute misses"),
        ] {
            let expectation: Expectation = text.parse().expect(text);
            assert!(expectation.applies_to(&cell) && !expectation.applies_to(&spec()), "{text}");
            let judgement = expectation.judge(&measured[0]);
            assert_eq!(judgement.met, met, "{}", judgement.text);
            assert!(judgement.text.contains(shown), "{}", judgement.text);
        }
    }

    #[test]
    fn a_verdict_is_held_against_a_limit() {
        let mut result = measured(9_900, 100);
        (result.verdict.limit, result.verdict.also) = (Limit::Wire, vec![Limit::SenderCpu]);
        for (text, met) in [
            ("limit=wire", true),
            ("limit!=wire", false),
            ("limit != receiver-cpu", true),
            ("limit=receiver-cpu", false),
            ("limit!=sender-cpu", false),
        ] {
            let expectation: Expectation = text.parse().expect(text);
            assert!(expectation.applies_to(&spec()), "{text}");
            let judgement = expectation.judge(&result);
            assert_eq!(judgement.met, met, "{}", judgement.text);
            assert!(judgement.text.contains(": limit wire ("), "{}", judgement.text);
        }
        // Limits that are possible were not named.
        result.verdict.limit = Limit::CannotTell;
        assert!("limit!=sender-cpu".parse::<Expectation>().expect("valid").judge(&result).met);
        let error = "limit=disk".parse::<Expectation>().expect_err("no limit").to_string();
        assert!(error.contains("`disk` is no limit") && error.contains("storage-read"), "{error}");
    }

    #[test]
    fn bad_expectations_say_how_to_write_one() {
        for text in ["", "throughput", "throughput=9G", "speed>=1", "loss<=fast", ">=3"] {
            let error = text.parse::<Expectation>().expect_err(text).to_string();
            assert!(error.contains("throughput>=9Gbit/s"), "{error}");
        }
    }
}

//! Loads that run two ways in turn. Ratios are taken within a repeat, each of which starts with the other way.

use super::Comparison;
use super::figure::{Spread, Unit};
use crate::process;
use anyhow::{Context, Result, bail};
use linerate_method::statistics::{Contrast, Scale};

/// Confidence of the interval of a ratio, in percent.
const CONFIDENCE: f64 = 95.0;

/// A load and its unit.
pub(super) struct Load<'a> {
    pub(super) name: &'a str,
    /// linerate's command and options without hosts, as in `stream --udp`.
    pub(super) line: &'a str,
    pub(super) unit: Unit,
}

/// Runs the loads of a comparison and prints them. `measure` runs a load the first way (0) or the second (1).
///
/// # Errors
///
/// A run fails, or the median ratio of the first way to the second is below `goal`, if there is one.
pub(super) fn run(
    comparison: &Comparison,
    loads: &[Load<'_>],
    ways: [&str; 2],
    goal: Option<f64>,
    mut measure: impl FnMut(&Load<'_>, usize) -> Result<f64>,
) -> Result<()> {
    let [first, second] = ways;
    println!("{:<18} {first:>16} {second:>16} {:>26} {:>18}", "load", "ratio", "95 % interval");
    let mut missed = Vec::new();
    for load in loads.iter().filter(|load| comparison.has(load.name)) {
        let mut values: [Vec<f64>; 2] = Default::default();
        for turn in 0..2 * comparison.repeats as usize {
            let way = (turn + turn / 2) % 2;
            values[way].push(measure(load, way).with_context(|| load.name.to_owned())?);
            process::check_interrupt()?;
        }
        let [first, second] = &values;
        let ratios = first.iter().zip(second).map(|(first, second)| first / second);
        let ratio = Spread::of(ratios).context("no repeat")?;
        let [first_text, second_text] = [first, second].map(|values| {
            Spread::of(values.iter().copied()).map_or(String::new(), |spread| load.unit.show(spread.median))
        });
        let ratio_text = format!("{:.3} ({:.3}..{:.3})", ratio.median, ratio.low, ratio.high);
        let interval = interval(&values).map_or("–".to_owned(), |[low, high]| format!("{low:.3} to {high:.3}"));
        println!("{:<18} {first_text:>16} {second_text:>16} {ratio_text:>26} {interval:>18}", load.name);
        if goal.is_some_and(|goal| ratio.median < goal) {
            missed.push(load.name);
        }
    }
    if let Some(goal) = goal {
        println!("goal: {goal} or more");
    }
    if missed.is_empty() { Ok(()) } else { bail!("below: {}", missed.join(", ")) }
}

/// Returns the interval of the ratio of the first way's mean to the second's, as `linerate compare --live` does. `None` if
/// there are fewer than two repeats, or all ratios are equal.
fn interval(values: &[Vec<f64>; 2]) -> Option<[f64; 2]> {
    let [first, second] = values;
    let pairs: Vec<(f64, f64)> = second.iter().copied().zip(first.iter().copied()).collect();
    let interval = Contrast::paired(Scale::Ratio, &pairs, (0.0, 0.0))?.interval(CONFIDENCE)?;
    Some([1.0 + interval.low, 1.0 + interval.high])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_is_that_of_the_ratio_within_repeats() {
        // The machine halves its speed; the first way is about 10 % faster all the time.
        let [low, high] = interval(&[vec![110.0, 54.5, 111.0, 55.2], vec![100.0, 50.0, 100.0, 50.0]]).unwrap();
        assert!(low > 1.07 && high < 1.12, "{low} to {high}");
        assert_eq!(interval(&[vec![2.0], vec![1.0]]), None);
    }
}

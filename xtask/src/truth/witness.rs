//! A second witness: iperf3 measures the same benches as linerate, in turn, and must see the same rates.

use super::BadInput;
use super::cases::Case;
use super::measure::write_bench;
use crate::bench::figure::Unit;
use crate::bench::lab::{Lab, RECEIVER, SENDER};
use crate::bench::read::{self, WorkUnit, Written};
use crate::process::{self, Running};
use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use std::path::Path;
use std::time::Duration;

/// How far the two may be apart, as a share.
const TOLERANCE: f64 = 0.02;

/// Length of each measured window, seconds.
const SECONDS: u32 = 10;

/// Warm-up of iperf3, excluded from its results, seconds. linerate's ends when the rate is steady.
const WARM_UP: u32 = 2;

/// No program takes longer.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(60);

const PORT: u16 = 5201;

/// Quantiles of Student's t for two-sided 95 % intervals of the mean, by pairs measured, from 2 on (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
const STUDENT: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

/// Most pairs that can be measured.
pub(super) const MOST_PAIRS: i64 = 10;

/// How the two stand to one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreement {
    /// The whole interval of the ratio is within the tolerance.
    Agrees,
    /// Part of it is.
    Undecided,
    /// No part of it is.
    Differs,
}

/// The mean ratio of linerate's figures to iperf3's, and half the width of its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ratio {
    mean: f64,
    margin: f64,
}

impl Ratio {
    fn of(ratios: &[f64]) -> Self {
        let n = ratios.len() as f64;
        let mean = ratios.iter().sum::<f64>() / n;
        let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Self { mean, margin: STUDENT[ratios.len() - 2] * (variance / n).sqrt() }
    }

    fn agreement(self) -> Agreement {
        let off = (self.mean - 1.0).abs();
        if off + self.margin <= TOLERANCE {
            Agreement::Agrees
        } else if off - self.margin <= TOLERANCE {
            Agreement::Undecided
        } else {
            Agreement::Differs
        }
    }
}

/// Measures each case `pairs` times with both programs, and prints how they agree.
///
/// # Errors
///
/// A case cannot be measured, or the two differ in one by more than the tolerance.
pub(super) fn run(program: &Path, cases: &[&Case], pairs: u32) -> Result<()> {
    if cases.is_empty() {
        return Err(BadInput(
            "none of these cases can be measured with iperf3 (`witness` in the grid file)".to_owned(),
        )
        .into());
    }
    println!("{:<56} {:>15} {:>15}  linerate / iperf3", "case", "linerate", "iperf3");
    let mut agreed = 0;
    let mut differing = Vec::new();
    for case in cases {
        let figures = measure(program, case, pairs).with_context(|| format!("case {}", case.name))?;
        let ratios: Vec<f64> = figures.iter().map(|(ours, theirs)| ours / theirs).collect();
        let mean = |figures: &mut dyn Iterator<Item = f64>| figures.sum::<f64>() / f64::from(pairs) / 1e6;
        let ours = mean(&mut figures.iter().map(|figure| figure.0));
        let theirs = mean(&mut figures.iter().map(|figure| figure.1));
        let ratio = Ratio::of(&ratios);
        let said = match ratio.agreement() {
            Agreement::Agrees => "agrees",
            Agreement::Undecided => "undecided",
            Agreement::Differs => "DIFFERS",
        };
        let Ratio { mean, margin } = ratio;
        println!("{:<56} {ours:>8.2} Mbit/s {theirs:>8.2} Mbit/s  {mean:.4} +/- {margin:.4}  {said}", case.name);
        agreed += u32::from(ratio.agreement() == Agreement::Agrees);
        if ratio.agreement() == Agreement::Differs {
            differing.push(case.name.as_str());
        }
    }
    println!("{agreed} of {} agree within {} %, at 95 % confidence", cases.len(), 100.0 * TOLERANCE);
    if !differing.is_empty() {
        bail!("linerate and iperf3 differ by more than {} % in {}", 100.0 * TOLERANCE, differing.join(", "));
    }
    Ok(())
}

/// Returns the payload rates of both programs, bit/s, of each pair. Which of them is first changes with each pair.
fn measure(program: &Path, case: &Case, pairs: u32) -> Result<Vec<(f64, f64)>> {
    let asked = WorkUnit { unit: Unit::Payload, datagram: None };
    let theirs = iperf3(&case.test).map_err(BadInput)?;
    let ours = linerate(&case.test);
    let folder = tempfile::tempdir().context("making a temporary directory")?;
    let bench = folder.path().join("bench.toml");
    write_bench(case, &bench)?;
    let lab = Lab::up_with(Some(program), folder.path(), &["--bench", &bench.display().to_string()], &[])?;
    let to = lab.address(RECEIVER)?;
    let measure_ours = || {
        let output = process::run(lab.linerate(&ours), PROGRAM_TIMEOUT)?;
        read::linerate(&Written { client: &output.stdout, server: "" }, asked)
    };
    let measure_theirs = || {
        let mut server = Running::start(lab.inside(RECEIVER, ["iperf3", "-s", "-1", "-p", &PORT.to_string()]))?;
        lab.await_listening(&mut server, PORT)?;
        let client = ["iperf3", "-J", "-c", &to, "-p", &PORT.to_string()].map(str::to_owned);
        let client = lab.inside(SENDER, client.iter().chain(&theirs));
        let output = process::run(client, PROGRAM_TIMEOUT)?;
        server.stop(Signal::SIGINT)?;
        read::iperf3(&Written { client: &output.stdout, server: "" }, asked)
    };
    let mut figures = Vec::new();
    for pair in 0..pairs {
        let (ours, theirs) = if pair % 2 == 0 {
            let ours = measure_ours()?;
            (ours, measure_theirs()?)
        } else {
            let theirs = measure_theirs()?;
            (measure_ours()?, theirs)
        };
        figures.push((ours.value, theirs.value));
    }
    lab.down()?;
    Ok(figures)
}

/// linerate's arguments, with the window of the comparison.
fn linerate(test: &str) -> Vec<String> {
    let mut words: Vec<String> = test.split_whitespace().map(str::to_owned).collect();
    if let Some(time) = words.iter().position(|word| word == "--time") {
        words.drain(time..(time + 2).min(words.len()));
    }
    words.extend(["--time".to_owned(), format!("{SECONDS}s")]);
    words
}

/// iperf3's arguments for the same test, but for the server's address and port.
fn iperf3(test: &str) -> Result<Vec<String>, String> {
    let mut words = test.split_whitespace();
    if !(words.next() == Some("stream") && words.next() == Some(SENDER) && words.next() == Some(RECEIVER)) {
        return Err(format!("`{test}`: iperf3 measures only `stream {SENDER} {RECEIVER}`"));
    }
    let mut arguments: Vec<String> = vec!["-t".into(), SECONDS.to_string(), "-O".into(), WARM_UP.to_string()];
    let (mut udp, mut rate) = (false, None);
    while let Some(word) = words.next() {
        let option = match word {
            "--udp" => {
                udp = true;
                arguments.push("-u".into());
                continue;
            }
            "--no-offload" => continue,
            "--rate" => {
                rate = words.next();
                continue;
            }
            "--time" | "--repeats" => {
                words.next();
                continue;
            }
            "--congestion" => "-C",
            "--size" => "-l",
            "--flows" => "-P",
            _ => return Err(format!("`{test}`: iperf3 has no counterpart of `{word}`")),
        };
        let value = words.next().ok_or_else(|| format!("`{test}`: `{word}` has no value"))?;
        arguments.extend([option.to_owned(), value.to_owned()]);
    }
    match rate {
        Some(rate) => arguments.extend(["-b".into(), rate.trim_end_matches("bit/s").to_owned()]),
        None if udp => arguments.extend(["-b".into(), "0".into()]),
        None => {}
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_told_to_iperf3_in_its_own_words() {
        let words = |test: &str| iperf3(test).map(|words| words.join(" "));
        assert_eq!(words("stream a b --congestion cubic --time 3s --repeats 1"), Ok("-t 10 -O 2 -C cubic".into()));
        let udp = "stream a b --udp --rate 50Mbit/s --size 1400 --no-offload --time 1s --repeats 1";
        assert_eq!(words(udp), Ok("-t 10 -O 2 -u -l 1400 -b 50M".into()));
        assert_eq!(words("stream a b --udp"), Ok("-t 10 -O 2 -u -b 0".into()));
        assert!(words("stream a b --prove").unwrap_err().contains("no counterpart of `--prove`"));
        assert!(words("transact a b").unwrap_err().contains("only `stream a b`"));
        assert_eq!(linerate("stream a b --time 1s --repeats 1").join(" "), "stream a b --repeats 1 --time 10s");
    }

    #[test]
    fn the_two_agree_only_if_chance_cannot_explain_it() {
        // The 97.5 % quantile of Student's t with two degrees of freedom is 4.303.
        let ratio = Ratio::of(&[0.99, 1.0, 1.01]);
        assert!((ratio.mean - 1.0).abs() < 1e-12 && (ratio.margin - 4.303 * 0.01 / 3_f64.sqrt()).abs() < 1e-12);
        assert_eq!(ratio.agreement(), Agreement::Undecided);
        assert_eq!(Ratio::of(&[0.999, 1.0, 1.001]).agreement(), Agreement::Agrees);
        assert_eq!(Ratio::of(&[0.949, 0.95, 0.951]).agreement(), Agreement::Differs);
    }
}

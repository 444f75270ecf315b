//! Compares linerate with another program. Both measure the same benches in turn and must report the same rates.

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

/// Tolerated difference between the two programs, as a share.
const TOLERANCE: f64 = 0.02;

/// Length of each measured window, in seconds.
const SECONDS: u32 = 10;

/// Warm-up of iperf3, excluded from its results, in seconds. linerate's ends when the rate is steady; nuttcp has no
/// warm-up.
const WARM_UP: u32 = 2;

/// Time after which a program is ended.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(60);

const PORT: u16 = 5201;
/// Port of nuttcp's data connections.
const DATA_PORT: u16 = 5202;

/// Program that linerate is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Witness {
    /// iperf3, TCP and UDP.
    Iperf3,
    /// nuttcp, TCP.
    Nuttcp,
}

/// Commands that measure a case.
#[derive(Debug, PartialEq, Eq)]
struct Commands {
    /// Command at the receiver, which serves one client.
    server: Vec<String>,
    /// Command at the sender, without the receiver's address, which is its last argument.
    client: Vec<String>,
    /// Default congestion control to set in the sender's network namespace. `None` leaves the machine's.
    congestion: Option<String>,
}

/// Quantiles of Student's t for two-sided 95 % intervals of the mean, for 2 pairs and more (NIST/SEMATECH e-Handbook,
/// 1.3.6.7.2).
const STUDENT_T: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

/// Maximum number of pairs.
pub(super) const MAX_PAIRS: i64 = 10;

/// Result of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreement {
    /// The interval of the ratio is within the tolerance.
    Agrees,
    /// The interval of the ratio is partly within the tolerance.
    Undecided,
    /// The interval of the ratio is outside the tolerance.
    Differs,
}

/// Mean ratio of linerate's figures to the other program's, and half the width of its 95 % interval.
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
        Self { mean, margin: STUDENT_T[ratios.len() - 2] * (variance / n).sqrt() }
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
pub(super) fn run(program: &Path, witness: Witness, cases: &[&Case], pairs: u32) -> Result<()> {
    if cases.is_empty() {
        return Err(BadInput(
            "none of these cases can be measured with another program (`witness` in the grid file)".to_owned(),
        )
        .into());
    }
    let name = witness.name();
    println!("{:<56} {:>15} {:>15}  linerate / {name}", "case", "linerate", name);
    let mut agreed = 0;
    let mut differing = Vec::new();
    for case in cases {
        let figures = measure(program, witness, case, pairs).with_context(|| format!("case {}", case.name))?;
        let ratios: Vec<f64> = figures.iter().map(|(ours, theirs)| ours / theirs).collect();
        let ours = figures.iter().map(|figure| figure.0).sum::<f64>() / f64::from(pairs) / 1e6;
        let theirs = figures.iter().map(|figure| figure.1).sum::<f64>() / f64::from(pairs) / 1e6;
        let ratio = Ratio::of(&ratios);
        let agreement = match ratio.agreement() {
            Agreement::Agrees => "agrees",
            Agreement::Undecided => "undecided",
            Agreement::Differs => "DIFFERS",
        };
        let Ratio { mean, margin } = ratio;
        println!("{:<56} {ours:>8.2} Mbit/s {theirs:>8.2} Mbit/s  {mean:.4} +/- {margin:.4}  {agreement}", case.name);
        agreed += u32::from(ratio.agreement() == Agreement::Agrees);
        if ratio.agreement() == Agreement::Differs {
            differing.push(case.name.as_str());
        }
    }
    println!("{agreed} of {} agree within {} %, at 95 % confidence", cases.len(), 100.0 * TOLERANCE);
    if !differing.is_empty() {
        bail!("linerate and {name} differ by more than {} % in {}", 100.0 * TOLERANCE, differing.join(", "));
    }
    Ok(())
}

/// Returns the payload rates of both programs in bit/s, for each pair. The program that runs first alternates.
fn measure(program: &Path, witness: Witness, case: &Case, pairs: u32) -> Result<Vec<(f64, f64)>> {
    let work = WorkUnit { unit: Unit::Payload, datagram: None };
    let theirs = witness.commands(&case.test).map_err(BadInput)?;
    let ours = linerate(&case.test);
    let folder = tempfile::tempdir().context("making a temporary directory")?;
    let bench = folder.path().join("bench.toml");
    write_bench(&case.name, &case.bench, &bench)?;
    let lab = Lab::up_with(Some(program), folder.path(), &["--bench", &bench.display().to_string()], &[])?;
    let to = lab.address(RECEIVER)?;
    let measure_ours = || {
        let output = process::run(lab.linerate(&ours), PROGRAM_TIMEOUT)?;
        read::linerate(&Written { client: &output.stdout, server: "" }, work)
    };
    let measure_theirs = || {
        if let Some(congestion) = &theirs.congestion {
            let setting = format!("net.ipv4.tcp_congestion_control={congestion}");
            lab.ask(SENDER, &["sysctl", "-qw", &setting])?;
        }
        let mut server = Running::start(lab.inside(RECEIVER, &theirs.server))?;
        lab.await_listening(&mut server, PORT)?;
        let output = process::run(lab.inside(SENDER, theirs.client.iter().chain([&to])), PROGRAM_TIMEOUT)?;
        server.stop(Signal::SIGINT)?;
        let written = Written { client: &output.stdout, server: "" };
        match witness {
            Witness::Iperf3 => read::iperf3(&written, work),
            Witness::Nuttcp => read::nuttcp(&written, work),
        }
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

/// Returns linerate's arguments with the measured window of the comparison.
fn linerate(test: &str) -> Vec<String> {
    let mut words = words(test);
    if let Some(time) = words.iter().position(|word| word == "--time") {
        words.drain(time..(time + 2).min(words.len()));
    }
    words.extend(["--time".to_owned(), format!("{SECONDS}s")]);
    words
}

/// Options of a test that a program for streams understands.
#[derive(Debug, Default)]
struct Test<'a> {
    udp: bool,
    rate: Option<&'a str>,
    congestion: Option<&'a str>,
    size: Option<&'a str>,
    flows: Option<&'a str>,
}

impl<'a> Test<'a> {
    fn read(test: &'a str) -> Result<Self, String> {
        let mut words = test.split_whitespace();
        if !(words.next() == Some("stream") && words.next() == Some(SENDER) && words.next() == Some(RECEIVER)) {
            return Err(format!("`{test}`: only `stream {SENDER} {RECEIVER}` is measured with another program"));
        }
        let mut options = Self::default();
        while let Some(word) = words.next() {
            let value = match word {
                "--udp" => {
                    options.udp = true;
                    continue;
                }
                "--no-offload" => continue,
                "--time" | "--repeats" => &mut None,
                "--rate" => &mut options.rate,
                "--congestion" => &mut options.congestion,
                "--size" => &mut options.size,
                "--flows" => &mut options.flows,
                _ => return Err(format!("`{test}`: `{word}` has no counterpart in another program")),
            };
            *value = Some(words.next().ok_or_else(|| format!("`{test}`: `{word}` has no value"))?);
        }
        Ok(options)
    }
}

impl Witness {
    fn name(self) -> &'static str {
        match self {
            Self::Iperf3 => "iperf3",
            Self::Nuttcp => "nuttcp",
        }
    }

    fn commands(self, test: &str) -> Result<Commands, String> {
        let options = Test::read(test)?;
        match self {
            Self::Iperf3 => {
                let rate = options.rate.map(|rate| rate.trim_end_matches("bit/s")).or(options.udp.then_some("0"));
                let client = [
                    format!("iperf3 -J -p {PORT} -t {SECONDS} -O {WARM_UP}{}", if options.udp { " -u" } else { "" }),
                    option("-C", options.congestion),
                    option("-l", options.size),
                    option("-P", options.flows),
                    option("-b", rate),
                ];
                let server = words(&format!("iperf3 -s -1 -p {PORT}"));
                // iperf3 sets the congestion control after it has connected. If the machine's default is BBR, the
                // pacing that BBR set up stays.
                let congestion = options.congestion.map(|_| "reno".to_owned());
                Ok(Commands { server, client: words(&format!("{} -c", client.concat())), congestion })
            }
            Self::Nuttcp => {
                if options.udp || options.rate.is_some() {
                    return Err(format!(
                        "`{test}`: nuttcp measures TCP without --rate; leave such cases out with --only"
                    ));
                }
                let ports = format!("-P {PORT} -p {DATA_PORT}");
                let client = format!(
                    "nuttcp {ports} -T {SECONDS} -fparse{}{}",
                    option("-l", options.size),
                    option("-N", options.flows)
                );
                Ok(Commands {
                    server: words(&format!("nuttcp -1 --nofork {ports}")),
                    client: words(&client),
                    // nuttcp has no option for it.
                    congestion: options.congestion.map(str::to_owned),
                })
            }
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Returns ` NAME VALUE`, or nothing if there is no value.
fn option(name: &str, value: Option<&str>) -> String {
    value.map(|value| format!(" {name} {value}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_becomes_each_programs_command() {
        let client = |witness: Witness, test: &str| Ok(witness.commands(test)?.client.join(" "));
        let cubic = "stream a b --congestion cubic --time 3s --repeats 1";
        let line = client(Witness::Iperf3, cubic);
        assert_eq!(line, Ok::<_, String>("iperf3 -J -p 5201 -t 10 -O 2 -C cubic -c".into()));
        let udp = "stream a b --udp --rate 50Mbit/s --size 1400 --no-offload --time 1s --repeats 1";
        assert_eq!(client(Witness::Iperf3, udp), Ok("iperf3 -J -p 5201 -t 10 -O 2 -u -l 1400 -b 50M -c".into()));
        let line = client(Witness::Iperf3, "stream a b --udp");
        assert_eq!(line, Ok("iperf3 -J -p 5201 -t 10 -O 2 -u -b 0 -c".into()));
        assert!(client(Witness::Iperf3, "stream a b --prove").unwrap_err().contains("`--prove` has no counterpart"));
        assert!(client(Witness::Iperf3, "transact a b").unwrap_err().contains("only `stream a b`"));
        assert_eq!(linerate("stream a b --time 1s --repeats 1").join(" "), "stream a b --repeats 1 --time 10s");

        let nuttcp = Witness::Nuttcp.commands(cubic).expect("commands");
        assert_eq!(nuttcp.client.join(" "), "nuttcp -P 5201 -p 5202 -T 10 -fparse");
        assert_eq!(nuttcp.congestion.as_deref(), Some("cubic"));
        assert!(client(Witness::Nuttcp, udp).unwrap_err().contains("nuttcp measures TCP"));
    }

    #[test]
    fn agreement_needs_the_whole_interval() {
        // The 97.5 % quantile of Student's t with two degrees of freedom is 4.303.
        let ratio = Ratio::of(&[0.99, 1.0, 1.01]);
        assert!((ratio.mean - 1.0).abs() < 1e-12 && (ratio.margin - 4.303 * 0.01 / 3_f64.sqrt()).abs() < 1e-12);
        assert_eq!(ratio.agreement(), Agreement::Undecided);
        assert_eq!(Ratio::of(&[0.999, 1.0, 1.001]).agreement(), Agreement::Agrees);
        assert_eq!(Ratio::of(&[0.949, 0.95, 0.951]).agreement(), Agreement::Differs);
    }
}

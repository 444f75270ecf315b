//! Time of each host's processors in a run, by kind: in user space, in the kernel, in soft interrupts.

use super::attempt::{Attempt, Sampled};
use super::course::Course;
use super::evidence::summed;
use super::shares::{SharedRun, Shares};
use super::{LoadCharts, Quantity};
use crate::blocks::chart::SERIES;
use crate::figures::plain;
use crate::said;
use linerate_model::Text;
use linerate_model::text;
use linerate_model::{HostName, Record};

/// Quantities sampled of each core, with their texts.
const KINDS: [(Quantity, &Text); 4] = [
    (Quantity::CoreUser, text!("over-time-cpu-user", "user space")),
    (Quantity::CoreSystem, text!("over-time-cpu-system", "kernel")),
    (Quantity::CoreSoftirq, text!("over-time-cpu-softirq", "soft interrupts")),
    (Quantity::CoreSteal, text!("over-time-cpu-steal", "taken by the hypervisor")),
];

impl<'a> LoadCharts<'a> {
    /// Returns the chart, `None` if no core was sampled. It draws one run, `middle`; the table has all.
    pub(crate) fn processors(self, record: &Record, middle: Option<&Attempt<'_>>) -> Option<Shares> {
        let hosts =
            self.hosts(|sampled| KINDS.iter().any(|(kind, _)| sampled.series.tracks_of(*kind).next().is_some()));
        let sampled_at_most = Quantity::CoreUser.most_subjects().unwrap_or(usize::MAX);
        let cores = |host: &HostName| {
            let known = record.hosts.iter().find(|known| known.name == *host).map(|known| known.cores as usize);
            known.filter(|cores| *cores > 0)
        };
        let drawn = middle.or(self.attempts.first());
        let mut runs = Vec::new();
        for host in &hosts {
            for attempt in self.attempts {
                let Some(sampled) = attempt.sampled(self.load).find(|sampled| sampled.host == *host) else { continue };
                let Some(times) = by_kind(sampled, cores(host), attempt.has_window(self.load)) else { continue };
                runs.push(SharedRun {
                    name: said!(
                        self.lang,
                        "over-time-cpu-run",
                        "{host}, {run}",
                        host = plain(&host.0),
                        run = attempt.name
                    ),
                    is_drawn: drawn.is_some_and(|drawn| std::ptr::eq(drawn, attempt)),
                    times,
                });
            }
        }
        if !runs.iter().any(|run| run.is_drawn) {
            return None;
        }
        let has_further_cores = hosts.iter().any(|host| cores(host).is_some_and(|cores| cores > sampled_at_most));
        let remainder = if has_further_cores {
            said!(
                self.lang,
                "over-time-cpu-rest-and-cores",
                "idle, other, or of cores beside the {cores} busiest, which alone are kept",
                cores = sampled_at_most
            )
        } else {
            said!(self.lang, "over-time-cpu-rest", "idle or other")
        };
        let kinds = SERIES.into_iter().zip(KINDS.map(|(_, kind)| self.lang.text(kind)));
        Some(Shares {
            title: said!(
                self.lang,
                "over-time-title-cpu",
                "{name}: CPU time of each host by kind",
                name = plain(&self.result.name)
            ),
            parts: kinds.chain([("rest", remainder)]).collect(),
            whole: said!(self.lang, "over-time-cpu-share", "share of the time of all cores of the host"),
            runs,
            point: |lang, run, kind, share| {
                said!(
                    lang,
                    "over-time-cpu-point",
                    "{run}, {kind}: {share} of the time of all cores",
                    run = run,
                    kind = kind,
                    share = share
                )
            },
        })
    }
}

/// Returns the share of each kind in the time of all cores, and the remainder; `None` if no core's time is known.
fn by_kind(sampled: Sampled<'_>, cores: Option<usize>, has_window: bool) -> Option<Vec<Course>> {
    let series = sampled.series;
    let seen = KINDS.iter().map(|(kind, _)| series.tracks_of(*kind).count()).max()?;
    let cores = cores.unwrap_or(seen).max(1) as f64;
    let course = |(kind, _): &(Quantity, &Text)| {
        // Microseconds a second.
        let course = Course::per_second(series, sampled.offset_us, Some(&summed(series, *kind))).times(1e-6 / cores);
        if has_window { course.without_early_warm_up() } else { course }
    };
    let mut times: Vec<Course> = KINDS.iter().map(course).collect();
    times.push(Course::combined(&times, |shares| Some((1.0 - shares.iter().sum::<f64>()).max(0.0)))?);
    (seen > 0).then_some(times)
}

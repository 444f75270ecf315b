//! Probes along a path: paths between hosts with agents, or from an agent to any host.

use super::flows::{assign, end_of};
use super::{Addresses, Assigned, Joined, Kind, Parts, all_of};
use crate::context::Context;
use crate::hops;
use crate::statistics::{median, summary};
use linerate_model::{
    Confidence, Counts, Detail, HopsCounts, Limit, LimitPlace, Load, Measurement, PathEffect, Quantity, RoleCounts,
    Task, Trial, TrialResult, Verdict, WayFigures, message,
};

pub(super) struct Hops;

impl Kind for Hops {
    fn assign(&self, load: &Load, at: &dyn Addresses) -> Result<Assigned, String> {
        assign(load, at)
    }

    fn join(&self, load: &Load, parts: Parts) -> Result<Joined, String> {
        let mut parts = all_of(parts)?;
        let mut paths = Vec::new();
        for (index, path) in (0u16..).zip(load.task.paths()) {
            let mut take = |host| {
                end_of(&mut parts, host, index, |role| match role {
                    RoleCounts::Hops(end) if end.path == index => Ok(*end),
                    other => Err(other),
                })
            };
            // A host that is both ends of one path has the server's role first.
            let server = path.server.agent().map(&mut take).transpose()?;
            paths.push(HopsCounts { client: take(&path.client)?, server });
        }
        Ok(Counts::Hops(paths).into())
    }

    /// The figure is the median round trip to the far end in nanoseconds.
    fn figure(&self, _load: &Load, counts: &Counts) -> f64 {
        let Counts::Hops(paths) = counts else { return 0.0 };
        let far_ends = paths.iter().filter_map(|path| path.client.way.as_ref()?.far_end());
        let delays = far_ends.flat_map(|hop| &hop.samples).filter_map(|sample| sample.delay);
        median(delays.map(|delay| delay.get() as f64).collect()).unwrap_or_default()
    }

    fn compared(&self, _task: &Task) -> Vec<Quantity> {
        vec![Quantity::LatencyP50Ns]
    }

    fn measure(&self, cell: &Trial, runs: &[&TrialResult], with: &Context<'_>) -> Measurement {
        let ways = hops::ways(cell, runs, with.idle);
        let figures = runs.iter().map(|run| super::figure(run)).collect();
        let mut caveats = Vec::new();
        for caveat in runs.iter().flat_map(|run| &run.caveats).chain(&hops::caveats(&ways)) {
            if !caveats.contains(caveat) {
                caveats.push(caveat.clone());
            }
        }
        Measurement {
            name: cell.name.clone(),
            quantity: Quantity::LatencyP50Ns,
            main: summary(figures).expect("a cell is summarised only when it has runs"),
            tester_limit: None,
            verdict: verdict(&ways),
            caveats,
            detail: Detail::Hops { ways },
        }
    }
}

/// Returns the fault that the probes of an idle path show.
fn verdict(ways: &[WayFigures]) -> Verdict {
    let sections = ways.iter().flat_map(|way| &way.sections);
    let Some(section) = sections.max_by_key(|section| section.effect == PathEffect::BlackHole) else {
        let text = message!(
            "hops-no-load",
            "The path was idle, and nothing was limited. A load shows where the path's limit is."
        );
        return Verdict::new(Limit::CannotTell, Confidence::Low, vec![text]);
    };
    let limit = if section.effect == PathEffect::BlackHole { Limit::MtuBlackHole } else { Limit::PathLoss };
    let is_forward = ways.first().is_some_and(|way| way.sections.contains(section));
    let place = if is_forward { LimitPlace::ForwardPath } else { LimitPlace::ReturnPath };
    Verdict {
        place: Some(place),
        section: Some(section.clone()),
        ..Verdict::new(limit, section.confidence, vec![hops::evidence(section)])
    }
}

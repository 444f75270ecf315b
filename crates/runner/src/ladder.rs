//! The rungs of a ladder that have trials of their own, beside the ordinary ones: raw frames go from port to port, a copy from
//! storage to storage.

use crate::copy::CopyEvent;
use crate::run::Event;
use crate::{Peers, RunError, copy_trial, frame_trial};
use linerate_method::copy::is_complete;
use linerate_method::device::spoilt;
use linerate_method::ladder::{next_copy, next_frames};
use linerate_model::{Caveat, CaveatKind, FrameTrial, FrameTrialResult, HostName, Record, RungName};
use tokio::sync::watch;

/// How often a trial that the tester spoilt is run again before it is taken with its caveat.
const SPOILT_RETRIES: u32 = 4;

/// Runs the trials that the record's plan wants, and keeps them in the record. What keeps a port or a folder from it is no reason
/// to lose the other rungs: it is noted, and the run goes on. Only the user's wish ends it.
pub(crate) async fn rest(
    record: &mut Record,
    peers: &Peers,
    cancel: &mut watch::Receiver<bool>,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<(), RunError> {
    frames(record, peers, cancel, on_event).await?;
    copies(record, peers, cancel, on_event).await
}

async fn copies(
    record: &mut Record,
    peers: &Peers,
    cancel: &mut watch::Receiver<bool>,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<(), RunError> {
    while let Some(plan) = next_copy(record) {
        on_event(Event::CopyBegins { tree: &plan.tree });
        let mut unseen = |_: CopyEvent<'_>| {};
        let copied = tokio::select! {
            copied = copy_trial::run(&plan, None, peers, &mut unseen) => copied,
            Ok(_) = cancel.wait_for(|asked| *asked) => Err(RunError::Interrupted),
        };
        let Some(ladder) = &mut record.plan.ladder else { break };
        match copied {
            Ok(trial) if is_complete(std::slice::from_ref(&trial)) => {
                ladder.copy = Some(plan);
                record.copy_trials.push(trial);
            }
            Ok(trial) => {
                let halves = trial.sources.iter().chain(&trial.destinations);
                let fault = halves.flat_map(|part| &part.counted.faults).next();
                let why = fault.map_or("it did not come to its end", |fault| &fault.reason);
                ladder.without.insert(RungName::Copy, why.to_owned());
            }
            Err(RunError::Interrupted) => return Err(RunError::Interrupted),
            Err(error) => {
                ladder.without.insert(RungName::Copy, error.to_string());
            }
        }
    }
    Ok(())
}

async fn frames(
    record: &mut Record,
    peers: &Peers,
    cancel: &mut watch::Receiver<bool>,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<(), RunError> {
    let Some(home) = record.plan.ladder.as_ref().map(|ladder| ladder.path.opener.clone()) else { return Ok(()) };
    while let Some(trial) = next_frames(&record.plan, &record.frame_trials) {
        on_event(Event::FramesBegin { trial });
        let echoes = record.plan.ladder.as_ref().is_some_and(|ladder| ladder.echoes.as_ref() == Some(trial));
        let why = match sound(trial, &home, peers, cancel, on_event).await {
            Ok(result) => {
                let unanswered = echoes && result.streams.iter().all(|stream| stream.received == 0);
                let doubts: Vec<Caveat> = result.caveats.iter().map(of_frames).collect();
                record.caveats.extend(doubts);
                record.frame_trials.push(result);
                if !unanswered {
                    continue;
                }
                String::from("the receiving host answers no echo requests")
            }
            Err(RunError::Interrupted) => return Err(RunError::Interrupted),
            Err(error) => error.to_string(),
        };
        let Some(ladder) = &mut record.plan.ladder else { break };
        if echoes {
            // The rung has its rate all the same.
            ladder.echoes = None;
            let text = format!("raw frames: how long they take there and back is not known: {why}");
            record.caveats.push(Caveat::new(CaveatKind::NotMeasured, text));
        } else {
            ladder.without.insert(RungName::Frames, why);
        }
    }
    record.caveats.sort();
    record.caveats.dedup_by_key(|caveat| caveat.kind);
    Ok(())
}

/// A doubt about raw frames, which the record's others are not of.
fn of_frames(caveat: &Caveat) -> Caveat {
    Caveat::new(caveat.kind, format!("raw frames: {}", caveat.text))
}

/// Runs a trial, and again if the tester spoilt it; what spoilt the last one stays with it.
async fn sound(
    trial: &FrameTrial,
    home: &HostName,
    peers: &Peers,
    cancel: &mut watch::Receiver<bool>,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<FrameTrialResult, RunError> {
    let mut retries = SPOILT_RETRIES;
    loop {
        let mut result = tokio::select! {
            result = frame_trial::run(trial, home, peers) => result?,
            Ok(_) = cancel.wait_for(|asked| *asked) => return Err(RunError::Interrupted),
        };
        let Some(reason) = spoilt(&result) else { return Ok(result) };
        if retries == 0 {
            result.caveats.push(reason);
            return Ok(result);
        }
        retries -= 1;
        on_event(Event::Repeating { reason: &reason });
    }
}

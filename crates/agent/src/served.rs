//! What an agent says of each session that has ended: who asked, for what, and what was moved.

use crate::metrics::payload;
use crate::session::{Opener, Outcome};
use linerate_model::{Assignment, FailureKind, HostCounts, RoleCounts};
use linerate_units::{BitRate, ByteCount, Nanos, OpRate, grouped};

/// `192.0.2.9: stream: received 11.9 MB in 1 s, 95.2 Mbit/s`.
pub(crate) fn line(opener: &Opener, assignment: &Assignment, outcome: &Outcome) -> String {
    let by = opener.credential.as_ref().map(|id| format!(" (invitation {id})")).unwrap_or_default();
    let said = match outcome {
        Ok(counts) => moved(assignment, counts),
        Err(failure) if failure.kind == FailureKind::Stopped => format!("stopped: {}", failure.message),
        Err(failure) => format!("failed: {}", failure.message),
    };
    let host = opener.host.map_or_else(|| String::from("fleet"), |host| host.to_string());
    format!("{host}{by}: {}: {said}", assignment.task.kind())
}

/// Describes the data that this host sent, received, requested and answered in its window.
fn moved(assignment: &Assignment, counts: &HostCounts) -> String {
    let kinds = assignment.roles.iter().map(|role| &role.kind);
    let (mut sent, mut received, mut time, mut answered, mut served) = (0, 0, Nanos::default(), 0, 0);
    for (kind, counted) in kinds.zip(&counts.roles) {
        let (out, back) = payload(kind, counted);
        (sent, received) = (sent + out, received + back);
        match counted {
            RoleCounts::Flows(end) => {
                let asked = end.transactions.as_ref();
                answered += asked.map_or(0, |asked| asked.completed);
                served += end.service.as_ref().map_or(0, |service| service.calls);
                let windows = [
                    end.sent.as_ref().map(|sent| sent.window),
                    end.received.as_ref().map(|received| received.window),
                    asked.map(|asked| asked.window),
                ];
                time = windows.into_iter().flatten().fold(time, Nanos::max);
            }
            RoleCounts::Copy(part) => time = part.sides.iter().map(|side| side.time).fold(time, Nanos::max),
            RoleCounts::Frames(_) | RoleCounts::Hops(_) => {}
        }
    }
    let within = |rate: Option<String>| rate.map(|rate| format!(" in {time}, {rate}")).unwrap_or_default();
    let bytes = |verb: &str, count: u64| {
        let rate = BitRate::of(ByteCount::new(count), time).map(|rate| rate.to_string());
        (count > 0).then(|| format!("{verb} {}{}", ByteCount::new(count), within(rate)))
    };
    let rate = OpRate::of(answered, time).map(|rate| rate.to_string());
    let answered = (answered > 0).then(|| format!("{} requests answered{}", grouped(answered), within(rate)));
    let served = (served > 0).then(|| format!("served {} calls", grouped(served)));
    let parts: Vec<String> = match answered {
        Some(answered) => vec![answered],
        None => [served, bytes("sent", sent), bytes("received", received)].into_iter().flatten().collect(),
    };
    if parts.is_empty() { String::from("nothing was moved in its window") } else { parts.join("; ") }
}

//! Counts that no sound agent gives.

use linerate_model::{CopyCounts, CopySide, HostCounts, RoleCounts};
use linerate_units::Nanos;

/// What is wrong with the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Garbage {
    /// No role has any.
    NoRoles,
    /// They are those of another task.
    WrongTask,
    /// Numbers that no host can have counted.
    Impossible,
    /// They lack what makes figures of them: a time, or of frames an end of the stream.
    Lacking,
}

impl Garbage {
    pub(in super::super) const ALL: [Self; 4] = [Self::NoRoles, Self::WrongTask, Self::Impossible, Self::Lacking];

    /// Spoils `counts` so.
    pub(in super::super) fn put_in(self, counts: &mut HostCounts) {
        if self == Self::NoRoles {
            counts.roles.clear();
        }
        for role in &mut counts.roles {
            match self {
                Self::NoRoles => {}
                Self::WrongTask => *role = of_another_task(role),
                Self::Impossible => count(role, u64::MAX),
                Self::Lacking => take_away(role),
            }
        }
    }
}

fn of_another_task(role: &RoleCounts) -> RoleCounts {
    match role {
        RoleCounts::Flows(_) | RoleCounts::Frames(_) => {
            RoleCounts::Copy(CopyCounts { sides: vec![CopySide::default()], faults: Vec::new(), faults_total: 0 })
        }
        RoleCounts::Copy(_) | RoleCounts::Hops(_) => RoleCounts::Flows(Box::default()),
    }
}

/// Sets every main number of a role to `number`.
fn count(role: &mut RoleCounts, number: u64) {
    match role {
        RoleCounts::Flows(end) => {
            end.sent.iter_mut().for_each(|sent| (sent.payload_bytes, sent.messages) = (number, number));
            let received = end.received.get_or_insert_default();
            (received.payload_bytes, received.messages, received.arrived) = (number, number, number);
            end.transactions.iter_mut().for_each(|asked| (asked.completed, asked.not_sent) = (number, number));
            end.service.iter_mut().for_each(|service| service.calls = number);
        }
        RoleCounts::Frames(part) => {
            for stream in &mut part.streams {
                stream
                    .sent
                    .iter_mut()
                    .for_each(|sent| (sent.intended, sent.sent, sent.bytes) = (number, number, number));
                stream.arrived.iter_mut().for_each(|arrived| (arrived.received, arrived.bytes) = (number, number));
            }
        }
        RoleCounts::Copy(part) => {
            part.sides.iter_mut().for_each(|side| (side.files, side.bytes) = (number, number));
        }
        RoleCounts::Hops(end) => end.reflected = number,
    }
}

/// Takes from the numbers of a role what makes figures of them.
fn take_away(role: &mut RoleCounts) {
    let none = Nanos::default();
    match role {
        RoleCounts::Flows(end) => {
            end.sent.iter_mut().for_each(|sent| sent.window = none);
            let received = end.received.get_or_insert_default();
            (received.payload_bytes, received.window) = (received.payload_bytes.max(1), none);
            end.transactions.iter_mut().for_each(|asked| asked.window = none);
        }
        RoleCounts::Frames(part) => {
            part.streams.iter_mut().for_each(|stream| (stream.sent, stream.arrived) = (None, None));
        }
        RoleCounts::Copy(part) => part.sides.iter_mut().for_each(|side| side.time = none),
        RoleCounts::Hops(end) => end.way = None,
    }
}

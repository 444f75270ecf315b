//! Due times of a flow's messages: an absolute schedule, so that lateness does not add up.

use linerate_model::Offered;

/// Schedule of evenly spaced messages of one of several flows that share a rate.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    start_ns: u64,
    /// Time between two messages over all flows is `nanos / per`.
    nanos: u128,
    per: u128,
    flow: u64,
    flows: u64,
}

impl Pace {
    /// Creates the schedule of messages of `message_bytes` from `start_ns` on. Flow number `flow` takes turns with all
    /// `flows`.
    pub fn new(offered: Offered, message_bytes: u64, start_ns: u64, flow: u16, flows: u16) -> Self {
        let (nanos, per) = match offered {
            Offered::PayloadBps(rate) => (u128::from(message_bytes) * 8_000_000_000, rate.get()),
            Offered::MessagesPerS(rate) => (1_000_000_000, rate.get()),
        };
        Self { start_ns, nanos, per: u128::from(per.max(1)), flow: flow.into(), flows: flows.max(1).into() }
    }

    /// Delays the messages by one turn, so that each is due when the rate has earned all of its bits. Then the load
    /// never exceeds the rate, however short it is.
    #[must_use]
    pub fn earned(self) -> Self {
        let turn = u64::try_from(self.nanos.div_ceil(self.per)).unwrap_or(u64::MAX);
        Self { start_ns: self.start_ns.saturating_add(turn), ..self }
    }

    /// Returns the due time of message `index` (from 0).
    pub fn due(&self, index: u64) -> u64 {
        let turn = u128::from(index) * u128::from(self.flows) + u128::from(self.flow);
        self.start_ns + (turn * self.nanos / self.per) as u64
    }

    /// Returns the number of messages that are due at `now` or before.
    pub fn due_by(&self, now: u64) -> u64 {
        let Some(elapsed) = now.checked_sub(self.start_ns) else { return 0 };
        // The turns whose due time, rounded down, is at most `elapsed`.
        let turns = ((u128::from(elapsed) + 1) * self.per).div_ceil(self.nanos) as u64;
        turns.saturating_sub(self.flow).div_ceil(self.flows)
    }

    /// Returns the number of messages within `nanos`, at least one.
    pub fn within(&self, nanos: u64) -> u64 {
        ((u128::from(nanos) * self.per / self.nanos / u128::from(self.flows)) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::{BitRate, FrameRate};

    #[test]
    fn due_and_due_by_agree() {
        for (offered, bytes) in [
            (Offered::PayloadBps(BitRate::per_second(100_000_000)), 1_448),
            (Offered::PayloadBps(BitRate::per_second(1)), 16),
            (Offered::MessagesPerS(FrameRate::per_second(3_333_333)), 64),
            (Offered::MessagesPerS(FrameRate::per_second(7)), 64),
        ] {
            for flow in 0..3 {
                let pace = Pace::new(offered, bytes, 1_000, flow, 3);
                for index in [0, 1, 2, 1_000, 123_456] {
                    let due = pace.due(index);
                    assert_eq!(pace.due_by(due), index + 1, "{offered:?} flow {flow} message {index}");
                    assert_eq!(pace.due_by(due - 1), index, "{offered:?} flow {flow} message {index}");
                }
            }
        }
    }

    /// Attack: consecutive tests of one datagram each send far more than the rate of any of them.
    #[test]
    fn earned_messages_never_exceed_the_rate() {
        let offered = Offered::PayloadBps(BitRate::per_second(8_000));
        let flows: Vec<Pace> = (0..3).map(|flow| Pace::new(offered, 65_507, 1_000, flow, 3).earned()).collect();
        for seconds in [0, 1, 65, 66, 131, 132, 1_000] {
            let now = 1_000 + seconds * 1_000_000_000;
            let sent: u64 = flows.iter().map(|pace| pace.due_by(now)).sum();
            assert_eq!(sent, seconds * 1_000 / 65_507, "after {seconds} s");
        }
        assert_eq!(
            Pace::new(offered, 65_507, 1_000, 0, 3).due_by(1_000),
            1,
            "without a limit the first is due at once"
        );
    }

    #[test]
    fn flows_add_up_to_the_rate() {
        let offered = Offered::MessagesPerS(FrameRate::per_second(1_000));
        let total: u64 = (0..7).map(|flow| Pace::new(offered, 64, 0, flow, 7).due_by(1_999_999_999)).sum();
        assert_eq!(total, 2_000);
        assert_eq!(Pace::new(offered, 64, 500, 0, 1).due_by(499), 0);
    }
}

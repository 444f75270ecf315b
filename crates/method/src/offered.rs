//! Whether the tester offered a trial's intended load. Every search and every verdict asks here.
//!
//! A trial that fell short shows nothing about its intended load, only what became of the load that was offered.

use linerate_model::{
    CaveatKind, Confidence, Firmness, FrameStream, FrameStreamCounts, FramesRun, Limit, Message, MessageValue, Text,
    ToSocket, TrialResult, Verdict, message,
};
use linerate_units::Nanos;

/// Share of its load that a trial may lack and still count as one that offered it. RFC 2544 allows for none; clocks and the
/// ends of a trial take a little.
pub(crate) const TOLERANCE: f64 = 0.005;

/// A few frames may take so much longer than their rate asks for: a thread that sleeps in between wakes up late.
const WAKE_UP: Nanos = Nanos::from_millis(1);

/// Returns whether a trial that offered this share of its load offered it.
pub(crate) fn is_whole(share: f64) -> bool {
    share >= 1.0 - TOLERANCE
}

/// What the tester offered in a trial with raw frames, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Offer {
    /// Frames that were due, all streams together.
    pub(crate) due: u64,
    /// Frames that were sent.
    pub(crate) sent: u64,
    /// Frames that arrived.
    pub(crate) received: u64,
    /// Offered load as a share of the intended load, 0 to 1, of the stream that fell shortest.
    pub(crate) share: f64,
    /// For how long the tester was held up, if that more than its speed is why it fell short.
    pub(crate) held_up: Option<Nanos>,
    /// Whether the tester's receiving sockets had room for every frame.
    pub(crate) had_room: bool,
    /// Whether a stream was sent without a rate, as fast as possible.
    pub(crate) is_unlimited: bool,
    /// Frames within the receiving host, if they are counted at a socket.
    pub(crate) to_socket: Option<ToSocket>,
}

/// Whether the receiving sockets of a trial had room for every frame.
pub(crate) fn had_room(result: &TrialResult) -> bool {
    result.caveats.iter().all(|caveat| caveat.kind != CaveatKind::TesterLimit)
}

impl Offer {
    /// The offer of a trial.
    pub(crate) fn of(run: &FramesRun<'_>) -> Self {
        let sum = |count: fn(&FrameStreamCounts) -> u64| run.counts.streams.iter().map(count).sum();
        let longest = |time: fn(&FrameStreamCounts) -> Nanos| run.counts.streams.iter().map(time).max();
        let share = run.offered_share();
        let sending = longest(|stream| stream.send_time).unwrap_or_default().max(run.task.time);
        let missing = (1.0 - share) * sending.as_secs_f64();
        let held_up = longest(|stream| stream.held_up).filter(|time| time.as_secs_f64() >= missing / 2.0);
        Self {
            due: sum(|stream| stream.intended),
            sent: sum(|stream| stream.sent),
            received: sum(FrameStreamCounts::received_by_all),
            share,
            held_up: held_up.filter(|_| !is_whole(share)),
            had_room: had_room(run.result),
            is_unlimited: run.task.streams.iter().any(|stream| stream.rate.is_none()),
            to_socket: None,
        }
    }

    /// The offer of one stream that was sent as it was asked for. A number of frames is also to leave at its rate.
    pub(crate) fn of_stream(stream: &FrameStream, counts: &FrameStreamCounts, had_room: bool) -> Self {
        let steps = counts.sent.saturating_sub(1) as f64;
        let asked = stream.rate.map(|rate| steps / rate.get().max(1) as f64);
        let took = (counts.send_time - WAKE_UP).as_secs_f64();
        let pace = asked.filter(|_| took > 0.0).map_or(1.0, |asked| (asked / took).min(1.0));
        let sent = counts.sent as f64 / counts.intended.max(counts.sent).max(1) as f64;
        Self {
            due: counts.intended,
            sent: counts.sent,
            received: counts.received,
            share: sent.min(pace),
            held_up: None,
            had_room,
            is_unlimited: stream.rate.is_none(),
            to_socket: counts.to_socket,
        }
    }

    /// Whether the load was offered.
    pub(crate) fn is_whole(&self) -> bool {
        is_whole(self.share)
    }

    /// Frames that were sent and did not arrive.
    pub(crate) fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// The firmness of a figure that rests on this trial.
    pub(crate) fn firmness(&self) -> Firmness {
        if self.is_whole() { Firmness::Firm } else { Firmness::NotFirm { offered: Some(self.share) } }
    }

    /// What the tester sent of what was due, as the end of a sentence: `the tester sent 607,889 of the 744,048 frames due`.
    pub(crate) fn told(&self) -> Message {
        let [due, sent] = [self.due, self.sent].map(MessageValue::Count);
        match (self.sent >= self.due, self.is_whole()) {
            (true, true) => message!("offered-all", "the tester sent all {due} frames due", due),
            (true, false) => {
                message!(
                    "offered-all-slower",
                    "the tester sent the {due} frames due at {share} of their rate",
                    due,
                    share = MessageValue::percent(self.share, 1)
                )
            }
            (false, true) => message!("offered-part", "the tester sent {sent} of the {due} frames due", sent, due),
            (false, false) => {
                message!(
                    "offered-part-slower",
                    "the tester sent {sent} of the {due} frames due, {share} of the rate",
                    sent,
                    due,
                    share = MessageValue::percent(self.share, 1)
                )
            }
        }
    }

    /// What limited a load that was offered without a search.
    pub(crate) fn verdict(&self) -> Verdict {
        let say = |limit, confidence, text| Verdict::new(limit, confidence, vec![text]);
        if let Some(ToSocket { at_port: at_port @ 1.., .. }) = self.to_socket
            && self.received == 0
        {
            let text = message!(
                "frames-none-at-socket",
                "{arrived} frames arrived at the port, and none at the socket: look for a firewall or a reverse-path filter \
                 (rp_filter) of the receiving host",
                arrived = MessageValue::Count(at_port)
            );
            return say(Limit::CannotTell, Confidence::Low, text);
        }
        if !self.is_whole() {
            return say(Limit::Tester, Confidence::Medium, self.told());
        }
        if self.lost() == 0 && self.is_unlimited {
            let text = message!(
                "frames-all-arrived-unlimited",
                "all {count} frames arrived, and the tester sent them as fast as it could",
                count = MessageValue::Count(self.sent)
            );
            return say(Limit::Tester, Confidence::Medium, text);
        }
        if self.lost() == 0 {
            let text = message!(
                "frames-all-arrived",
                "all {count} frames that were sent arrived: offer a higher load to find the limit",
                count = MessageValue::Count(self.sent)
            );
            return say(Limit::OfferedLoad, Confidence::High, text);
        }
        if !self.had_room {
            let text = message!(
                "frames-no-room",
                "{lost} of {sent} frames that were sent were not counted, and a receiving socket of the tester had no \
                 room for all frames",
                lost = MessageValue::Count(self.lost()),
                sent = MessageValue::Count(self.sent)
            );
            return say(Limit::Tester, Confidence::Medium, text);
        }
        if let Some(to_socket) = self.to_socket.filter(|to_socket| to_socket.at_port > self.received) {
            return self.in_receiving_host(to_socket);
        }
        let text = message!(
            "frames-not-arrived",
            "{lost} of {sent} frames that were sent did not arrive, provided that the receiving port lost none of \
             them",
            lost = MessageValue::Count(self.lost()),
            sent = MessageValue::Count(self.sent)
        );
        say(Limit::Device, Confidence::Medium, text)
    }

    /// Returns the verdict on frames of which the receiving host lost some between its port and the socket.
    fn in_receiving_host(&self, to_socket: ToSocket) -> Verdict {
        let ToSocket { at_port, dropped } = to_socket;
        let lost = at_port - self.received;
        let [within, arrived, sent] = [lost, at_port, self.sent].map(MessageValue::Count);
        let mut evidence = vec![message!(
            "frames-lost-in-host",
            "{within} of {arrived} frames that arrived at the port did not reach the program; {sent} were sent",
            within,
            arrived,
            sent
        )];
        let Some(dropped) = dropped else {
            return Verdict::new(Limit::ReceiverCpu, Confidence::Low, evidence);
        };
        evidence.push(message!(
            "frames-dropped-by-socket",
            "the socket's buffer was full for {dropped} of them",
            dropped = MessageValue::Count(dropped)
        ));
        if lost > self.lost() / 2 && dropped > lost / 2 {
            return Verdict::new(Limit::ReceiverCpu, Confidence::Medium, evidence);
        }
        Verdict::new(Limit::CannotTell, Confidence::Low, evidence)
    }
}

/// What limited a number that the device held, with more being too many; or all that was tried, which says nothing of the
/// device. A number that is not firm is a lower bound.
pub(crate) fn of_number(what: &'static Text, held: u64, too_many: Option<u64>, firmness: Firmness) -> Verdict {
    if !firmness.is_firm() {
        let text = message!(
            "number-not-firm",
            "{held} {what} were held; the tester sent too few frames to test more",
            held = MessageValue::Count(held),
            what
        );
        return Verdict::new(Limit::Tester, Confidence::Medium, vec![text]);
    }
    match too_many {
        Some(too_many) => {
            let text = message!(
                "number-held",
                "{held} {what} were held, {too_many} were not",
                held = MessageValue::Count(held),
                what,
                too_many = MessageValue::Count(too_many)
            );
            Verdict::new(Limit::Device, Confidence::High, vec![text])
        }
        None => {
            let text = message!(
                "number-all-held",
                "all {held} {what} that were tried were held",
                held = MessageValue::Count(held),
                what
            );
            Verdict::new(Limit::OfferedLoad, Confidence::High, vec![text])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms;
    use linerate_units::FrameRate;

    fn offer(due: u64, sent: u64, received: u64) -> Offer {
        Offer {
            due,
            sent,
            received,
            share: sent as f64 / due as f64,
            held_up: None,
            had_room: true,
            is_unlimited: false,
            to_socket: None,
        }
    }

    #[test]
    fn a_load_is_met_lost_or_never_sent() {
        let limit = |due, sent, received| offer(due, sent, received).verdict().limit;
        assert_eq!(limit(1_000, 1_000, 1_000), Limit::OfferedLoad);
        assert_eq!(limit(1_000, 998, 998), Limit::OfferedLoad);
        assert_eq!(limit(1_000, 1_000, 999), Limit::Device);
        assert_eq!(limit(1_000, 900, 800), Limit::Tester);
        let full = Offer { had_room: false, ..offer(1_000, 1_000, 999) };
        assert_eq!(full.verdict().limit, Limit::Tester, "what the tester dropped is not the device's loss");
        let fastest = Offer { is_unlimited: true, ..offer(1_000, 1_000, 1_000) };
        assert_eq!(fastest.verdict().limit, Limit::Tester, "no higher load can be offered");
    }

    #[test]
    fn frames_lost_after_the_port_are_the_hosts() {
        let limit = |sent, at_port, received, dropped| {
            let to_socket = Some(ToSocket { at_port, dropped });
            Offer { to_socket, ..offer(1_000, sent, received) }.verdict().limit
        };
        assert_eq!(limit(1_000, 1_000, 1_000, Some(0)), Limit::OfferedLoad);
        assert_eq!(limit(1_000, 1_000, 700, Some(300)), Limit::ReceiverCpu);
        assert_eq!(limit(1_000, 700, 700, Some(0)), Limit::Device, "lost before the port");
        assert_eq!(limit(1_000, 600, 500, Some(100)), Limit::CannotTell, "most were lost before the port");
        assert_eq!(limit(1_000, 1_000, 700, Some(10)), Limit::CannotTell, "something else dropped them");
        assert_eq!(limit(1_000, 1_000, 0, Some(0)), Limit::CannotTell, "a firewall, maybe");
    }

    #[test]
    fn a_sentence_never_says_more_than_was_sent() {
        assert_eq!(offer(1_000, 1_000, 0).told(), "the tester sent all 1,000 frames due");
        assert_eq!(offer(1_000, 999, 0).told(), "the tester sent 999 of the 1,000 frames due");
        let short = offer(744_048, 607_889, 0).told();
        assert_eq!(short, "the tester sent 607,889 of the 744,048 frames due, 81.7 % of the rate");
        let late = Offer { share: 0.6, ..offer(1_000, 1_000, 1_000) };
        assert_eq!(late.told(), "the tester sent the 1,000 frames due at 60.0 % of their rate");
        assert_eq!((late.verdict().limit, late.firmness()), (Limit::Tester, Firmness::NotFirm { offered: Some(0.6) }));
    }

    #[test]
    fn a_number_is_the_devices_only_if_more_was_too_many() {
        let of = |too_many, firmness| of_number(terms::ADDRESSES, 1_000, too_many, firmness).limit;
        assert_eq!(of(Some(1_001), Firmness::Firm), Limit::Device);
        assert_eq!(of(None, Firmness::Firm), Limit::OfferedLoad);
        assert_eq!(of(Some(1_001), Firmness::NotFirm { offered: None }), Limit::Tester);
    }

    #[test]
    fn frames_that_leave_late_do_not_offer_their_rate() {
        let pair = crate::device::tests::plan(linerate_model::DeviceTest::Throughput, false).directions.remove(0);
        let stream = FrameStream {
            from: pair.from,
            to: pair.to,
            copies_to: Vec::new(),
            size: linerate_units::FrameSize::with_fcs(64).expect("a size"),
            rate: Some(FrameRate::per_second(1_000)),
            count: Some(501),
            after: Nanos::default(),
            time: None,
            headers: pair.headers,
            form: linerate_model::FrameForm::default(),
        };
        let share = |send_time, sent| {
            let counts = FrameStreamCounts { intended: 501, sent, send_time, ..FrameStreamCounts::default() };
            Offer::of_stream(&stream, &counts, true).share
        };
        assert_eq!(share(Nanos::from_millis(500), 501), 1.0);
        assert!((share(Nanos::from_secs(1), 501) - 0.5).abs() < 0.001);
        assert!(share(Nanos::from_millis(500), 401) < 0.81);
    }
}

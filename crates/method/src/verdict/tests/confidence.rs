//! Conditions of high confidence, and the place of a limit.

use super::super::facts::{LossPattern, Offer};
use super::*;
use linerate_model::{ConfidenceCondition, LimitPlace, Verdict};

/// The conditions that a verdict does not meet.
fn missed(verdict: &Verdict) -> Vec<ConfidenceCondition> {
    verdict.checks.iter().filter(|check| !check.met).map(|check| check.condition).collect()
}

/// An interface whose queue always holds packets and holds them back.
fn full_queue(line_share: Option<f64>) -> InterfaceFacts {
    InterfaceFacts {
        name: "eth0".into(),
        waiting: 1.0,
        held_back_per_s: 1_000.0,
        line_share,
        ..InterfaceFacts::default()
    }
}

/// A UDP sender at full speed whose datagrams pass its own full queue, and of which `wire` are lost later.
fn flood(wire: f64, outbound: InterfaceFacts) -> FlowFacts {
    FlowFacts { outbound, ..udp(Udp { wire, ..Udp::default() }) }
}

/// A TCP stream through the sending host's own queue, which nothing else explains.
fn own_queue() -> FlowFacts {
    FlowFacts { outbound: full_queue(None), ..facts() }
}

#[test]
fn each_condition_that_is_missed_lowers_confidence_to_medium() {
    let all_met = of_flows(&own_queue());
    assert_eq!((all_met.limit, all_met.confidence, missed(&all_met)), (Limit::Shaper, Confidence::High, vec![]));
    let window = |window| FlowFacts { window, ..own_queue() };
    let waits = End { waited: 0.2, busy: 0.2, ..End::default() };
    for (facts, condition) in [
        (window(WindowFacts { samples: 6.0, ..well_observed() }), ConfidenceCondition::Sampled),
        (window(WindowFacts { difference: Some(0.08), ..well_observed() }), ConfidenceCondition::CountsAgree),
        (FlowFacts { sender: waits.clone(), ..own_queue() }, ConfidenceCondition::LoadRan),
        (FlowFacts { receiver: waits, ..own_queue() }, ConfidenceCondition::LoadRan),
        (
            FlowFacts { steal: 0.2, sender: End { busy: 0.6, ..End::default() }, ..own_queue() },
            ConfidenceCondition::LoadRan,
        ),
    ] {
        let verdict = of_flows(&facts);
        assert_eq!((verdict.limit, verdict.confidence), (Limit::Shaper, Confidence::Medium), "{verdict:#?}");
        assert_eq!(missed(&verdict), [condition], "{verdict:#?}");
        let check = verdict.checks.iter().find(|check| !check.met).expect("one is missed");
        assert!(verdict.evidence.contains(&check.text), "the reader sees why: {verdict:#?}");
    }
}

#[test]
fn a_full_line_and_a_load_that_arrived_do_not_depend_on_who_waited() {
    let waits = End { waited: 0.3, busy: 0.3, ..End::default() };
    is(&FlowFacts { sender: waits.clone(), ..with_line(0.998) }, Limit::Wire, Confidence::High);
    let met = Some(Offer { sent: 1.0, arrived: 1.0 });
    is(&FlowFacts { receiver: waits, offer: met, ..facts() }, Limit::OfferedLoad, Confidence::High);
}

/// A bridge at 57 % of a tester limit that was taken a minute earlier on a quieter machine.
#[test]
fn a_comparison_is_sure_only_if_both_measurements_were_interleaved() {
    let bypassed = at_tester_limit(with_line(0.4), 0.57);
    let apart = of_flows(&bypassed);
    assert_eq!((apart.limit, apart.confidence), (Limit::Device, Confidence::Medium));
    assert_eq!(missed(&apart), [ConfidenceCondition::Interleaved]);
    let mut alternating = bypassed;
    alternating.tester_limit.as_mut().expect("a tester limit").0.interleaved = true;
    is(&alternating, Limit::Device, Confidence::High);
    let receiver = End { waited: 0.2, busy: 0.3, ..End::default() };
    is(&FlowFacts { receiver, ..alternating }, Limit::Device, Confidence::Medium);
}

/// `lab -- stream a b -u -n 10k` (also 100k, 1M) on an idle veth pair, and the same over TCP.
#[test]
fn a_window_shorter_than_what_it_is_judged_by_names_no_limit() {
    let brief = WindowFacts { seconds: 0.000_6, samples: 0.0, ..well_observed() };
    is_open(&FlowFacts { window: brief, ..udp(Udp::default()) }, &[Limit::Shaper]);
    let tcp = FlowFacts { window: brief, lost_on_return: 0.5, ..facts() };
    assert_eq!(of_flows(&tcp).limit, Limit::CannotTell);
    let busy = End { busy: 1.0, ..End::default() };
    assert_eq!(of_flows(&FlowFacts { window: brief, sender: busy, ..facts() }).limit, Limit::CannotTell);
    // Counts are exact in any window.
    is(&FlowFacts { window: brief, ..with_line(0.998) }, Limit::Wire, Confidence::Medium);
}

/// `--link 100Mbit/s --device reference,max-frames=2500 -- stream a b --udp`: the sender fills its line, and the device drops.
#[test]
fn loss_after_a_full_line_is_not_the_senders_queue() {
    let device_drops = FlowFacts { line: with_line(0.3).line, ..flood(0.69, full_queue(Some(0.99))) };
    let verdict = of_flows(&device_drops);
    assert_eq!((verdict.limit, verdict.place), (Limit::Shaper, Some(LimitPlace::ForwardPath)), "{verdict:#?}");
    assert!(!verdict.next.concat().contains("tc qdisc"), "{verdict:#?}");
    // The same with a queue of unknown speed: the path lets through less than the queue does.
    let unknown = of_flows(&flood(0.69, full_queue(None)));
    assert_eq!((unknown.limit, unknown.place), (Limit::Shaper, Some(LimitPlace::ForwardPath)), "{unknown:#?}");
    // Little loss later: the queue limits, but not surely alone.
    let little = of_flows(&flood(0.03, full_queue(None)));
    assert_eq!((little.limit, little.place), (Limit::Shaper, Some(LimitPlace::SenderQueue)), "{little:#?}");
    assert_eq!(little.confidence, Confidence::Medium);
    let none = of_flows(&flood(0.0, full_queue(None)));
    assert_eq!((none.place, none.confidence), (Some(LimitPlace::SenderQueue), Confidence::High), "{none:#?}");
}

/// `--device path,loss=3%,delay=60ms --link 5Mbit/s`: retransmits fill a part of the line.
#[test]
fn a_line_full_of_retransmits_is_full() {
    let lossy = Tcp { retransmitted: 0.03, congestion: "bbr".into(), ..tcp() };
    let full = FlowFacts { outbound: full_queue(Some(0.99)), tcp: Some(lossy.clone()), ..with_line(0.93) };
    is(&full, Limit::Wire, Confidence::High);
    assert_eq!(of_flows(&full).place, Some(LimitPlace::SenderQueue));
    // A queue of the host at a tenth of the declared speed is a shaper.
    let shaped = FlowFacts { outbound: full_queue(Some(0.1)), tcp: Some(lossy), ..with_line(0.09) };
    assert_eq!(of_flows(&shaped).limit, Limit::Shaper);
    // Datagrams that are lost later fill the line as well.
    let line = with_line(0.97).line;
    let datagrams = of_flows(&FlowFacts { line, ..flood(0.03, full_queue(Some(0.99))) });
    assert_eq!((datagrams.limit, datagrams.confidence), (Limit::Wire, Confidence::Medium), "{datagrams:#?}");
}

/// `fault = { kind = "host-queue", rate = "256kbit/s" }`: the sender's own queue drops nearly all.
#[test]
fn a_sender_whose_own_queue_drops_is_no_slow_sender() {
    let busy = End { busy: 0.98, ..End::default() };
    let dropped = Udp { sender_queue: 0.999, ..Udp::default() };
    for held_back_per_s in [80.0, 0.0] {
        let outbound = InterfaceFacts { held_back_per_s, dropped: 0.999, ..full_queue(None) };
        let verdict = of_flows(&FlowFacts { outbound, sender: busy.clone(), ..udp(dropped) });
        assert_eq!((verdict.limit, verdict.place), (Limit::Shaper, Some(LimitPlace::SenderQueue)), "{verdict:#?}");
    }
}

/// One of six clients that share 20 Mbit/s gets 1.65.
#[test]
fn a_queue_that_is_full_of_other_traffic_is_not_sure() {
    let outbound = InterfaceFacts { others: 0.92, ..full_queue(None) };
    let verdict = of_flows(&FlowFacts { outbound, ..facts() });
    assert_eq!((verdict.limit, verdict.confidence), (Limit::Shaper, Confidence::Medium), "{verdict:#?}");
    assert_eq!(missed(&verdict), [ConfidenceCondition::NoOtherSign]);
    assert!(verdict.evidence.iter().any(|text| text.contains("Other traffic was 92 %")), "{verdict:#?}");
}

/// The pattern of the losses decides between the path's errors and what it lets through.
#[test]
fn loss_by_chance_after_a_full_line_is_not_the_senders_queue() {
    let mut facts = FlowFacts { line: with_line(0.8).line, ..flood(0.2, full_queue(Some(0.99))) };
    facts.course = Some(super::super::facts::Course {
        growth: 1.0,
        losses: Some(LossPattern::ByChance),
        ..super::super::facts::Course::default()
    });
    assert_ne!(of_flows(&facts).place, Some(LimitPlace::SenderQueue));
}

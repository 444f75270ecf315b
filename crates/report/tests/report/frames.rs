//! What a reader sees of raw frames that were generated and received, without a test of a device.

use crate::sample;
use linerate_model::{
    Caveat, CaveatKind, Confidence, Detail, Firmness, FlowRate, FrameEngine, FrameFlow, FrameHeaders, FramePayload,
    FrameReceiver, FrameStream, FramesTask, Limit, Mac, Measurement, Message, Plan, Quantity, Record, Repeats, Task,
    Timing, Trial, Verdict,
};
use linerate_report::csv;
use linerate_units::{FrameRate, FrameSize, Nanos};

fn flow(from: &str, to: &str, lost: u64) -> FrameFlow {
    let rate = FlowRate {
        frames_per_s: (20_000 - lost) as f64,
        frame_bits_per_s: 10.2e6,
        wire_bits_per_s: 13.4e6,
        time: Nanos::from_secs(1),
    };
    FrameFlow {
        from: from.to_owned(),
        to: to.to_owned(),
        frame_bytes: 64,
        mix: None,
        engine: FrameEngine::Xdp,
        intended: 20_000,
        sent: 20_000,
        firmness: Firmness::Firm,
        received: 20_000 - lost,
        to_socket: None,
        lost,
        duplicates: 0,
        reordered: 0,
        flooded: 0,
        offered: Some(rate),
        arrived: Some(rate),
        sent_bytes: 1_280_000,
        received_bytes: 64 * (20_000 - lost),
        latency_ns: None,
        by_port_counters: false,
        verdict: Some(Verdict::new(
            if lost > 0 { Limit::Device } else { Limit::OfferedLoad },
            Confidence::High,
            vec![],
        )),
        caveats: vec![Caveat::new(
            CaveatKind::PortCountersOnly,
            Message::untranslated(format!("port {to} counted frames of others")),
        )],
    }
}

/// 64-byte frames both ways between two ports; one way loses some.
pub(crate) fn record() -> Record {
    let headers = FrameHeaders {
        source_mac: Mac([2, 0, 0, 0, 0, 1]),
        destination_mac: Mac([2, 0, 0, 0, 0, 2]),
        vlans: vec![],
        priority: 0,
        dscp: 0,
        source: "198.18.0.1".parse().expect("an address"),
        destination: "198.18.0.2".parse().expect("an address"),
        payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
    };
    let stream = |from, to| FrameStream {
        from,
        to,
        copies_to: Vec::new(),
        size: FrameSize::with_fcs(64).expect("a size"),
        rate: Some(FrameRate::per_second(20_000)),
        count: None,
        after: Nanos::default(),
        time: None,
        headers: headers.clone(),
        form: Default::default(),
    };
    let task = Task::Frames(FramesTask {
        home: "tester".into(),
        ports: vec!["p0".into(), "p1".into()],
        streams: vec![stream(0, 1), stream(1, 0)],
        time: Nanos::from_secs(1),
        settle: Nanos::from_secs(2),
        engine: FrameEngine::Auto,
        receiver: FrameReceiver::Port,
        line: None,
        hosts: vec![],
    });
    let flows = vec![flow("p0", "p1", 0), flow("p1", "p0", 10)];
    let result = Measurement {
        name: "64".to_owned(),
        quantity: Quantity::FramesPerS,
        main: sample::summary(39_990.0, 0.0),
        tester_limit: None,
        verdict: Verdict::new(Limit::Device, Confidence::High, vec![]),
        caveats: vec![],
        detail: Detail::Frames { flows },
    };
    let mut record = sample::record(&[], "tester", vec![result]);
    record.plan = Plan::sweep(vec![Trial::new("64", task, Timing::UntilDone)], Repeats::Times(3));
    record
}

#[test]
fn a_file_has_a_row_for_each_way() {
    let text = csv(&record());
    let rows: Vec<Vec<&str>> = text.split_terminator("\r\n").map(|line| line.split(',').collect()).collect();
    let at = |name: &str| rows[0].iter().position(|column| *column == name).expect(name);
    let cells = |name: &str| rows[1..].iter().map(|row| row[at(name)]).collect::<Vec<_>>();
    assert_eq!((cells("result"), cells("loss_ratio")), (vec!["64", "64"], vec!["0", "0.0005"]));
}

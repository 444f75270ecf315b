//! How large a record of many trials is.

use super::plans;
use crate::run::sampling;
use linerate_method::simulation::Network;
use linerate_model::{
    Plan, Readings, Record, RecordId, Repeats, Sampling, Series, SeriesBuilder, SeriesQuantity as Quantity,
    SessionSeries, Transport,
};
use linerate_units::Nanos;
use std::io;

/// Trials of the record.
const TRIALS: u32 = 1_000;
const CORES: u64 = 8;

/// Counts bytes.
#[derive(Default)]
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a host with a TCP stream at 10 Gbit/s reads at a sample: counters that grow by usual amounts, and levels.
fn readings(sample: u64, sends: bool) -> Readings {
    // Numbers that vary within their digits.
    let about = |usual: u64| usual - usual / 4 + (sample * 7_919 + usual) % (usual / 2 + 1);
    let grown =
        |usual: u64| (0..sample).map(|before| usual - usual / 4 + (before * 7_919) % (usual / 2 + 1)).sum::<u64>();
    let mut readings = Readings::default();
    let own: &[(Quantity, u64)] = if sends {
        &[
            (Quantity::SentBytes, 125_000_000),
            (Quantity::SentMessages, 950),
            (Quantity::Retransmits, 12),
            (Quantity::Busy, 100_000),
            (Quantity::ReceiveWindowLimited, 4_000),
            (Quantity::SendBufferLimited, 4_000),
        ]
    } else {
        &[(Quantity::ReceivedBytes, 125_000_000), (Quantity::ReceivedMessages, 950)]
    };
    own.iter().for_each(|(quantity, usual)| readings.add(*quantity, "", grown(*usual)));
    let levels = [
        (Quantity::Srtt, 450),
        (Quantity::RttVar, 90),
        (Quantity::CongestionWindow, 1_200),
        (Quantity::SlowStartThreshold, 900),
        (Quantity::PacingRate, 12_000_000),
        (Quantity::DeliveryRate, 9_800_000),
        (Quantity::PeerWindow, 3_145_728),
    ];
    levels.iter().filter(|_| sends).for_each(|(quantity, usual)| readings.add(*quantity, "", about(*usual)));
    for core in 0..CORES {
        // Time of cores is counted in ticks of 10 ms.
        for (quantity, usual) in [(Quantity::CoreUser, 1), (Quantity::CoreSystem, 4), (Quantity::CoreSoftirq, 3)] {
            readings.add(quantity, &core.to_string(), grown(usual) * 10_000);
        }
    }
    readings.add(Quantity::ThreadCpu, if sends { "send 0" } else { "receive 0" }, grown(60_000));
    readings.add(Quantity::QdiscBacklog, "eth0", about(150_000));
    readings.add(Quantity::QdiscOverlimits, "eth0", grown(800));
    for (quantity, usual) in [
        (Quantity::InterfaceSentBytes, 130_000_000),
        (Quantity::InterfaceSentPackets, 86_000),
        (Quantity::InterfaceReceivedBytes, 2_000_000),
        (Quantity::InterfaceReceivedPackets, 30_000),
    ] {
        readings.add(quantity, "eth0", grown(usual));
    }
    readings.add(Quantity::SoftnetProcessed, "", grown(35_000));
    readings.add(Quantity::SoftnetSqueezed, "", grown(3));
    readings
}

/// 500 ms of warm-up and a window of 10 s, as one of `trials` trials.
fn series(sends: bool, trials: u32) -> Series {
    const PERIOD: u64 = 100_000_000;
    let began = 86_400_000_000_000;
    let every = sampling(Sampling::default().period, Some(trials as usize), 0);
    assert_eq!(every.period, Nanos::new(PERIOD));
    let mut builder = SeriesBuilder::new(every, began, readings(0, sends));
    let at = |sample: u64| began + sample * PERIOD + sample % 7 * 13_000;
    for sample in 1..=105 {
        builder.take(at(sample), readings(sample, sends), sample == 5);
    }
    builder.finish(at(5), at(105))
}

#[test]
fn a_record_of_a_thousand_trials_is_under_30_megabytes() {
    let trial = plans::stream(Transport::Tcp, "tcp");
    let mut result = Network::default().attempt(&trial, 0).expect("a trial");
    let session = |host: &str, sends| SessionSeries { load: 0, host: host.into(), series: series(sends, TRIALS) };
    result.series = vec![session("a", true), session("b", false)];
    assert!(result.series.iter().all(|session| session.series.len() >= 25), "the course is still told");
    assert!(result.series[0].series.tracks.len() > 40, "all that a sender has");
    let plan = Plan::sweep(vec![trial], Repeats::Times(TRIALS));
    let record = Record { trials: vec![result; TRIALS as usize], ..Record::new(RecordId("r".into()), plan) };
    let mut length = Length::default();
    serde_json::to_writer(&mut length, &record).expect("it is JSON");
    assert!(length.0 > 5_000_000, "{} bytes are too few to be realistic", length.0);
}

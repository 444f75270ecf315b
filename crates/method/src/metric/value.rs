//! The values of metrics in what a run found.

use super::{End, Metric};
use crate::{curve, results};
use linerate_model::{
    CopyFigures, DeviceFound, Firmness, FlowFigures, FrameFlow, FrameLatency, Measurement, Record, Trial,
};
use linerate_units::Ratio;

/// Why a run gives no one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoOneValue {
    /// Its kind of test does not measure that.
    #[error("the test does not measure that")]
    NotMeasured,
    /// It has several.
    #[error("the test gives {0} results of it, where each run of a study gives one: let a factor name one of them")]
    Several(usize),
}

impl Metric {
    /// Its value in a result: the median of the runs, of latency that of all runs together.
    pub fn of(self, result: &Measurement) -> Option<f64> {
        if let Some(copy) = result.copy() {
            return self.of_copy(copy);
        }
        match result.flows() {
            Some(flows) => self.of_flows(result, flows),
            None => self.of_frames(result.frames()),
        }
    }

    fn of_copy(self, copy: &CopyFigures) -> Option<f64> {
        match self {
            Self::Throughput => Some(copy.bytes_per_s * 8.0),
            Self::Files => Some(copy.files_per_s),
            Self::Stage(stage) => copy.stages.get(&stage).map(|share| share.busy),
            _ => None,
        }
    }

    fn of_flows(self, result: &Measurement, flows: &FlowFigures) -> Option<f64> {
        let received = result.received();
        match self {
            Self::Throughput => received.map(|r| r.payload_bps.median),
            Self::Packets => received.map(|r| r.packets_per_s.median),
            Self::Transactions => result.requests().map(|requests| requests.transactions_per_s.median),
            // Of nothing sent, nothing lost is no proof.
            Self::Loss => result.loss().filter(|loss| loss.of > 0).map(|loss| Ratio::new(loss.lost, loss.of).as_f64()),
            Self::Jitter => result.stream()?.jitter_ns.as_ref().map(|jitter| jitter.median),
            Self::Share => flows.limit.as_ref().map(|limit| limit.share),
            Self::Latency(percentile) => result.latency().map(|latency| percentile.of(latency)),
            Self::Added(at) => result.loaded_latency().map(|probed| at.of(&probed.added_ns)),
            Self::RoundTrips => result.loaded_latency().map(|probed| probed.rpm.loaded),
            Self::Class(class, figure) => result.nfs()?.classes.get(&class).map(|operations| figure.of(operations)),
            // The busiest thread of an end that nobody watched has none.
            Self::Cpu(End::Sender) => Some(flows.cpu.sender.busiest_thread).filter(|share| *share > 0.0),
            Self::Cpu(End::Receiver) => Some(flows.cpu.receiver.busiest_thread).filter(|share| *share > 0.0),
            _ => None,
        }
    }

    /// Of several flows of frames rates add up, and losses are of all that was sent.
    fn of_frames(self, flows: &[FrameFlow]) -> Option<f64> {
        let rate =
            |of: fn(&FrameFlow) -> Option<f64>| flows.iter().map(of).sum::<Option<f64>>().filter(|_| !flows.is_empty());
        match self {
            Self::Throughput => rate(|flow| Some(flow.arrived?.frame_bits_per_s)),
            Self::Frames => rate(|flow| Some(flow.arrived?.frames_per_s)),
            Self::Loss => {
                let sum = |of: fn(&FrameFlow) -> u64| flows.iter().map(of).sum::<u64>();
                let (sent, lost) = (sum(|flow| flow.sent), sum(|flow| flow.lost));
                (sent > 0).then(|| Ratio::new(lost, sent).as_f64())
            }
            _ => None,
        }
    }

    /// Its value at one frame size. Of a loss curve it is the highest loss.
    pub fn of_device(self, size: u32, found: &DeviceFound) -> Option<f64> {
        let throughput = found.throughput.iter().find(|cell| cell.frame_bytes == size);
        let latency = found.latency.iter().find(|cell| cell.frame_bytes == size);
        let burst = found.burst.iter().find(|cell| cell.frame_bytes == size);
        let addresses = found.addresses.as_ref().filter(|table| table.frame_bytes == size);
        let echo = found.echo.iter().find(|cell| cell.frame_bytes == size);
        let forwarding = found.forwarding.iter().find(|cell| cell.frame_bytes == size);
        match self {
            Self::Throughput => throughput.map(|cell| cell.bits_per_s),
            Self::Frames => throughput.map(|cell| cell.frames_per_s),
            Self::AtMaximumLoad => forwarding?.at_maximum_load_frames_per_s,
            Self::MaximumForwarding => forwarding.map(|cell| cell.maximum_frames_per_s),
            Self::Share => throughput?.line_share,
            Self::Latency(percentile) => latency?.latency_ns.as_ref().map(|took| percentile.of(took)),
            Self::Loss => {
                let curve = found.loss.iter().find(|curve| curve.frame_bytes == size);
                let of_curve = curve.and_then(|curve| curve.points.iter().map(|p| p.loss_ratio).reduce(f64::max));
                // What arrived was timed.
                let timed = |cell: &FrameLatency| cell.lost + cell.latency_ns.as_ref().map_or(0, |took| took.count);
                of_curve.or_else(|| latency.map(|cell| Ratio::new(cell.lost, timed(cell).max(1)).as_f64()))
            }
            Self::DeviceCpu => {
                let loads = [
                    throughput.and_then(|cell| cell.device_load.as_ref()),
                    latency.and_then(|cell| cell.device_load.as_ref()),
                    echo.and_then(|cell| cell.device_load.as_ref()),
                ];
                loads.into_iter().flatten().find_map(|load| load.cpu)
            }
            Self::Echoes => echo.map(|cell| cell.answers_per_s),
            Self::Burst => burst?.frames.as_ref().map(|frames| frames.mean),
            Self::Buffer => burst?.buffer.as_ref().map(|buffer| buffer.corrected_ns),
            // A run that never recovered has no time, and an overload that lost nothing leaves none to measure.
            Self::Recovery => {
                let cell = found.recovery.iter().find(|cell| cell.frame_bytes == size)?;
                cell.mean_ns.filter(|_| cell.unrecovered == 0 && cell.overload_lost > 0)
            }
            Self::Addresses => addresses.map(|table| table.capacity.into()),
            Self::Learning => addresses?.learning.map(|learning| learning.frames_per_s),
            Self::Neighbours => {
                found.hosts.as_ref().filter(|table| table.frame_bytes == size).map(|table| table.held.into())
            }
            Self::Packets | Self::Transactions | Self::Files | Self::Jitter | Self::Added(_) | Self::RoundTrips => None,
            Self::Class(..) | Self::Stage(_) | Self::Cpu(_) => None,
        }
    }

    /// Whether that value is firm.
    pub fn firmness_of_device(self, size: u32, found: &DeviceFound) -> Firmness {
        let all = |of: &mut dyn Iterator<Item = Firmness>| of.fold(Firmness::Firm, Firmness::and);
        let timed = || found.latency.iter().filter(|cell| cell.frame_bytes == size).map(|cell| cell.firmness);
        match self {
            Self::Throughput | Self::Frames | Self::Share => {
                all(&mut found.throughput.iter().filter(|cell| cell.frame_bytes == size).map(|cell| cell.firmness))
            }
            Self::MaximumForwarding => {
                all(&mut found.forwarding.iter().filter(|cell| cell.frame_bytes == size).map(|cell| cell.firmness))
            }
            Self::Loss => {
                let points = found.loss.iter().filter(|curve| curve.frame_bytes == size).flat_map(|c| &c.points);
                all(&mut points.map(|point| point.firmness).chain(timed()))
            }
            Self::Latency(_) => all(&mut timed()),
            Self::Echoes => {
                all(&mut found.echo.iter().filter(|cell| cell.frame_bytes == size).map(|cell| cell.firmness))
            }
            Self::Burst | Self::Buffer => {
                all(&mut found.burst.iter().filter(|cell| cell.frame_bytes == size).map(|cell| cell.firmness))
            }
            Self::Recovery => {
                all(&mut found.recovery.iter().filter(|cell| cell.frame_bytes == size).map(|cell| cell.firmness))
            }
            Self::Addresses => all(&mut found.addresses.iter().map(|table| table.firmness)),
            Self::Learning => {
                let tables = found.addresses.iter();
                all(&mut tables.filter_map(|table| table.learning.as_ref()).map(|learning| learning.firmness))
            }
            Self::Neighbours => all(&mut found.hosts.iter().map(|table| table.firmness)),
            _ => Firmness::Firm,
        }
    }

    /// The firmness of that value beside another: where the device held all that was tried, it is a lower bound.
    pub fn firmness_beside(self, size: u32, found: &DeviceFound) -> Firmness {
        let is_bound = match self {
            Self::Addresses => found.addresses.iter().any(|it| it.frame_bytes == size && it.flooded_at.is_none()),
            Self::Neighbours => found.hosts.iter().any(|it| it.frame_bytes == size && it.bound.is_some()),
            _ => false,
        };
        let own = self.firmness_of_device(size, found);
        if is_bound { own.and(Firmness::NotFirm { offered: None }) } else { own }
    }

    /// The one value that a run gives; none where it measured nothing, as where every datagram was lost.
    pub fn of_record(self, record: &Record) -> Result<Option<f64>, NoOneValue> {
        let values: Vec<Option<f64>> = match record.device() {
            Some((plan, _)) if !self.applies_to_device(&plan.test) => Vec::new(),
            Some((plan, found)) => plan.sizes.iter().map(|size| self.of_device(size.get(), found)).collect(),
            None => {
                // What tests a verdict was not asked for itself, and of a curve it is the peak that counts.
                let asked = |cell: &&Trial| cell.proves.is_none() && curve::stands(record, &cell.name);
                let cells = results::cells(record).into_iter().filter(asked).filter(|cell| self.applies_to(cell));
                let result = |cell: &Trial| record.results.iter().find(|result| result.name == cell.name);
                cells.map(|cell| result(cell).and_then(|result| self.of(result))).collect()
            }
        };
        match values[..] {
            // A curve of which no load was held.
            [] if curve::lacks_peak(record) => Ok(None),
            [] => Err(NoOneValue::NotMeasured),
            [value] => Ok(value),
            _ => Err(NoOneValue::Several(values.len())),
        }
    }

    /// Whether that value is firm.
    pub fn firmness_of_record(self, record: &Record) -> Firmness {
        match record.device() {
            Some((plan, found)) => {
                let sizes = plan.sizes.iter().map(|size| self.firmness_beside(size.get(), found));
                sizes.fold(Firmness::Firm, Firmness::and)
            }
            None => {
                let peak = record.curve().and_then(|(_, found)| found.peak.as_ref());
                let peak = peak.map_or(Firmness::Firm, |peak| peak.firmness);
                record.results.iter().map(Measurement::firmness).fold(peak, Firmness::and)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expect::Expectation;
    use crate::measure::tests::measure;
    use linerate_model::{
        AddressTable, BackToBack, BufferTime, BurstLengths, CopyStage, Detail, NfsClass, NfsFigures, OperationFigures,
        Recovery, RequestFigures, StageShare,
    };
    use std::collections::BTreeMap;

    fn of(name: &str, result: &Measurement) -> Option<f64> {
        Metric::named(name).expect(name).of(result)
    }

    #[test]
    fn a_device_that_did_not_always_recover_has_no_recovery_time() {
        let found = |unrecovered, overload_lost| DeviceFound {
            recovery: vec![linerate_model::Recovery {
                frame_bytes: 64,
                throughput_frames_per_s: 1e5,
                overload_frames_per_s: 1.1e5,
                firmness: Firmness::Firm,
                overload_lost,
                reduced_frames_per_s: 5e4,
                values_ns: vec![1_000_000],
                mean_ns: Some(1e6),
                unrecovered,
                verdict: None,
                caveats: Vec::new(),
            }],
            ..DeviceFound::default()
        };
        let plan = crate::device::tests::plan(linerate_model::DeviceTest::Recovery { repeats: 3 }, false);
        let within: Expectation = "recovery<=5ms".parse().expect("valid");
        let met = |unrecovered, lost| within.judge_device(&plan, &found(unrecovered, lost))[0].met;
        assert!(met(0, 10));
        assert!(!met(2, 10), "two runs lost frames to their end");
        assert!(!met(0, 0), "nothing to recover from");
    }

    #[test]
    fn operations_by_class_and_stages_of_copies_are_figures() {
        let mut result = measure(&[], &[crate::transfer::tests::trial(1_000, 0)]);
        let Detail::Stream(stream) = &mut result.detail else { panic!("a stream") };
        stream.flow.cpu.receiver.busiest_thread = 0.75;
        let flow = stream.flow.clone();
        let reads = OperationFigures { ops_per_s: 250.0, mean_ms: 1.5, p50_ms: 1.0, p99_ms: 9.0, ..Default::default() };
        result.detail = Detail::Nfs(Box::new(NfsFigures {
            flow,
            requests: RequestFigures { transactions_per_s: result.main.clone(), failed: 0, latency_ns: None },
            received: None,
            retransmitted: 0,
            operations: BTreeMap::new(),
            classes: BTreeMap::from([(NfsClass::Read, reads)]),
            service_ns: None,
        }));
        let read = ["read.rate", "read.mean", "read.p50", "read.p99"].map(|name| of(name, &result));
        assert_eq!(read, [Some(250.0), Some(1.5e6), Some(1e6), Some(9e6)]);
        assert_eq!((of("write.p50", &result), of("receiver.cpu", &result)), (None, Some(0.75)));
        assert_eq!(of("sender.cpu", &result), None, "nobody watched it");

        let mut copy = CopyFigures::default();
        copy.stages.insert(CopyStage::Hash, StageShare { busy: 0.25, ..StageShare::default() });
        result.detail = Detail::Copy(Box::new(copy));
        assert_eq!((of("stage.hash", &result), of("stage.sync", &result)), (Some(0.25), None));
    }

    #[test]
    fn bursts_recovery_and_tables_of_a_device_are_figures() {
        let caveats = Vec::new;
        let burst = BackToBack {
            frame_bytes: 64,
            throughput_frames_per_s: 1e5,
            burst_frames_per_s: None,
            line_frames_per_s: None,
            frames: Some(BurstLengths { mean: 800.5, min: 800, max: 801, deviation: 0.5, values: vec![800, 801] }),
            firmness: Firmness::Firm,
            buffer: Some(BufferTime { implied_ns: 9e6, corrected_ns: 8e6, frames: 700.0 }),
            verdict: None,
            caveats: caveats(),
        };
        let recovery = Recovery {
            frame_bytes: 64,
            throughput_frames_per_s: 1e5,
            overload_frames_per_s: 1.1e5,
            firmness: Firmness::Firm,
            overload_lost: 10,
            reduced_frames_per_s: 5e4,
            values_ns: vec![3_000_000],
            mean_ns: Some(3e6),
            unrecovered: 0,
            verdict: None,
            caveats: caveats(),
        };
        let found = DeviceFound { burst: vec![burst], recovery: vec![recovery], ..DeviceFound::default() };
        let figure = |name: &str| Metric::named(name).expect(name).of_device(64, &found);
        let figures = ["burst", "buffer", "recovery"].map(figure);
        assert_eq!(figures, [Some(800.5), Some(8e6), Some(3e6)]);
        assert_eq!((figure("addresses"), figure("neighbours"), figure("echoes")), (None, None, None));
        let burst: Expectation = "burst>=800".parse().expect("valid");
        assert_eq!(burst.metric(), Some(Metric::Burst));

        let table = AddressTable {
            frame_bytes: 64,
            learned: 8_192,
            firmness: Firmness::Firm,
            own: 2,
            capacity: 8_194,
            flooded_at: Some(8_200),
            learn_frames_per_s: 1e4,
            learning: None,
            trials: 9,
            iterations: Vec::new(),
            verdict: None,
            caveats: caveats(),
        };
        let found = DeviceFound { addresses: Some(table), ..DeviceFound::default() };
        assert_eq!(Metric::Addresses.of_device(64, &found), Some(8_194.0));
        assert_eq!((Metric::Addresses.of_device(128, &found), Metric::Learning.of_device(64, &found)), (None, None));
    }
}

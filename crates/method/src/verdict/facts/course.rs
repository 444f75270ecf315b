//! How a load went within its measured window: what the series of its runs say.

use super::loss_pattern::LossPattern;
use super::median;
use super::pace::Pace;
use crate::interval_rates::{Interval, judged_by, mean_rate};
use crate::statistics::{median as median_of, trend_test};
use crate::transfer::transfers;
use crate::within_window::intervals;
use linerate_model::{HostName, Series, SeriesQuantity, Steadiness, TrialResult};
use std::collections::BTreeSet;

/// A load is judged from so many intervals or more.
const FEWEST: usize = 3;
/// The last third of a window has so many times the rate of the first where a load rises.
pub(crate) const GROWN: f64 = 1.25;
/// A rate that began at nothing, or next to it, grew by so much at the most: JSON has no infinite numbers.
const MOST_GROWTH: f64 = 1_000.0;
/// Chance explains a rise in rank with at most this probability.
const BY_CHANCE: f64 = 0.01;
/// So many rates are ranked at the most; neighbours are taken together. With more the test has no exact p-value.
const MOST_RANKED: usize = 24;
/// A queue that takes less time than this may be the hosts' own, seconds.
pub(super) const QUEUE_NOTABLE: f64 = 0.001;
/// A queue makes the round trip longer by this share of the shortest one at the least.
const QUEUE_SHARE: f64 = 0.5;
/// With fewer segments in it, it is no queue: an acknowledgement that waits for a second segment takes as long.
const QUEUE_SEGMENTS: f64 = 10.0;
/// A queue that is there in so much of the window stands.
const STANDING: f64 = 0.8;
/// One that is there for less of it is a burst.
const NOW_AND_THEN: f64 = 0.2;
/// The rate is lower meanwhile if it is this share of what it is without the queue, or less.
const SLOWER: f64 = 0.75;

/// How a load went, medians over its runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Course {
    /// Mean rate of the last third of the window over that of the first.
    pub(crate) growth: f64,
    /// The rate rose through the window, by more than chance explains.
    pub(crate) rises: bool,
    /// How losses fell on the window: datagrams that are missing, or segments that TCP sent again. None with too few.
    pub(crate) losses: Option<LossPattern>,
    /// How the arrivals of TCP compare with its congestion window; `None` without samples, and if the runs disagree.
    pub(crate) pace: Option<Pace>,
    /// What TCP's sender says; none without one.
    pub(crate) tcp: Option<TcpCourse>,
}

/// What the senders of TCP say of their course.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TcpCourse {
    /// Share of the window's intervals with a queue on the path: round trips were longer than the shortest one.
    pub(crate) queued: f64,
    /// How much longer they were then, seconds.
    pub(crate) queue: f64,
    /// The mean rate in these intervals over that in the others; none without intervals of both kinds.
    pub(crate) rate_while_queued: Option<f64>,
    /// Bytes that waited in the send buffer of a flow and were never sent.
    pub(crate) unsent: f64,
    /// Share of the segments that were delivered with a congestion mark.
    pub(crate) marked: f64,
    /// Mean congestion window of the last third of the window over that of the first.
    pub(crate) window_growth: f64,
    /// The congestion window never shrank in it, and grew by half or more.
    pub(crate) window_rises: bool,
    /// The receiver's window never shrank in it, and grew by a tenth or more: the system was still enlarging the receiver's buffer.
    pub(crate) peer_window_rises: bool,
    /// TCP lost something since it began, warm-up included.
    pub(crate) has_lost: bool,
}

impl TcpCourse {
    /// A queue stood on the path throughout.
    pub(crate) fn queue_stands(&self) -> bool {
        self.queued >= STANDING
    }

    /// A queue stood now and then, and the rate was lower meanwhile: the path let through less then. A load that fills a queue by
    /// itself is faster than at other times.
    pub(crate) fn queue_comes_with_a_lower_rate(&self) -> bool {
        self.queued >= NOW_AND_THEN && self.rate_while_queued.is_some_and(|rate| rate <= SLOWER)
    }
}

/// What makes a longer round trip a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Floor {
    /// The shortest round trip, seconds.
    pub(crate) rtt: f64,
    /// Segments that arrive each second.
    pub(crate) segments_per_s: f64,
}

impl Floor {
    /// Whether a round trip of `rtt` seconds has passed a queue.
    pub(crate) fn is_queue(self, rtt: f64) -> bool {
        let longer = rtt - self.rtt;
        longer >= QUEUE_NOTABLE.max(QUEUE_SHARE * self.rtt) && longer * self.segments_per_s >= QUEUE_SEGMENTS
    }
}

impl Course {
    /// The course of `runs`, whose shortest round trip and rate of segments are `floor` where they are of TCP; none where no series
    /// has intervals enough.
    pub(crate) fn of(runs: &[&TrialResult], floor: Option<Floor>) -> Option<Self> {
        let courses: Vec<Self> = runs.iter().filter_map(|run| Self::of_run(run, floor)).collect();
        if courses.is_empty() {
            return None;
        }
        let tcp: Vec<&TcpCourse> = courses.iter().filter_map(|course| course.tcp.as_ref()).collect();
        let middle = |of: fn(&TcpCourse) -> f64| median(tcp.iter().map(|tcp| of(tcp)));
        Some(Self {
            growth: median(courses.iter().map(|course| course.growth)),
            rises: 2 * courses.iter().filter(|course| course.rises).count() > courses.len(),
            losses: LossPattern::of_most(courses.iter().filter_map(|course| course.losses)),
            pace: middle_pace(courses.iter().filter_map(|course| course.pace)),
            tcp: (!tcp.is_empty()).then(|| TcpCourse {
                queued: middle(|tcp| tcp.queued),
                queue: middle(|tcp| tcp.queue),
                rate_while_queued: median_of(tcp.iter().filter_map(|tcp| tcp.rate_while_queued).collect()),
                unsent: middle(|tcp| tcp.unsent),
                marked: middle(|tcp| tcp.marked),
                window_growth: middle(|tcp| tcp.window_growth),
                window_rises: 2 * tcp.iter().filter(|tcp| tcp.window_rises).count() > tcp.len(),
                peer_window_rises: 2 * tcp.iter().filter(|tcp| tcp.peer_window_rises).count() > tcp.len(),
                has_lost: tcp.iter().any(|tcp| tcp.has_lost),
            }),
        })
    }

    fn of_run(run: &TrialResult, floor: Option<Floor>) -> Option<Self> {
        let (bytes, unit) = judged_by(run.trial.task());
        let quantity = if bytes { SeriesQuantity::ReceivedBytes } else { SeriesQuantity::Operations };
        let measured = || run.series.iter().filter(|series| series.load == 0);
        let done = measured().filter_map(|one| intervals(&one.series, quantity)).max_by_key(Vec::len);
        let done = done.filter(|all| all.len() >= FEWEST)?;
        let third = done.len() / 3;
        let ((first, _), (last, _)) = (mean_rate(&done[..third], unit), mean_rate(&done[done.len() - third..], unit));
        let growth = if first == last { 1.0 } else { (last / first).min(MOST_GROWTH) };
        let thinned = done.chunks(done.len().div_ceil(MOST_RANKED));
        let trend = trend_test(&[thinned.map(mean_rate_of).collect()]);
        let senders: BTreeSet<&HostName> = transfers(run).into_iter().map(|transfer| transfer.from).collect();
        let sending =
            measured().find(|one| senders.contains(&one.host) && one.series.track(SeriesQuantity::Srtt).is_some());
        Some(Self {
            growth,
            rises: growth >= GROWN && trend.rising > trend.falling && trend.p <= BY_CHANCE,
            losses: measured().find_map(|one| losses(&one.series)),
            pace: Pace::of_run(run),
            tcp: sending.zip(floor).map(|(one, floor)| TcpCourse::of(&one.series, floor, segments(run))),
        })
    }

    /// How steady the rate was, where its range is not known.
    pub(crate) fn steadiness(&self) -> Steadiness {
        if self.rises { Steadiness::Rising { growth: self.growth } } else { Steadiness::Steady }
    }
}

impl TcpCourse {
    fn of(series: &Series, floor: Floor, segments: u64) -> Self {
        let in_window = |quantity| in_window(series, quantity);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let srtt: Vec<f64> = in_window(SeriesQuantity::Srtt).into_iter().map(|micros| micros / 1e6).collect();
        let queues: Vec<f64> = srtt.iter().filter(|rtt| floor.is_queue(**rtt)).map(|rtt| rtt - floor.rtt).collect();
        let window = in_window(SeriesQuantity::CongestionWindow);
        let third = window.len() / 3;
        let marked = in_window(SeriesQuantity::DeliveredCe).iter().sum::<f64>();
        Self {
            queued: queues.len() as f64 / srtt.len().max(1) as f64,
            queue: median(queues.iter().copied()),
            rate_while_queued: rate_while_queued(series, floor),
            unsent: mean(&in_window(SeriesQuantity::Unsent)),
            marked: marked / segments.max(1) as f64,
            window_growth: if third == 0 {
                1.0
            } else {
                mean(&window[window.len() - third..]) / mean(&window[..third]).max(1.0)
            },
            window_rises: rises(&window, 1.5),
            peer_window_rises: rises(&in_window(SeriesQuantity::PeerWindow), 1.1),
            has_lost: series.track(SeriesQuantity::Retransmits).unwrap_or_default().iter().any(|lost| *lost > 0),
        }
    }
}

/// The mean rate in the intervals of the window with a queue over that in those without; none without intervals of both kinds.
fn rate_while_queued(series: &Series, floor: Floor) -> Option<f64> {
    let [sent, srtt] = [SeriesQuantity::TransmittedBytes, SeriesQuantity::Srtt].map(|one| series.track(one));
    let (mut with, mut without) = ((0.0, 0.0), (0.0, 0.0));
    for (((bytes, micros), span), inside) in sent?.iter().zip(srtt?).zip(series.spans()).zip(series.in_window()) {
        if inside {
            let sum = if floor.is_queue(*micros as f64 / 1e6) { &mut with } else { &mut without };
            *sum = (sum.0 + *bytes as f64, sum.1 + span.seconds());
        }
    }
    let rate = |(bytes, seconds): (f64, f64)| (bytes > 0.0 && seconds > 0.0).then(|| bytes / seconds);
    Some(rate(with)? / rate(without)?)
}

/// Returns the pace of the middle run, by how far the arrivals deviate; `None` unless the path sets it in all runs or in none.
fn middle_pace(paces: impl Iterator<Item = Pace>) -> Option<Pace> {
    let mut paces: Vec<Pace> = paces.collect();
    let of_path = paces.iter().filter(|pace| pace.is_the_paths()).count();
    if of_path != 0 && of_path != paces.len() {
        return None;
    }
    paces.sort_by(|left, right| left.arrivals.deviation.total_cmp(&right.arrivals.deviation));
    paces.get(paces.len() / 2).copied()
}

/// Whether a level never fell, and grew to so many times what it was.
fn rises(values: &[f64], times: f64) -> bool {
    values.len() >= FEWEST && values.is_sorted() && values.last() >= values.first().map(|first| first * times).as_ref()
}

/// Data segments that the senders of `run` sent in the window.
fn segments(run: &TrialResult) -> u64 {
    let flows = transfers(run).into_iter().flat_map(|transfer| &transfer.sender.flows);
    flows.filter_map(|flow| flow.tcp.as_ref()).map(|tcp| tcp.segments_out).sum()
}

fn mean_rate_of(intervals: &[Interval]) -> f64 {
    let (count, seconds) = intervals.iter().fold((0.0, 0.0), |(c, s), one| (c + one.count, s + one.seconds));
    count / seconds
}

/// The values of a quantity in the intervals of the window; empty where it was not sampled.
fn in_window(series: &Series, quantity: SeriesQuantity) -> Vec<f64> {
    let track = series.track(quantity).unwrap_or_default();
    track.iter().zip(series.in_window()).filter(|(_, inside)| *inside).map(|(value, _)| *value as f64).collect()
}

/// Returns how the losses that one host counted fell on the window.
fn losses(series: &Series) -> Option<LossPattern> {
    let [lost, arrived] = [SeriesQuantity::Lost, SeriesQuantity::ReceivedMessages].map(|one| in_window(series, one));
    let spans = series.spans().zip(series.in_window()).filter(|(_, inside)| *inside);
    let seconds: Vec<f64> = spans.map(|(span, _)| span.seconds()).collect();
    LossPattern::of_datagrams(&lost, &arrived, &seconds).or_else(|| {
        let of_tcp = [SeriesQuantity::Retransmits, SeriesQuantity::TransmittedBytes];
        let [retransmitted, sent] = of_tcp.map(|one| in_window(series, one));
        LossPattern::of(&retransmitted, &sent)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::{paths_of, stream_of, trial};
    use linerate_model::{FlowCounts, SessionSeries, TcpFlow, Track, Transport};
    use linerate_units::Nanos;

    const TENTH: i64 = 100_000;

    /// A quantity of a host, as a function of the number of the interval.
    type Planted = (SeriesQuantity, &'static str, fn(u64) -> u64);

    /// A window of 2 s after a warm-up of 0.3 s, in intervals of 0.1 s.
    fn run(tracks: &[Planted]) -> TrialResult {
        let mut result = trial(1_000, 0);
        stream_of(&mut result.trial).net.transport = Transport::Tcp;
        let at_us: Vec<i64> = (-2..=20).map(|tenth| tenth * TENTH).collect();
        let series = |host: &str| {
            let of_host = tracks.iter().filter(|(_, owner, _)| *owner == host);
            let tracks = of_host.map(|(quantity, _, value)| Track {
                quantity: *quantity,
                subject: String::new(),
                values: (0..at_us.len() as u64).map(value).collect(),
            });
            let series = Series {
                window: Nanos::from_secs(2),
                from_us: -3 * TENTH,
                at_us: at_us.clone(),
                tracks: tracks.collect(),
                ..Series::default()
            };
            SessionSeries { load: 0, host: host.into(), series }
        };
        result.series = vec![series("a"), series("b")];
        result
    }

    const FLOOR: Option<Floor> = Some(Floor { rtt: 0.02, segments_per_s: 8_000.0 });

    #[test]
    fn a_queue_that_stands_is_told_from_one_that_comes_and_goes() {
        let steady: fn(u64) -> u64 = |_| 1_000_000;
        let course = |srtt| {
            let tracks = [(SeriesQuantity::ReceivedBytes, "b", steady), (SeriesQuantity::Srtt, "a", srtt)];
            Course::of(&[&run(&tracks)], FLOOR).and_then(|course| course.tcp).expect("a course of TCP")
        };
        let stands = course(|_| 50_000);
        assert!(stands.queue_stands() && (stands.queue - 0.03).abs() < 1e-9, "{stands:?}");
        let comes_and_goes = course(|at| if at % 2 == 0 { 50_000 } else { 21_000 });
        assert!(!comes_and_goes.queue_stands() && (comes_and_goes.queued - 0.5).abs() < 0.1, "{comes_and_goes:?}");
        assert_eq!(course(|_| 22_000).queued, 0.0, "2 ms of 20 are no queue");
        // A queue in the warm-up alone is not one of the window.
        assert_eq!(course(|at| if at < 3 { 90_000 } else { 20_000 }).queued, 0.0);
    }

    #[test]
    fn a_rate_that_rises_is_told_from_one_that_varies() {
        let course = |received| {
            let course = Course::of(&[&run(&[(SeriesQuantity::ReceivedBytes, "b", received)])], None);
            course.expect("a course")
        };
        let rising = course(|at| 1_000_000 + at * 100_000);
        assert!(rising.rises && rising.growth > 1.5, "{rising:?}");
        assert!(matches!(rising.steadiness(), Steadiness::Rising { .. }));
        let begins_late = course(|at| if at < 10 { 0 } else { 1_000_000 + at });
        assert!(begins_late.rises && begins_late.growth == MOST_GROWTH, "{begins_late:?}");
        let varies = course(|at| if at % 4 < 2 { 1_000_000 } else { 2_000_000 });
        assert!(!varies.rises, "{varies:?}");
        assert!(!course(|at| 3_000_000 - at * 100_000).rises, "it falls");
        assert_eq!(Course::of(&[&trial(1_000, 0)], None), None, "nothing was sampled");
    }

    #[test]
    fn a_queue_that_comes_with_a_lower_rate_is_told_from_one_that_a_burst_fills() {
        // Every other half second the round trip is three times as long.
        let srtt: fn(u64) -> u64 = |at| if at / 5 % 2 == 1 { 60_000 } else { 20_000 };
        let course = |sent: fn(u64) -> u64| {
            let tracks = [
                (SeriesQuantity::ReceivedBytes, "b", sent),
                (SeriesQuantity::TransmittedBytes, "a", sent),
                (SeriesQuantity::Srtt, "a", srtt),
            ];
            Course::of(&[&run(&tracks)], FLOOR).and_then(|course| course.tcp).expect("a course of TCP")
        };
        let alternating = course(|at| if at / 5 % 2 == 1 { 250_000 } else { 1_000_000 });
        assert_eq!(alternating.rate_while_queued, Some(0.25));
        assert!(alternating.queue_comes_with_a_lower_rate() && !alternating.queue_stands(), "{alternating:?}");
        let bursts = course(|at| if at / 5 % 2 == 1 { 1_000_000 } else { 250_000 });
        assert!(!bursts.queue_comes_with_a_lower_rate(), "{bursts:?}");
        let even = course(|_| 1_000_000);
        assert!(!even.queue_comes_with_a_lower_rate(), "{even:?}");
    }

    #[test]
    fn marks_unsent_bytes_and_windows_are_those_of_the_window() {
        let mut marked = run(&[
            (SeriesQuantity::ReceivedBytes, "b", |_| 1_000_000),
            (SeriesQuantity::Srtt, "a", |_| 20_000),
            (SeriesQuantity::Unsent, "a", |at| if at < 3 { 9_000_000 } else { 40_000 }),
            (SeriesQuantity::DeliveredCe, "a", |_| 80),
            (SeriesQuantity::CongestionWindow, "a", |at| 10 * at),
        ]);
        let flow =
            FlowCounts { tcp: Some(TcpFlow { segments_out: 16_000, ..TcpFlow::default() }), ..FlowCounts::default() };
        paths_of(&mut marked)[0].client.flows = vec![flow];
        let tcp = Course::of(&[&marked], FLOOR).and_then(|course| course.tcp).expect("a course of TCP");
        assert_eq!(tcp.unsent, 40_000.0);
        assert!((tcp.marked - 0.1).abs() < 0.01, "80 in each of 20 intervals: {tcp:?}");
        assert!(tcp.window_growth > 2.0, "{tcp:?}");
        assert!(!tcp.has_lost, "nothing was retransmitted");
    }
}

//! A series as it grows.

use super::{LatencyBuckets, Sampling, Series, SeriesQuantity as Quantity, Track};
use linerate_units::Nanos;

/// What was read at one moment: counters since any fixed moment before, and levels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readings {
    values: Vec<(Quantity, String, u64)>,
    latency: Option<Vec<u64>>,
}

impl Readings {
    /// Takes note of a quantity; several values of one quantity and subject are added up.
    pub fn add(&mut self, quantity: Quantity, subject: &str, value: u64) {
        match self.values.iter_mut().find(|(of, about, _)| *of == quantity && about == subject) {
            Some((_, _, sum)) => *sum += value,
            None => self.values.push((quantity, subject.to_owned(), value)),
        }
    }

    /// Takes note of a quantity; of several values of one quantity and subject the largest stays.
    pub fn raise(&mut self, quantity: Quantity, subject: &str, value: u64) {
        match self.values.iter_mut().find(|(of, about, _)| *of == quantity && about == subject) {
            Some((_, _, largest)) => *largest = value.max(*largest),
            None => self.values.push((quantity, subject.to_owned(), value)),
        }
    }

    /// Adds counts of response times, one for each of the [`LatencyBuckets::COUNT`] buckets, since a fixed moment.
    pub fn add_latency(&mut self, counts: impl IntoIterator<Item = u64>) {
        let sums = self.latency.get_or_insert_with(|| vec![0; LatencyBuckets::COUNT]);
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }

    /// The value of a quantity without a subject.
    pub fn get(&self, quantity: Quantity) -> Option<u64> {
        self.of(quantity).find(|(subject, _)| subject.is_empty()).map(|(_, value)| value)
    }

    /// Counts of response times by bucket; none where none are taken.
    pub fn latency(&self) -> Option<&[u64]> {
        self.latency.as_deref()
    }

    /// All subjects of a quantity with their values.
    pub fn of(&self, quantity: Quantity) -> impl Iterator<Item = (&str, u64)> {
        self.values.iter().filter(move |(of, _, _)| *of == quantity).map(|(_, subject, value)| (&subject[..], *value))
    }
}

/// Turns readings into a series, and keeps it short.
#[derive(Debug, Clone)]
pub struct SeriesBuilder {
    most_points: usize,
    /// When the first interval began, and when each ended, nanoseconds on the host's clock.
    from: u64,
    at: Vec<u64>,
    before: Readings,
    tracks: Vec<Track>,
    latency: Vec<LatencyBuckets>,
    /// Ends of intervals that are not merged with the next: the edges of the window.
    edges: Vec<u64>,
}

impl SeriesBuilder {
    /// A series that begins at `now` with `readings`.
    pub fn new(sampling: Sampling, now: u64, readings: Readings) -> Self {
        Self {
            most_points: sampling.most_points.max(4) as usize,
            from: now,
            at: Vec::new(),
            before: readings,
            tracks: Vec::new(),
            latency: Vec::new(),
            edges: Vec::new(),
        }
    }

    /// Takes what was read at `now`. Where that is an edge of the window, no interval will lie across it.
    pub fn take(&mut self, now: u64, readings: Readings, is_edge: bool) {
        let points = self.at.len();
        if is_edge {
            self.edges.push(now);
        }
        self.at.push(now);
        for (quantity, subject, value) in &readings.values {
            let then = self.before.values.iter().find(|(of, about, _)| of == quantity && about == subject);
            let value = match then {
                _ if quantity.is_level() => *value,
                Some((_, _, then)) => value.saturating_sub(*then),
                // A new thread or interface began to count at zero.
                None => *value,
            };
            self.track(*quantity, subject, points).values.push(value);
        }
        for track in &mut self.tracks {
            track.values.resize(points + 1, 0);
        }
        if let Some(counts) = &readings.latency {
            let zero = Vec::new();
            let then = self.before.latency.as_ref().unwrap_or(&zero).iter().copied().chain(std::iter::repeat(0));
            let grown: Vec<u64> = counts.iter().zip(then).map(|(now, then)| now.saturating_sub(then)).collect();
            self.latency.resize(points, LatencyBuckets::default());
            self.latency.push(LatencyBuckets::of(&grown));
        } else if !self.latency.is_empty() {
            self.latency.push(LatencyBuckets::default());
        }
        self.before = readings;
        if self.at.len() > self.most_points {
            self.halve();
        }
    }

    fn track(&mut self, quantity: Quantity, subject: &str, points: usize) -> &mut Track {
        let is = |track: &Track| track.quantity == quantity && track.subject == subject;
        let found = self.tracks.iter().position(is).unwrap_or_else(|| {
            self.tracks.push(Track { quantity, subject: subject.to_owned(), values: vec![0; points] });
            self.tracks.len() - 1
        });
        &mut self.tracks[found]
    }

    /// Merges neighbours pairwise, but not across an edge.
    fn halve(&mut self) {
        let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
        let mut next = 0;
        while next < self.at.len() {
            let pair = next + 1 < self.at.len() && !self.edges.contains(&self.at[next]);
            let end = next + if pair { 2 } else { 1 };
            groups.push(next..end);
            next = end;
        }
        let begins: Vec<u64> = std::iter::once(self.from).chain(self.at.iter().copied()).collect();
        for track in &mut self.tracks {
            let (quantity, values) = (track.quantity, std::mem::take(&mut track.values));
            track.values = groups
                .iter()
                .map(|group| {
                    let lengths = group.clone().map(|at| begins[at + 1] - begins[at]);
                    merged(quantity, &values[group.clone()], lengths)
                })
                .collect();
        }
        if !self.latency.is_empty() {
            let all = std::mem::take(&mut self.latency);
            self.latency = groups
                .iter()
                .map(|group| {
                    let mut sum = all[group.start].clone();
                    all[group.start + 1..group.end].iter().for_each(|next| sum.merge(next));
                    sum
                })
                .collect();
        }
        self.at = groups.iter().map(|group| self.at[group.end - 1]).collect();
    }

    /// The series, of a window that opened and closed at these times. Tracks that were zero throughout are left out, and of cores,
    /// threads and ports only the busiest are kept.
    pub fn finish(mut self, opened: u64, closed: u64) -> Series {
        self.tracks.retain(|track| track.values.iter().any(|value| *value > 0));
        self.tracks.sort_by(|one, other| (one.quantity, &one.subject).cmp(&(other.quantity, &other.subject)));
        let totals = |track: &Track| track.values.iter().sum::<u64>();
        let mut kept = Vec::new();
        for group in self.tracks.chunk_by(|one, other| one.quantity == other.quantity) {
            let mut places: Vec<usize> = (0..group.len()).collect();
            if let Some(most) = group[0].quantity.most_subjects() {
                places.sort_by_key(|place| std::cmp::Reverse(totals(&group[*place])));
                places.truncate(most);
                places.sort_unstable();
            }
            kept.extend(places.into_iter().map(|place| group[place].clone()));
        }
        let since_open = |at: u64| (i128::from(at) - i128::from(opened)).div_euclid(1_000) as i64;
        Series {
            opened_ns: opened,
            window: Nanos::new(closed.saturating_sub(opened)),
            from_us: since_open(self.from),
            at_us: self.at.iter().map(|at| since_open(*at)).collect(),
            tracks: kept,
            latency: self.latency,
        }
    }
}

/// The value of merged points: counters add up, levels are weighed by time or the largest stands for all.
fn merged(quantity: Quantity, values: &[u64], lengths: impl Iterator<Item = u64>) -> u64 {
    if !quantity.is_level() {
        return values.iter().sum();
    }
    if quantity.keeps_the_largest() {
        return values.iter().copied().max().unwrap_or_default();
    }
    let (mut sum, mut time) = (0u128, 0u128);
    for (value, length) in values.iter().zip(lengths) {
        let length = u128::from(length.max(1));
        sum += u128::from(*value) * length;
        time += length;
    }
    u64::try_from(sum / time.max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Nanos;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn readings(values: &[(Quantity, &str, u64)]) -> Readings {
        let mut readings = Readings::default();
        values.iter().for_each(|(quantity, subject, value)| readings.add(*quantity, subject, *value));
        readings
    }

    fn sampling(most_points: u32) -> Sampling {
        Sampling { period: Nanos::from_millis(100), most_points }
    }

    #[test]
    fn counters_become_growth_and_levels_stay() {
        let sent = Quantity::SentBytes;
        let mut builder = SeriesBuilder::new(sampling(100), 1_000 * MS, readings(&[(sent, "", 50)]));
        builder.take(1_100 * MS, readings(&[(sent, "", 150), (Quantity::Srtt, "", 7)]), true);
        builder.take(
            1_200 * MS,
            readings(&[(sent, "", 150), (Quantity::Srtt, "", 9), (Quantity::ThreadCpu, "send 0", 3)]),
            false,
        );
        let series = builder.finish(1_100 * MS, 1_200 * MS);
        assert_eq!((series.from_us, &series.at_us[..]), (-100_000, &[0, 100_000][..]));
        assert_eq!(series.in_window().collect::<Vec<_>>(), [false, true]);
        assert_eq!(series.track(sent), Some(&[100, 0][..]));
        assert_eq!(series.track(Quantity::Srtt), Some(&[7, 9][..]));
        assert_eq!(series.tracks_of(Quantity::ThreadCpu).next().map(|track| &track.values[..]), Some(&[0, 3][..]));
        assert_eq!(series.per_second(sent), [1_000.0, 0.0]);
    }

    #[test]
    fn what_stays_zero_is_left_out_and_only_the_busiest_cores_are_kept() {
        let all: Vec<(Quantity, String, u64)> =
            (0..20u64).map(|core| (Quantity::CoreUser, core.to_string(), core * 100)).collect();
        let borrowed: Vec<_> = all.iter().map(|(quantity, subject, value)| (*quantity, &subject[..], *value)).collect();
        let mut builder = SeriesBuilder::new(sampling(100), 0, Readings::default());
        builder.take(MS, readings(&borrowed), false);
        builder.take(2 * MS, readings(&[(Quantity::Retransmits, "", 0)]), false);
        let series = builder.finish(0, 2 * MS);
        let kept: Vec<&str> = series.tracks.iter().map(|track| &track.subject[..]).collect();
        assert_eq!(kept, ["12", "13", "14", "15", "16", "17", "18", "19"]);
    }

    #[test]
    fn an_edge_of_the_window_is_never_merged_away() {
        let mut builder = SeriesBuilder::new(sampling(8), 0, Readings::default());
        for point in 1..=100u64 {
            builder.take(point * MS, readings(&[(Quantity::SentBytes, "", point * 10)]), point == 7 || point == 90);
        }
        let series = builder.finish(7 * MS, 90 * MS);
        assert!(series.len() <= 9, "{} points", series.len());
        assert!(series.at_us.contains(&0) && series.at_us.contains(&83_000), "{:?}", series.at_us);
    }

    #[test]
    fn response_times_are_those_of_the_interval() {
        let counts =
            |bucket: usize, count| (0..LatencyBuckets::COUNT).map(move |at| if at == bucket { count } else { 0 });
        let mut first = Readings::default();
        first.add_latency(counts(40, 5));
        let mut second = first.clone();
        second.add_latency(counts(50, 2));
        let mut builder = SeriesBuilder::new(sampling(100), 0, first);
        builder.take(MS, second, false);
        let series = builder.finish(0, MS);
        assert_eq!(series.latency.iter().map(LatencyBuckets::count).collect::<Vec<_>>(), [2]);
    }

    proptest! {
        /// However often points are merged, nothing is lost, and time goes on.
        #[test]
        fn merging_keeps_sums(growth in prop::collection::vec(0u64..1_000, 1..400), most in 4u32..40) {
            let mut builder = SeriesBuilder::new(sampling(most), 0, readings(&[(Quantity::SentBytes, "", 0)]));
            let mut total = 0;
            for (point, grown) in growth.iter().enumerate() {
                total += grown;
                builder.take((point as u64 + 1) * MS, readings(&[(Quantity::SentBytes, "", total)]), false);
            }
            let series = builder.finish(0, growth.len() as u64 * MS);
            prop_assert!(series.len() <= most as usize);
            prop_assert_eq!(series.track(Quantity::SentBytes).map_or(0, |values| values.iter().sum()), total);
            prop_assert!(series.at_us.is_sorted() && series.at_us.last() == Some(&(growth.len() as i64 * 1_000)));
        }
    }
}

//! Axes of charts: scales, ticks and titles.

use crate::figures::{nanos, prefix};
use crate::language::Language;
use crate::said;

/// Scale that turns values into places on an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// From zero to the value.
    Linear(f64),
    /// From the one value to the other.
    Between(f64, f64),
    /// Logarithmic between two values above zero.
    Log(f64, f64),
    /// Shares at or below, by their nines: 90 %, 99 %, 99.9 % are equally far apart. So many nines.
    Nines(f64),
}

impl Scale {
    /// The place of `value` between 0 and 1; what lies outside is drawn at the edge.
    pub(crate) fn place(self, value: f64) -> f64 {
        let place = match self {
            Self::Linear(top) => value / top,
            Self::Between(low, high) => (value - low) / (high - low),
            Self::Log(low, high) => (value.max(low) / low).ln() / (high / low).ln(),
            Self::Nines(most) => -(1.0 - value.clamp(0.0, 1.0)).max(1e-12).log10() / most,
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// A linear scale with room above `most`, ending at a round number.
    pub fn up_to(most: f64) -> Self {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        Self::Linear((most / step(most)).ceil() * step(most))
    }
}

/// An axis: its title, its scale, and where it says what.
pub struct Axis {
    pub title: String,
    pub scale: Scale,
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis from zero past `most`, in the prefix that fits.
    pub fn rate(lang: Language, what: impl Into<String>, unit: &str, most: f64) -> Self {
        let scale = Scale::up_to(most);
        let Scale::Linear(top) = scale else { unreachable!("up_to is linear") };
        let (one, prefix) = prefix(top);
        let ticks = marks(most, top).map(|value| (value, trimmed(value / one))).collect();
        Self { title: Self::titled(lang, &what.into(), &format!("{prefix}{unit}")), scale, ticks }
    }

    /// A linear axis of times from zero past `most`, nanoseconds.
    pub fn time(what: impl Into<String>, most: f64) -> Self {
        let scale = Scale::up_to(most);
        let Scale::Linear(top) = scale else { unreachable!("up_to is linear") };
        // Zero has no unit, as on the other axes.
        let text = |value: f64| if value > 0.0 { nanos(value.round() as u64) } else { "0".to_owned() };
        let ticks = marks(most, top).map(|value| (value, text(value))).collect();
        Self { title: what.into(), scale, ticks }
    }

    /// A linear axis of shares from zero past `most`, in percent.
    pub fn share(lang: Language, what: &str, most: f64) -> Self {
        let scale = Scale::up_to(most);
        let Scale::Linear(top) = scale else { unreachable!("up_to is linear") };
        let ticks = marks(most, top).map(|value| (value, trimmed(value * 100.0))).collect();
        Self { title: Self::titled(lang, what, "%"), scale, ticks }
    }

    /// The title of an axis: what it shows, and in which unit.
    pub fn titled(lang: Language, what: &str, unit: &str) -> String {
        if unit.is_empty() { what.to_owned() } else { [what, unit].join(&said!(lang, "list-comma", ", ")) }
    }

    /// A linear axis around what lies between `low` and `high`, near each other and maybe far from zero. `one` is the value of its
    /// unit.
    pub(crate) fn around(lang: Language, what: &str, (one, unit): (f64, &str), low: f64, high: f64) -> Self {
        // What is all the same is not drawn as if it were far apart.
        let room = ((high - low) * 0.05).max(if high > 0.0 { high * 0.01 } else { one });
        let low = (low - room).max(0.0);
        let high = high + room;
        let step = step(high - low);
        let first = (low / step).floor();
        let last = (high / step).ceil();
        let counts = first as i64..=last as i64;
        let ticks = counts.map(|count| count as f64 * step).map(|value| (value, trimmed(value / one))).collect();
        Self { title: Self::titled(lang, what, unit), scale: Scale::Between(first * step, last * step), ticks }
    }

    /// A linear axis of seconds from `low` to `high`.
    pub(crate) fn seconds(title: impl Into<String>, low: f64, high: f64) -> Self {
        let step = step((high - low).max(f64::MIN_POSITIVE));
        let counts = (low / step).ceil() as i64..=(high / step * 1.000_1).floor() as i64;
        let ticks = counts.map(|count| count as f64 * step).map(|value| (value, trimmed(value))).collect();
        Self { title: title.into(), scale: Scale::Between(low, high), ticks }
    }
}

/// The sizes measured, less those that would be written over their neighbour.
pub fn size_ticks(sizes: &[u64], low: f64, high: f64) -> Vec<(f64, String)> {
    const CLOSEST: f64 = 0.055;
    let mut ticks: Vec<(f64, String)> = Vec::new();
    for size in sizes.iter().rev() {
        let value = *size as f64;
        let apart = ticks.last().is_none_or(|(other, _)| (other / value).ln() / (high / low).ln() > CLOSEST);
        if apart {
            ticks.push((value, size.to_string()));
        }
    }
    ticks
}

/// Past this ratio of the highest value to the lowest a linear axis would hide the lowest.
const LINEAR_REACH: f64 = 100.0;

/// A logarithmic axis of durations with ticks at 1, 2 and 5.
pub(crate) fn latency_axis(lang: Language, low: f64, high: f64) -> Axis {
    let (low, high) = (low / 1.15, (high * 1.15).max(low * 2.0));
    let rounds =
        |parts: &'static [f64]| (0..12).flat_map(move |power| parts.iter().map(move |part| part * 10f64.powi(power)));
    let inside = |value: &f64| (low..=high).contains(value);
    let fine: Vec<f64> = rounds(&[1.0, 2.0, 5.0]).filter(inside).collect();
    let ticks = if fine.len() <= 10 { fine } else { rounds(&[1.0]).filter(inside).collect() };
    Axis {
        title: said!(lang, "charts-axis-latency", "latency (logarithmic)"),
        scale: Scale::Log(low, high),
        ticks: ticks.into_iter().map(|value| (value, nanos(value as u64))).collect(),
    }
}

/// An axis of rates from zero, or where the highest value would hide the lowest, logarithmic.
pub fn rate_axis(lang: Language, title: String, unit: &str, low: f64, high: f64) -> Axis {
    if high / low <= LINEAR_REACH || !(low > 0.0 && high.is_finite()) {
        return Axis::rate(lang, title, unit, high);
    }
    let low = 10f64.powf(low.log10().floor());
    let high = 10f64.powf(high.log10().ceil());
    let powers = low.log10().round() as i32..=high.log10().round() as i32;
    let tick = |value: f64| {
        let (one, prefix) = prefix(value);
        (value, format!("{} {prefix}{unit}", (value / one).round()))
    };
    Axis {
        title: said!(lang, "charts-axis-logarithmic", "{axis} (logarithmic)", axis = title),
        scale: Scale::Log(low, high),
        ticks: powers.map(|power| tick(10f64.powi(power))).collect(),
    }
}

/// The lowest of values above zero.
pub fn lowest(values: impl Iterator<Item = f64>) -> f64 {
    values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min)
}

/// A round step that divides `most` into four to eight parts.
fn step(most: f64) -> f64 {
    let power = 10f64.powf((most / 8.0).log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|round| round * power).find(|step| most / step <= 8.0).unwrap_or(power)
}

/// The round values from zero to the axis' end.
fn marks(most: f64, top: f64) -> impl Iterator<Item = f64> {
    let step = step(most.max(f64::MIN_POSITIVE));
    (0..=8).map(move |index| f64::from(index) * step).take_while(move |value| *value <= top * 1.000_1)
}

/// A number without zeros at its end.
pub(crate) fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_on_the_axis() {
        for scale in [Scale::up_to(941e6), Scale::Between(930e6, 950e6), Scale::Log(64.0, 1472.0), Scale::Nines(4.0)] {
            for value in [f64::NAN, f64::INFINITY, -1.0, 0.0, 0.999, 1e3, 1e30] {
                assert!((0.0..=1.0).contains(&scale.place(value)), "{scale:?} {value}");
            }
        }
        assert!((Scale::Nines(4.0).place(0.99) - 0.5).abs() < 1e-9);
        assert!((Scale::Log(64.0, 1024.0).place(256.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn axes_end_at_round_numbers_past_the_most() {
        for most in [0.0, 1.0, 94.1, 957e6, 9.41e9, 1.0001e9] {
            let axis = Axis::rate(Language::English, "payload", "bit/s", most);
            let Scale::Linear(top) = axis.scale else { panic!("not linear") };
            assert!(top >= most && top <= most * 1.4 + 1.0, "{most}: {top}");
            assert!((4..=9).contains(&axis.ticks.len()), "{most}: {:?}", axis.ticks);
        }
        assert_eq!(Axis::rate(Language::English, "payload", "bit/s", 957e6).title, "payload, Gbit/s");
        assert_eq!(Axis::rate(Language::Japanese, "payload", "bit/s", 957e6).title, "payload\u{3001}Gbit/s");
        assert_eq!(Axis::share(Language::Japanese, "lost", 0.1).title, "lost\u{3001}%");
        assert_eq!(Axis::around(Language::Japanese, "share", (0.01, "%"), 0.9, 1.1).title, "share\u{3001}%");
        assert_eq!(Axis::rate(Language::English, "held", "", 9.0).title, "held", "a count has no unit");
        let times: Vec<String> = Axis::time("buffer", 426e3).ticks.into_iter().map(|(_, text)| text).collect();
        assert_eq!(times, ["0", "100 us", "200 us", "300 us", "400 us", "500 us"]);
    }

    #[test]
    fn seconds_may_begin_before_zero() {
        let axis = Axis::seconds("s", -0.52, 2.0);
        let texts: Vec<&str> = axis.ticks.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["-0.5", "0", "0.5", "1", "1.5", "2"]);
        assert!(axis.scale.place(-0.52) == 0.0 && axis.scale.place(2.0) == 1.0);
    }

    #[test]
    fn an_axis_around_values_does_not_begin_at_zero() {
        for (low, high) in [(940.1e6, 941.7e6), (94e6, 94e6), (0.0, 0.0), (1e3, 9.4e9)] {
            let axis = Axis::around(Language::English, "payload", (1e6, "Mbit/s"), low, high);
            let Scale::Between(from, to) = axis.scale else { panic!("not between") };
            assert!(from <= low && high <= to && from >= 0.0 && to > from, "{low} {high}: {from} {to}");
            assert!((2..=11).contains(&axis.ticks.len()), "{low} {high}: {:?}", axis.ticks);
        }
        let axis = Axis::around(Language::English, "payload", (1e6, "Mbit/s"), 940.1e6, 941.7e6);
        assert_eq!(axis.title, "payload, Mbit/s");
        let Scale::Between(from, to) = axis.scale else { panic!("not between") };
        // 1 % around them at the least: what hardly differs is not made to look as if it did.
        assert!(from > 900e6 && to < 980e6 && to - from >= 0.02 * 940e6, "{from} {to}");
    }
}

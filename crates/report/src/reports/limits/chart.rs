//! Payload share of the line against message size, a line for each stack that differs.

use super::{LimitCell, Limits, bits, name};
use crate::blocks::axis::{Axis, Scale, size_ticks};
use crate::blocks::chart::{Chart, SERIES};
use crate::blocks::columns;
use crate::blocks::drawing::{Drawing, Point, Series};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::percent;
use crate::language::Language;
use crate::{said, wording};
use linerate_model::{Layer, Stack, Transport};
use linerate_units::grouped;

/// Sizes drawn unless others are asked for: past every usual MTU but that of classical IP.
const RANGE: (u64, u64) = (64, 8_192);
/// Sizes that the axis names, and that are marked if none were chosen.
const USUAL: [u64; 8] = [64, 128, 256, 512, 1_024, 1_472, 4_096, 8_192];
/// Sizes between the lowest and the highest: near enough to each other to show where a cell more begins.
const STEPS: u32 = 1_200;

/// Stacks with the same share of payload in every message.
struct Curve {
    stacks: Vec<Stack>,
    line: Vec<(u64, f64)>,
    tcp: f64,
}

impl Curve {
    fn of(stack: &Stack, sizes: &[u64]) -> Option<Self> {
        let share = |size: &u64| Some((*size, LimitCell::udp(stack, *size).ok()?.carried.share_of_line()));
        let line: Vec<(u64, f64)> = sizes.iter().filter_map(share).collect();
        let tcp = LimitCell::tcp(stack).ok()?.carried.share_of_line();
        (!line.is_empty()).then(|| Self { stacks: vec![stack.clone()], line, tcp })
    }

    fn is_as(&self, other: &Self) -> bool {
        // OC-12c's capacity is a rounded share of its line.
        let alike = |(one, next): (&(u64, f64), &(u64, f64))| one.0 == next.0 && (one.1 - next.1).abs() < 1e-9;
        self.line.len() == other.line.len() && self.line.iter().zip(&other.line).all(alike)
    }

    /// `10BASE-T to 800GBASE-R`, or each stack's name.
    fn name(&self, lang: Language) -> String {
        let names: Vec<String> = self.stacks.iter().map(name).collect();
        match names.as_slice() {
            [first, .., last] if names.len() > 3 => {
                said!(lang, "limits-chart-range", "{first} to {last}", first = first, last = last)
            }
            names => wording::listed(lang, names),
        }
    }
}

impl Limits {
    /// The chart.
    pub(super) fn chart(&self, lang: Language) -> Chart {
        let (low, high) = self.range();
        let asked = self.asked();
        let sizes = sizes(low, high, &asked);
        let mut curves: Vec<Curve> = Vec::new();
        for curve in self.stacks().filter_map(|cells| Curve::of(&cells[0].stack, &sizes)) {
            match curves.iter_mut().find(|known| known.is_as(&curve)) {
                Some(known) => known.stacks.extend(curve.stacks),
                None => curves.push(curve),
            }
        }
        let legend = SERIES.iter().zip(&curves).map(|(class, curve)| {
            (
                *class,
                said!(
                    lang,
                    "limits-chart-legend-tcp",
                    "{name}; TCP {tcp}",
                    name = curve.name(lang),
                    tcp = percent(curve.tcp).unwrap_or_default()
                ),
            )
        });
        let series = SERIES.iter().zip(&curves).map(|(class, curve)| Series {
            class,
            line: curve.line.iter().map(|(size, share)| (*size as f64, *share)).collect(),
            points: curve.points(lang, &asked),
        });
        let mut ticks = [&asked[..], &USUAL].concat();
        ticks.retain(|size| (low..=high).contains(size));
        ticks.sort_unstable();
        let low = low as f64 / 1.12;
        let high = high as f64 * 1.12;
        let x = Axis {
            title: said!(lang, "limits-chart-axis-message", "UDP message, bytes of payload (logarithmic)"),
            scale: Scale::Log(low, high),
            ticks: size_ticks(&ticks, low, high),
        };
        let y = Axis {
            title: said!(lang, "limits-chart-axis-share", "payload, share of the line"),
            scale: Scale::Linear(1.0),
            ticks: (0..=5).map(|fifth| (f64::from(fifth) / 5.0, format!("{} %", fifth * 20))).collect(),
        };
        let title = match curves.len() {
            drawn if drawn > SERIES.len() => {
                said!(
                    lang,
                    "limits-chart-title-first",
                    "Payload as a share of the line, by message size: {value} of {drawn} lines, the table has all",
                    value = SERIES.len(),
                    drawn = drawn
                )
            }
            _ => said!(lang, "limits-chart-title", "Payload as a share of the line, by message size"),
        };
        let drawing = Drawing::Lines { x, y, series: series.collect() };
        Chart { legend: legend.collect(), drawing, table: table(lang, &title, &curves, &asked), title }
    }

    /// Lowest and highest size drawn.
    fn range(&self) -> (u64, u64) {
        let udp =
            self.cells.iter().filter(|cell| cell.transport == Transport::Udp).map(|cell| cell.message_bytes.max(1));
        match (udp.clone().min(), udp.max()) {
            (Some(low), Some(high)) => (low.min(RANGE.0), high.max(RANGE.1)),
            _ => RANGE,
        }
    }

    /// Sizes that get a mark: those asked for, or the usual.
    fn asked(&self) -> Vec<u64> {
        let udp =
            self.cells.iter().filter(|cell| cell.transport == Transport::Udp).map(|cell| cell.message_bytes.max(1));
        let mut sizes: Vec<u64> = udp.collect();
        if self.overview || sizes.is_empty() {
            sizes.extend(USUAL);
        }
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

impl Curve {
    fn points(&self, lang: Language, asked: &[u64]) -> Vec<Point> {
        let asked = self.line.iter().filter(|(size, _)| asked.contains(size));
        let point = |(size, share): &(u64, f64)| {
            let most = self.stacks.iter().filter_map(|stack| LimitCell::udp(stack, *size).ok());
            // Of a dozen rates the first two are enough.
            let most: Vec<String> = most.take(2).map(|cell| bits(cell.carried.rate(Layer::Payload), 5)).collect();
            let more = if self.stacks.len() > 2 { " ..." } else { "" };
            let label = said!(
                lang,
                "limits-chart-point",
                "{name}, UDP {size}: {share} of the line, {most}{more} payload",
                name = self.name(lang),
                size = size,
                share = percent(*share).unwrap_or_default(),
                most = most.join(", "),
                more = more
            );
            Point { x: *size as f64, y: *share, spread: None, label }
        };
        asked.map(point).collect()
    }
}

/// The sizes to draw: evenly on a logarithmic axis, and those asked for.
fn sizes(low: u64, high: u64, asked: &[u64]) -> Vec<u64> {
    let ratio = high as f64 / low as f64;
    let even = (0..=STEPS).map(|step| (low as f64 * ratio.powf(f64::from(step) / f64::from(STEPS))).round() as u64);
    let mut sizes: Vec<u64> = even.chain(asked.iter().copied()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The marked points.
fn table(lang: Language, caption: &str, curves: &[Curve], asked: &[u64]) -> Table {
    let rows = curves.iter().flat_map(|curve| {
        let marked = curve.line.iter().filter(|(size, _)| asked.contains(size));
        let udp = marked.map(|(size, share)| vec![Some(curve.name(lang)), Some(grouped(*size)), percent(*share)]);
        udp.chain([vec![Some(curve.name(lang)), Some("TCP".to_owned()), percent(curve.tcp)]]).collect::<Vec<_>>()
    });
    Table {
        caption: caption.to_owned(),
        columns: vec![
            columns::MEDIUM,
            column!("column-limits-chart-message-b", "message, B", "bytes of a UDP message; TCP in full segments"),
            column!("column-limits-chart-of-line", "of line", "the payload as a share of the medium's line"),
        ],
        rows: rows.collect(),
    }
}

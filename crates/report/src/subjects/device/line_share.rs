//! The throughput of a device in one chart: for each frame size its share of what the line carries, what the tester reaches
//! alone, and where frames were lost (RFC 2544 section 26.1).

use crate::blocks::axis::Axis;
use crate::blocks::chart::{Chart, SERIES};
use crate::blocks::columns;
use crate::blocks::drawing::{Bar, Drawing, Segment};
use crate::blocks::table::Table;
use crate::figures::{per_second, percent};
use crate::language::Language;
use crate::said;
use crate::subjects::device::cells::{line_frames, named, streams_together};
use crate::wording::firmness;
use linerate_model::{DeviceFound, DevicePlan, Throughput};

/// Returns the chart, `None` if the rate of the line, or of a size, is unknown.
pub(crate) fn chart(lang: Language, plan: &DevicePlan, outcome: &DeviceFound) -> Option<Chart> {
    let cells: Vec<Sized<'_>> = outcome.throughput.iter().map(|cell| Sized::of(plan, cell)).collect::<Option<_>>()?;
    if cells.is_empty() {
        return None;
    }
    let ways = streams_together(lang, plan);
    let title = format!(
        "{}{ways}",
        said!(lang, "line-share-title", "Throughput as a share of the line (RFC 2544 section 26.1)")
    );
    let mut legend = vec![(SERIES[0], said!(lang, "device-charts-legend-throughput", "the highest rate without loss"))];
    if cells.iter().any(|cell| cell.tester.is_some()) {
        legend
            .push(("tester", said!(lang, "charts-legend-tester-limit", "what the tester reaches without the device")));
    }
    if cells.iter().any(|cell| cell.loses.is_some()) {
        legend.push((SERIES[1], said!(lang, "line-share-legend-loses", "the lowest rate at which frames were lost")));
    }
    let bars: Vec<Bar> = cells.iter().map(|cell| cell.bar(lang)).collect();
    let row = |cell: &Sized<'_>| {
        vec![
            Some(named(cell.of)),
            percent(cell.share).map(|share| firmness::shown(share, cell.of.firmness)),
            cell.tester.and_then(percent),
            cell.loses.and_then(percent),
            Some(lang.text(cell.of.limit.text())),
        ]
    };
    let table = Table {
        caption: title.clone(),
        columns: vec![columns::FRAME_B, columns::OF_LINE, columns::TESTER, columns::DEVICE_LOSES_AT, columns::LIMIT],
        rows: cells.iter().map(row).collect(),
    };
    // A trial at the line's rate may exceed the calculated one by some frames.
    let farthest =
        |cell: &Sized<'_>| [Some(cell.share), cell.tester, cell.loses].into_iter().flatten().fold(1.0, f64::max);
    let highest = cells.iter().map(farthest).fold(1.0, f64::max);
    let highest = if highest < 1.01 { 1.0 } else { highest };
    let x = Axis::rate(lang, said!(lang, "line-share-axis", "share of what the line carries"), "%", highest * 100.0);
    Some(Chart { drawing: Drawing::Bars { x, bars }, table, title, legend })
}

/// A frame size with its rates as shares of what the line carries.
struct Sized<'a> {
    of: &'a Throughput,
    /// Frames a second that the line carries.
    line: f64,
    share: f64,
    tester: Option<f64>,
    /// The lowest rate at which frames were lost.
    loses: Option<f64>,
}

impl<'a> Sized<'a> {
    fn of(plan: &DevicePlan, of: &'a Throughput) -> Option<Self> {
        let line = line_frames(plan, of.frame_bytes).filter(|line| *line > 0.0)?;
        let share = |frames: f64| Some(frames / line).filter(|share| share.is_finite());
        Some(Self {
            of,
            line,
            share: share(of.frames_per_s)?,
            // What the tester reaches beyond the line says nothing more.
            tester: of.tester_limit.as_ref().and_then(|limit| share(limit.frames_per_s)).map(|share| share.min(1.0)),
            loses: of.lost_at_frames_per_s.and_then(share),
        })
    }

    fn bar(&self, lang: Language) -> Bar {
        let frames = |share: f64| per_second(share * self.line).unwrap_or_default();
        let shown = percent(self.share).unwrap_or_default();
        let limit = lang.text(self.of.limit.text());
        let label = said!(
            lang,
            "line-share-point",
            "{bytes}-byte frames: {share} of the line, {rate} of {line} frames/s; limit: {limit}",
            bytes = named(self.of),
            share = firmness::told(lang, shown.clone(), self.of.firmness),
            rate = frames(self.share),
            line = frames(1.0),
            limit = limit
        );
        let tester = self.tester.map(|share| Segment {
            class: "tester",
            value: share * 100.0,
            label: said!(
                lang,
                "device-charts-point-tester",
                "{bytes}-byte frames: the tester reaches {rate} without the device",
                bytes = named(self.of),
                rate = frames(share)
            ),
        });
        let loses = self.loses.map(|share| Segment {
            class: SERIES[1],
            value: share * 100.0,
            label: said!(
                lang,
                "line-share-point-loses",
                "{bytes}-byte frames: frames were lost at {rate} frames/s",
                bytes = named(self.of),
                rate = frames(share)
            ),
        });
        Bar {
            name: named(self.of),
            segments: vec![Segment { class: SERIES[0], value: self.share * 100.0, label }],
            spread: None,
            limits: tester.into_iter().chain(loses).collect(),
            figure: format!("{}, {limit}", firmness::shown(shown, self.of.firmness)),
        }
    }
}

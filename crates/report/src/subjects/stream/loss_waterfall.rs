//! Loss of a stream's datagrams as a waterfall: how many were offered, how many were left after each part of the path,
//! and what each part lost.

use crate::blocks::axis::Axis;
use crate::blocks::chart::{Chart, SERIES};
use crate::blocks::drawing::{Bar, Drawing, Segment};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{counted_share, grouped, plain};
use crate::language::Language;
use crate::said;
use linerate_model::{Loss, Measurement};
use linerate_units::Ratio;

/// A part of the path, and the datagrams that it lost.
struct Part {
    /// Name of the datagrams that reach its end.
    name: String,
    lost: u64,
}

/// Returns the chart of one result, `None` if nothing was lost.
pub(crate) fn chart(lang: Language, result: &Measurement) -> Option<Chart> {
    let loss = result.loss().filter(|loss| loss.lost > 0 && loss.of >= loss.lost)?;
    let title = said!(lang, "waterfall-title", "Where datagrams were lost: {name}", name = plain(&result.name));
    let mut left = loss.of;
    let mut bars = vec![Bar {
        name: said!(lang, "waterfall-offered", "offered"),
        segments: vec![left_over(lang, &said!(lang, "waterfall-offered", "offered"), left, loss.of)],
        spread: None,
        limits: Vec::new(),
        figure: grouped(left),
    }];
    let mut rows = vec![vec![Some(said!(lang, "waterfall-offered", "offered")), Some(grouped(left)), None, None]];
    for part in parts(lang, loss) {
        left = left.saturating_sub(part.lost);
        let share = counted_share(Ratio::new(part.lost, loss.of));
        let lost = (part.lost > 0).then(|| grouped(part.lost));
        let figure = match lost.as_ref().zip(share.as_ref()) {
            Some((lost, share)) => said!(
                lang,
                "waterfall-figure",
                "{left}; {lost} lost ({share})",
                left = grouped(left),
                lost = lost,
                share = share
            ),
            None => grouped(left),
        };
        let mut segments = vec![left_over(lang, &part.name, left, loss.of)];
        if let Some((lost, share)) = lost.as_ref().zip(share.as_ref()) {
            let label = said!(
                lang,
                "waterfall-point-lost",
                "{name}: {lost} datagrams lost before ({share} of those offered)",
                name = part.name,
                lost = lost,
                share = share
            );
            segments.push(Segment { class: "widest", value: percent(part.lost, loss.of), label });
        }
        rows.push(vec![Some(part.name.clone()), Some(grouped(left)), lost.clone(), share.filter(|_| lost.is_some())]);
        bars.push(Bar { name: part.name, segments, spread: None, limits: Vec::new(), figure });
    }
    let legend = vec![
        (SERIES[0], said!(lang, "waterfall-legend-left", "datagrams that came so far")),
        ("widest", said!(lang, "waterfall-legend-lost", "lost on the way there")),
    ];
    let columns = [
        column!("column-waterfall-part", "part of the path", "in the order in which datagrams pass"),
        column!("column-waterfall-left", "left", "datagrams that came so far"),
        column!("column-waterfall-lost", "lost", "datagrams lost on the way there"),
        column!("column-waterfall-share", "of offered", "the same as a share of those offered"),
    ];
    let table = Table { caption: title.clone(), columns: columns.into(), rows };
    let x = Axis::rate(lang, said!(lang, "charts-axis-share-lost", "share of the datagrams offered"), "%", 100.0);
    Some(Chart { drawing: Drawing::Bars { x, bars }, table, title, legend })
}

/// Returns the parts of the path in their order, then the losses of unknown place if there are any.
fn parts(lang: Language, loss: &Loss) -> Vec<Part> {
    let places = loss.places;
    let part = |name, lost| Part { name, lost };
    let mut all = vec![
        part(said!(lang, "waterfall-sent", "sent"), places.not_sent),
        part(said!(lang, "waterfall-left-host", "left the sender"), places.sender_filter + places.sender_queue),
        part(said!(lang, "waterfall-crossed", "reached the receiver"), places.unaccounted + places.corrupted),
        part(
            said!(lang, "waterfall-kernel", "passed its kernel"),
            places.receiver_queue + places.receiver_filter + places.reassembly,
        ),
        part(said!(lang, "waterfall-socket", "read by the program"), places.socket_buffer),
    ];
    let unplaced = loss.lost.saturating_sub(places.sum());
    if unplaced > 0 {
        all.push(part(said!(lang, "waterfall-received", "received"), unplaced));
    }
    all
}

/// The datagrams that are left, as a piece of a bar.
fn left_over(lang: Language, name: &str, left: u64, of: u64) -> Segment {
    let label = said!(
        lang,
        "waterfall-point-left",
        "{name}: {left} of {of} datagrams",
        name = name,
        left = grouped(left),
        of = grouped(of)
    );
    Segment { class: SERIES[0], value: percent(left, of), label }
}

fn percent(part: u64, of: u64) -> f64 {
    Ratio::new(part, of.max(1)).as_f64() * 100.0
}

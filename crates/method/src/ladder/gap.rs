//! The widest gap: the largest loss between neighbouring layers, as far as it is more than headers and the runs' own spread.

use linerate_model::{Gap, LayerName, Message, Summary};

/// Layers this close are equal: the rest is within the error of clocks and windows at the two ends.
const WITHIN_ERROR: f64 = 0.02;

/// A layer that has a figure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing<'a> {
    pub(super) name: LayerName,
    pub(super) payload_bps: &'a Summary,
    /// Payload as a share of what it occupies on a wire.
    pub(super) efficiency: f64,
}

/// The widest gap of `pairs`, each a layer and the one that stands on it, from the ground up; none if none is beyond their spread. Of
/// equally wide ones the lowest: what stands on it inherits its loss. `advice` says what to try for a layer.
pub(super) fn widest(
    pairs: &[(Standing<'_>, Standing<'_>)],
    advice: impl Fn(LayerName) -> Option<Message>,
) -> Option<Gap> {
    let gaps = pairs.iter().filter_map(|(below, above)| between(below, above));
    let mut gap = gaps.reduce(|widest, gap| if gap.rest > widest.rest { gap } else { widest })?;
    gap.advice = advice(gap.above);
    Some(gap)
}

/// The gap between two neighbours, if it is one.
fn between(below: &Standing<'_>, above: &Standing<'_>) -> Option<Gap> {
    let headers = below.efficiency / above.efficiency;
    let factor = below.payload_bps.median / above.payload_bps.median;
    let rest = factor / headers;
    // The upper layer's best run, its headers made up for, stays under the lower layer's worst.
    let apart = above.payload_bps.high * headers < below.payload_bps.low;
    (apart && rest * (1.0 - WITHIN_ERROR) > 1.0).then_some(Gap {
        above: above.name,
        below: below.name,
        factor,
        headers,
        rest,
        advice: None,
    })
}

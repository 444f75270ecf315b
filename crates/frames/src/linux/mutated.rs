//! Frames of a broken or hostile sender, for tests.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Repeats `frames` endlessly, each with up to three changed bytes, and some truncated. The sequence is random but
/// reproducible.
pub(crate) fn mutated(frames: &[Vec<u8>]) -> impl Iterator<Item = Vec<u8>> {
    let mut random = SmallRng::seed_from_u64(2544);
    frames.iter().cycle().map(move |frame| {
        let mut frame = frame.clone();
        for _ in 0..random.random_range(0..4) {
            let at = random.random_range(0..frame.len());
            frame[at] = random.random();
        }
        if random.random_ratio(1, 4) {
            frame.truncate(random.random_range(1..=frame.len()));
        }
        frame
    })
}

//! Frames as a broken or hostile sender would make them, for tests.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// The frames given, over and over, each time with up to three bytes changed and now and then cut short. They look random
/// and are the same each time.
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

//! Raw frames: what passes from port to port with no socket in the way.

use super::{Facts, Figure, Layer};
use linerate_model::RungName;

pub(super) struct Frames;

impl Layer for Frames {
    fn name(&self) -> RungName {
        RungName::Frames
    }

    fn figure(&self, _facts: &Facts<'_>) -> Result<Figure, String> {
        Err("raw frames are sent between two ports of one host only".to_owned())
    }

    fn advice(&self, _facts: &Facts<'_>) -> String {
        "no socket is in the way here: test the device on the path by itself with `linerate device throughput`, and the \
         tester's own ports with `linerate device calibrate`"
            .to_owned()
    }
}

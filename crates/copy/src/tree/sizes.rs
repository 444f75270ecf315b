//! Sizes of files, drawn from a table of quantiles and scaled so that they come to the wanted sum.

use linerate_model::TreeKind;

/// Points of a distribution: thousandths of the files, and their largest size before scaling; straight lines between.
type Quantiles = &'static [(u64, u64)];

const SYSTEM: Quantiles = &[
    (0, 0),
    (20, 0),
    (150, 400),
    (400, 2_500),
    (600, 8_000),
    (800, 40_000),
    (920, 160_000),
    (980, 900_000),
    (995, 4_000_000),
    (1_000, 40_000_000),
];
const PHOTOS: Quantiles = &[(0, 1_200_000), (100, 2_000_000), (500, 3_800_000), (900, 6_500_000), (1_000, 12_000_000)];
const MAIL: Quantiles =
    &[(0, 900), (300, 2_500), (600, 6_000), (850, 20_000), (950, 80_000), (990, 400_000), (1_000, 8_000_000)];

/// Resolution of the quantiles.
const STEPS: u64 = 1 << 32;

/// Distribution and scaling of sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    quantiles: Quantiles,
    bytes: u64,
    /// Sum over all files, before scaling.
    drawn: u128,
}

impl Sizes {
    /// Sizes that come to `bytes` for files with these draws.
    pub(crate) fn new(kind: TreeKind, bytes: u64, draws: impl Iterator<Item = u64>) -> Self {
        let quantiles = match kind {
            TreeKind::System => SYSTEM,
            TreeKind::Photos => PHOTOS,
            TreeKind::Mail => MAIL,
        };
        let mut sizes = Self { quantiles, bytes, drawn: 0 };
        let mut drawn = 0;
        let mut files = 0_u64;
        for draw in draws {
            drawn += u128::from(sizes.raw(draw));
            files += 1;
        }
        // Few files may all draw nothing: then they share evenly.
        if drawn == 0 && files > 0 {
            sizes.quantiles = &[(0, 1), (1_000, 1)];
            drawn = u128::from(files);
        }
        sizes.drawn = drawn;
        sizes
    }

    /// The size of the file with `draw` after files that drew `before` together, and what they drew with it. Cutting
    /// the sum rather than each size makes them come to it exactly.
    pub(crate) fn next(&self, before: u128, draw: u64) -> (u64, u128) {
        let after = before + u128::from(self.raw(draw));
        let part = |drawn: u128| drawn * u128::from(self.bytes) / self.drawn.max(1);
        ((part(after) - part(before)) as u64, after)
    }

    fn raw(&self, draw: u64) -> u64 {
        let at = draw % STEPS * 1_000;
        let segment = self.quantiles.windows(2).find(|pair| at < pair[1].0 * STEPS);
        let Some(&[(from, low), (to, high)]) = segment else { return 0 };
        let offset = u128::from(at - from * STEPS);
        let length = u128::from((to - from) * STEPS);
        low + (u128::from(high - low) * offset / length) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_met() {
        let sizes = Sizes::new(TreeKind::Mail, 1, std::iter::once(7));
        for (thousandths, bytes) in [(0, 900), (300, 2_500), (999, 7_240_000)] {
            let raw = sizes.raw(thousandths * STEPS / 1_000 + 1);
            assert!(raw.abs_diff(bytes) <= bytes / 1_000 + 1, "{thousandths}: {raw} for {bytes}");
        }
    }

    proptest! {
        #[test]
        fn sizes_come_to_the_sum(draws in prop::collection::vec(any::<u64>(), 1..200), bytes in 0..1_u64 << 50) {
            let sizes = Sizes::new(TreeKind::System, bytes, draws.iter().copied());
            let mut before = 0;
            let mut sum = 0;
            for draw in draws {
                let (size, after) = sizes.next(before, draw);
                sum += size;
                before = after;
            }
            prop_assert_eq!(sum, bytes);
        }
    }
}

//! Splits cases into those for tuning and those held out, by a hash of the case's name alone.
//!
//! A case stays on its side when its grid grows, so no rate that is published includes a case that rules were tuned on.

/// Use of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// Rules and thresholds may be changed to meet it.
    Tune,
    /// Held out: only how often its class is right is published.
    Hold,
}

/// Returns the side of a case.
pub(super) fn side(case: &str) -> Side {
    if hash(&["side", case]).is_multiple_of(2) { Side::Hold } else { Side::Tune }
}

/// Returns a case's position in an arbitrary but fixed order.
pub(super) fn rank(name: &str) -> u64 {
    hash(&["rank", name])
}

/// Returns a hash that never changes: FNV-1a (draft-eastlake-fnv), 64 bits, with the finaliser of `MurmurHash3`,
/// because FNV alone mixes the last characters poorly.
pub(super) fn hash(texts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in texts.iter().flat_map(|text| text.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_never_changes() {
        let sides = ["shaper/tcp/bbr", "shaper/tcp/cubic", "shaper/tcp/reno", "window/tcp/bbr"].map(side);
        assert_eq!(sides, [Side::Tune, Side::Tune, Side::Tune, Side::Hold]);
        assert_eq!(hash(&["side", "shaper/tcp/bbr"]), 0x907f_85eb_bc1d_6123);
    }

    #[test]
    fn split_is_even_for_similar_names() {
        let held_out = (0..10_000).filter(|number| side(&format!("shaper/tcp/{number}ms")) == Side::Hold).count();
        // Five standard deviations of 10,000 tosses of a coin.
        assert!((4_750..=5_250).contains(&held_out), "{held_out}");
    }
}

//! How far counters grew.

/// How far a counter of 32 bits grew. It runs over from the top; from anywhere else a smaller value is a new counter
/// (the interface or discipline was replaced), which grew from zero.
pub(crate) fn growth_32(before: u64, after: u64) -> u64 {
    const TOP: u64 = 1 << 32;
    match after.checked_sub(before) {
        Some(growth) => growth,
        None if (TOP / 2..TOP).contains(&before) => after + TOP - before,
        None => after,
    }
}

/// Returns the growth of a 64-bit counter; a smaller value is a new counter.
pub(crate) fn growth(before: u64, after: u64) -> u64 {
    after.checked_sub(before).unwrap_or(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_never_negative() {
        assert_eq!(growth(7, 9), 2);
        assert_eq!(growth(9, 7), 7);
        assert_eq!(growth_32(7, 9), 2);
        assert_eq!(growth_32((1 << 32) - 10, 5), 15);
        assert_eq!(growth_32(1000, 5), 5);
    }
}

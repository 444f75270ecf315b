//! Timestamps of test packets and the estimates of their errors (RFC 8762, section 4.2.1; RFC 4656, section 4.1.2).

/// Format of a [`Timestamp`], as the Z bit of its error estimate selects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampFormat {
    /// NTP (RFC 5905): seconds since 1900 and a binary fraction, 32 bits each.
    Ntp,
    /// Truncated PTPv2 (IEEE 1588): seconds since 1970 and nanoseconds, 32 bits each. The 37 s between TAI and UTC are
    /// not applied, because senders that use this format differ in this.
    Ptp,
}

/// A 64-bit timestamp as it is transmitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timestamp(pub u64);

/// Seconds from 1900 to 1970.
const NTP_OFFSET_S: i64 = 2_208_988_800;
const NANOS_PER_S: i64 = 1_000_000_000;

impl Timestamp {
    /// Encodes a time in nanoseconds since 1970.
    pub fn from_unix_ns(unix_ns: i64, format: TimestampFormat) -> Self {
        let seconds = unix_ns.div_euclid(NANOS_PER_S);
        let nanos = unix_ns.rem_euclid(NANOS_PER_S) as u64;
        let (seconds, fraction) = match format {
            // The fraction is rounded up, so that decoding returns the same nanosecond.
            TimestampFormat::Ntp => (seconds + NTP_OFFSET_S, (nanos << 32).div_ceil(NANOS_PER_S as u64)),
            TimestampFormat::Ptp => (seconds, nanos),
        };
        Self(((seconds as u64) << 32) | fraction)
    }

    /// Decodes the time in nanoseconds since 1970. NTP seconds below 2^31 belong to the era that begins in 2036 (RFC
    /// 4330, section 3).
    pub fn unix_ns(self, format: TimestampFormat) -> i64 {
        let seconds = (self.0 >> 32) as i64;
        let fraction = self.0 & 0xffff_ffff;
        match format {
            TimestampFormat::Ntp => {
                let era = if seconds < 1 << 31 { 1 << 32 } else { 0 };
                let nanos = ((fraction * NANOS_PER_S as u64) >> 32) as i64;
                (seconds + era - NTP_OFFSET_S) * NANOS_PER_S + nanos
            }
            TimestampFormat::Ptp => seconds * NANOS_PER_S + fraction as i64,
        }
    }
}

/// Error estimate of a timestamp: the S bit, the Z bit, a scale of 6 bits and a multiplier of 8 bits. The error is
/// `multiplier * 2^scale / 2^32` seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorEstimate(pub u16);

const SYNCHRONISED: u16 = 1 << 15;
const PTP: u16 = 1 << 14;
const MAX_SCALE: u32 = 63;

impl ErrorEstimate {
    /// Encodes an error in nanoseconds, rounded up. A multiplier of 0 is never sent (RFC 4656, section 4.1.2).
    pub fn new(is_synchronised: bool, format: TimestampFormat, error_ns: u64) -> Self {
        let units = ((u128::from(error_ns) << 32).div_ceil(NANOS_PER_S as u128)).max(1);
        let mut scale = 0;
        while units.div_ceil(1 << scale) > 0xff && scale < MAX_SCALE {
            scale += 1;
        }
        let multiplier = units.div_ceil(1 << scale).min(0xff) as u16;
        let synchronised = if is_synchronised { SYNCHRONISED } else { 0 };
        let ptp = if format == TimestampFormat::Ptp { PTP } else { 0 };
        Self(synchronised | ptp | ((scale as u16) << 8) | multiplier)
    }

    /// Estimate of a clock without a reference: the S bit is clear, and the error is the largest that can be sent.
    pub fn unsynchronised() -> Self {
        Self(((MAX_SCALE as u16) << 8) | 0xff)
    }

    /// Whether the clock is synchronised to UTC by an external source (S bit).
    pub fn is_synchronised(self) -> bool {
        self.0 & SYNCHRONISED != 0
    }

    /// Format of the timestamp that the estimate belongs to (Z bit).
    pub fn format(self) -> TimestampFormat {
        if self.0 & PTP == 0 { TimestampFormat::Ntp } else { TimestampFormat::Ptp }
    }

    /// The error in nanoseconds, at most `u64::MAX`. Returns `None` for a multiplier of 0, which carries no estimate.
    pub fn error_ns(self) -> Option<u64> {
        let multiplier = u128::from(self.0 & 0xff);
        let scale = (self.0 >> 8) & 0x3f;
        let nanos = ((multiplier << scale) * NANOS_PER_S as u128) >> 32;
        (multiplier > 0).then(|| u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ntp_timestamps_match_rfc_5905() {
        // 1 January 1970, 0 h UTC, and half a second later.
        assert_eq!(Timestamp::from_unix_ns(0, TimestampFormat::Ntp), Timestamp(0x83aa_7e80_0000_0000));
        assert_eq!(Timestamp::from_unix_ns(500_000_000, TimestampFormat::Ntp), Timestamp(0x83aa_7e80_8000_0000));
        // The first second of era 1, 7 February 2036, 6:28:16 UTC.
        assert_eq!(Timestamp::from_unix_ns(2_085_978_496 * NANOS_PER_S, TimestampFormat::Ntp), Timestamp(0));
        assert_eq!(Timestamp(0).unix_ns(TimestampFormat::Ntp), 2_085_978_496 * NANOS_PER_S);
    }

    #[test]
    fn ptp_timestamps_are_seconds_and_nanoseconds() {
        let timestamp = Timestamp::from_unix_ns(5 * NANOS_PER_S + 7, TimestampFormat::Ptp);
        assert_eq!(timestamp, Timestamp((5 << 32) | 7));
    }

    #[test]
    fn error_estimates_have_the_bits_of_rfc_8762() {
        // 2^-32 s is the smallest error: scale 0, multiplier 1.
        assert_eq!(ErrorEstimate::new(false, TimestampFormat::Ntp, 0), ErrorEstimate(0x0001));
        assert_eq!(ErrorEstimate::new(true, TimestampFormat::Ptp, 0), ErrorEstimate(0xc001));
        // 1 s = 128 * 2^25 / 2^32.
        assert_eq!(
            ErrorEstimate::new(true, TimestampFormat::Ntp, 1_000_000_000),
            ErrorEstimate(0x8000 | (25 << 8) | 128)
        );
        assert_eq!(ErrorEstimate(0x8000 | (25 << 8) | 128).error_ns(), Some(1_000_000_000));
        assert_eq!(ErrorEstimate(0x8000).error_ns(), None);
        assert!(!ErrorEstimate::unsynchronised().is_synchronised());
        assert!(ErrorEstimate::unsynchronised().error_ns() > Some(u64::MAX / 64));
    }

    proptest! {
        #[test]
        fn times_survive_encoding(unix_ns in 0i64..4_000_000_000 * NANOS_PER_S) {
            for format in [TimestampFormat::Ntp, TimestampFormat::Ptp] {
                prop_assert_eq!(Timestamp::from_unix_ns(unix_ns, format).unix_ns(format), unix_ns);
            }
        }

        #[test]
        fn encoded_errors_are_upper_bounds(error_ns in any::<u64>(), synchronised in any::<bool>()) {
            let estimate = ErrorEstimate::new(synchronised, TimestampFormat::Ntp, error_ns);
            let decoded = estimate.error_ns().expect("the multiplier is positive");
            prop_assert!(decoded >= error_ns);
            prop_assert!(decoded / 2 <= error_ns.saturating_add(1), "{} became {}", error_ns, decoded);
            prop_assert_eq!(estimate.is_synchronised(), synchronised);
        }

        #[test]
        fn every_bit_pattern_is_decoded(bits in any::<u64>(), estimate in any::<u16>()) {
            let estimate = ErrorEstimate(estimate);
            let _ = Timestamp(bits).unix_ns(estimate.format());
            let _ = estimate.error_ns();
        }
    }
}

//! Quantities of the field and their algebra.
//!
//! A rate, a size and a duration are different types, so that adding a frame to a packet or a bit to a byte does not
//! compile. All hold integers: what is counted stays a count, and a ratio keeps both of its counts.
//!
//! Prefixes are decimal (`k`, `K`, `M`, `G`, `T`: powers of 1,000) and binary only when they say so (`Ki`, `Mi`, `Gi`:
//! powers of 1,024). `64K` is 64,000 bytes; `64KiB` is 65,536.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod bytes;
mod day_hours;
mod frame_size;
mod nanos;
mod number;
mod rate;
mod ratio;

pub use bytes::ByteCount;
pub use day_hours::{DayHours, ParseHoursError};
pub use frame_size::{FrameSize, FrameTooSmall};
pub use nanos::Nanos;
pub use number::{ParseError, grouped};
pub use rate::{BitRate, FrameRate, OpRate};
pub use ratio::Ratio;

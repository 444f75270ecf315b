//! Monotonic time and precise waits.

//! Quantities in the sentences of verdicts.

/// A rate for people.
pub(crate) fn bits(bps: f64) -> String {
    linerate_units::BitRate::per_second(bps.max(0.0) as u64).to_string()
}

/// A time for people.
pub(crate) fn time(seconds: f64) -> String {
    linerate_units::Nanos::new((seconds.max(0.0) * 1e9) as u64).to_string()
}

/// A share for people, with as many digits as it takes.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => String::from("0 %"),
        ..0.1 => format!("{percent:.3} %"),
        ..1.0 => format!("{percent:.2} %"),
        ..10.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

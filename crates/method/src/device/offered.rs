//! What limited a result that is not a search for a rate: a load that was offered, a length, a number.

use super::SHORTFALL_BEARABLE;
use linerate_model::{Confidence, Limit, Verdict};
use linerate_units::grouped;

/// Of `due` frames `sent` were sent and `received` arrived.
pub(crate) fn of_load(due: u64, sent: u64, received: u64) -> Verdict {
    let say = |limit, confidence, text| Verdict::new(limit, confidence, vec![text]);
    let lost = sent.saturating_sub(received);
    if (sent as f64) < due as f64 * (1.0 - SHORTFALL_BEARABLE) {
        let text = format!("of {} frames that were due the tester sent {}", grouped(due), grouped(sent));
        return say(Limit::Tester, Confidence::Medium, text);
    }
    if lost == 0 {
        let text =
            format!("all {} frames that were sent arrived: offer a higher load to find the limit", grouped(sent));
        return say(Limit::OfferedLoad, Confidence::High, text);
    }
    let text = format!(
        "{} of {} frames that were sent did not arrive, provided that the receiving port lost none of them",
        grouped(lost),
        grouped(sent)
    );
    say(Limit::Device, Confidence::Medium, text)
}

/// The device held `held` of something, and more was too much; or all that was tried, which says nothing of the device.
pub(super) fn of_number(what: &str, held: u64, too_many: Option<u64>) -> Verdict {
    match too_many {
        Some(too_many) => {
            let text = format!("{} {what} were held, {} were not", grouped(held), grouped(too_many));
            Verdict::new(Limit::Device, Confidence::High, vec![text])
        }
        None => {
            let text = format!("all {} {what} that were tried were held", grouped(held));
            Verdict::new(Limit::OfferedLoad, Confidence::High, vec![text])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_met_lost_or_never_sent() {
        let limit = |due, sent, received| of_load(due, sent, received).limit;
        assert_eq!(limit(1_000, 1_000, 1_000), Limit::OfferedLoad);
        assert_eq!(limit(1_000, 998, 998), Limit::OfferedLoad);
        assert_eq!(limit(1_000, 1_000, 999), Limit::Device);
        assert_eq!(limit(1_000, 900, 800), Limit::Tester);
    }

    #[test]
    fn a_number_is_the_devices_only_if_more_was_too_many() {
        assert_eq!(of_number("addresses", 1_000, Some(1_001)).limit, Limit::Device);
        assert_eq!(of_number("addresses", 1_000, None).limit, Limit::OfferedLoad);
    }
}

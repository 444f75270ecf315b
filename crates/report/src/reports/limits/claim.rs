//! Whether a claimed rate is possible, and what it can then have counted.

use super::{LimitCell, Limits, bits, mtu, name, significant};
use crate::figures::prefix;
use crate::language::Language;
use crate::said;
use linerate_model::{Layer, Transport};
use linerate_units::BitRate;

impl Limits {
    /// Returns the answer for each cell, `None` if nothing was claimed.
    pub(super) fn answers(&self, lang: Language) -> Vec<String> {
        let Some(claim) = self.claim else { return Vec::new() };
        let subject = |cell: &LimitCell| {
            let load = match cell.transport {
                Transport::Udp => said!(
                    lang,
                    "limits-claim-over-udp",
                    "in UDP messages of {message_bytes} bytes",
                    message_bytes = cell.message_bytes
                ),
                Transport::Tcp => said!(lang, "limits-claim-over-tcp", "over TCP"),
            };
            said!(
                lang,
                "limits-claim-statement",
                "{claim} {load} on {stack} ({ip}, {cell})",
                claim = written(claim),
                load = load,
                stack = name(&cell.stack),
                ip = self.ip(lang),
                cell = mtu(lang, cell)
            )
        };
        self.cells.iter().map(|cell| format!("{}: {}.", subject(cell), answer(lang, cell, claim))).collect()
    }
}

/// The claim as it was written, or nearly: `77 Mbit/s`.
fn written(claim: BitRate) -> String {
    let text = bits(claim, 9);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// `not possible as payload (49.2) or IP (70.8); possible counted at layer 2 (84.6 with FCS)`: limits in the claim's own prefix.
fn answer(lang: Language, cell: &LimitCell, claim: BitRate) -> String {
    let carried = &cell.carried;
    let (step, _) = prefix(claim.get() as f64);
    let digits_of = |rate: BitRate, digits| significant(rate.get() as f64 / step, digits);
    // A limit that differs from the claim must not look the same.
    let alike = |digits: &usize| {
        Layer::ALL.iter().any(|layer| {
            let rate = carried.rate(*layer);
            rate != claim && digits_of(rate, *digits) == digits_of(claim, *digits)
        })
    };
    let digits = [3, 5, 7].into_iter().find(|digits| !alike(digits)).unwrap_or(9);
    let limit = |layer| digits_of(carried.rate(layer), digits);

    match carried.possible_at(claim) {
        Some(Layer::Payload) => {
            said!(lang, "limits-claim-as-payload", "possible as payload ({payload})", payload = limit(Layer::Payload))
        }
        Some(Layer::Ip) => {
            said!(
                lang,
                "limits-claim-as-ip",
                "not possible as payload ({payload}); possible counted as IP ({ip})",
                payload = limit(Layer::Payload),
                ip = limit(Layer::Ip)
            )
        }
        Some(layer) => {
            let above = said!(
                lang,
                "limits-claim-above-ip",
                "not possible as payload ({payload}) or IP ({ip})",
                payload = limit(Layer::Payload),
                ip = limit(Layer::Ip)
            );
            let with_fcs = limit(Layer::Layer2Fcs);
            let wire = limit(Layer::Wire);
            match layer {
                Layer::Layer2 => {
                    said!(
                        lang,
                        "limits-claim-at-layer-2",
                        "{above}; possible counted at layer 2 ({with_fcs} with FCS)",
                        above = above,
                        with_fcs = with_fcs
                    )
                }
                Layer::Layer2Fcs => {
                    said!(
                        lang,
                        "limits-claim-with-fcs-only",
                        "{above}; possible counted at layer 2 with FCS only ({with_fcs})",
                        above = above,
                        with_fcs = with_fcs
                    )
                }
                _ => {
                    said!(
                        lang,
                        "limits-claim-wire-only",
                        "{above} or layer 2 with FCS ({with_fcs}); possible only as bits on the wire ({wire})",
                        above = above,
                        with_fcs = with_fcs,
                        wire = wire
                    )
                }
            }
        }
        None if claim <= carried.medium.line() => {
            let wire = limit(Layer::Wire);
            let line = digits_of(carried.medium.line(), digits);
            said!(
                lang,
                "limits-claim-line-only",
                "not possible at any layer (payload {payload}, wire {wire}); only the line itself has {line}",
                payload = limit(Layer::Payload),
                wire = wire,
                line = line
            )
        }
        None => {
            let line = digits_of(carried.medium.line(), digits);
            said!(
                lang,
                "limits-claim-impossible",
                "not possible at any layer: the line has {line}, of which payload {payload}",
                line = line,
                payload = limit(Layer::Payload)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Stack;

    fn answered(medium: &str, size: u64, claim: &str) -> String {
        let stack = Stack::on(medium.parse().expect("a medium"));
        let cell = LimitCell::udp(&stack, size).expect("it stands");
        answer(Language::English, &cell, claim.parse().expect("a rate"))
    }

    #[test]
    fn says_what_a_figure_can_have_counted() {
        for (medium, size, claim, said) in [
            (
                "100base-tx",
                64,
                "77Mbit/s",
                "not possible as payload (49.2) or IP (70.8); possible counted at layer 2 (84.6 with FCS)",
            ),
            ("1000base-t", 64, "124Mbit/s", "possible as payload (492)"),
            ("100base-tx", 64, "60M", "not possible as payload (49.2); possible counted as IP (70.8)"),
            (
                "100base-tx",
                64,
                "83M",
                "not possible as payload (49.2) or IP (70.8); possible counted at layer 2 with FCS only (84.6)",
            ),
            (
                "100base-tx",
                64,
                "99M",
                "not possible as payload (49.2) or IP (70.8) or layer 2 with FCS (84.6); possible only as bits on the wire \
                 (100)",
            ),
            ("100base-tx", 64, "110M", "not possible at any layer: the line has 100, of which payload 49.2"),
            // 130 would look like the claim; 129.98 does not.
            ("atm-oc3-lane", 1472, "130.2M", "not possible as payload (129.98); possible counted as IP (132.45)"),
            (
                "atm-oc3-lane",
                1472,
                "153M",
                "not possible at any layer (payload 130, wire 150); only the line itself has 156",
            ),
        ] {
            assert_eq!(answered(medium, size, claim), said);
        }
    }
}

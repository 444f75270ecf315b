//! What connection tracking dropped, from `/proc/net/stat/nf_conntrack`.

use crate::growth::growth_32;
use linerate_model::ConntrackCounters;

/// Packets dropped, packets not entered and connections removed early, of each core. The kernel's counters have 32
/// bits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ConntrackTotals(Vec<[u64; 3]>);

impl ConntrackTotals {
    /// Reads the file: a line of names, and a line of hexadecimal values for each core (ct_cpu_seq_show in
    /// net/netfilter/nf_conntrack_standalone.c).
    pub(crate) fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let heads: Vec<&str> = lines.next().unwrap_or_default().split_ascii_whitespace().collect();
        let columns = ["drop", "insert_failed", "early_drop"].map(|name| heads.iter().position(|head| *head == name));
        let core = |line: &str| {
            let values: Vec<&str> = line.split_ascii_whitespace().collect();
            columns
                .map(|column| column.and_then(|at| u64::from_str_radix(values.get(at)?, 16).ok()).unwrap_or_default())
        };
        Self(lines.map(core).collect())
    }

    /// Returns the difference from `before`, summed over all cores.
    pub(crate) fn since(&self, before: &Self) -> ConntrackCounters {
        let mut all = ConntrackCounters::default();
        for (now, then) in self.0.iter().zip(&before.0) {
            all.drops += growth_32(then[0], now[0]);
            all.insert_failures += growth_32(then[1], now[1]);
            all.early_drops += growth_32(then[2], now[2]);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_up_the_cores_by_the_names_of_columns() {
        let text = |first: &str, second: &str| {
            ConntrackTotals::parse(&format!(
                "entries  found insert_failed drop early_drop icmp_error\n{first}\n{second}\n"
            ))
        };
        let before = text("00000001 00000000 00000001 0000000a 00000002 00000007", "00000001 0 ffffffff 0 0 0");
        let after = text("00000009 00000000 00000001 0000001a 00000005 00000009", "00000001 0 00000001 1 0 0");
        let counted = ConntrackCounters { drops: 17, insert_failures: 2, early_drops: 3 };
        assert_eq!(after.since(&before), counted);
        assert_eq!(ConntrackTotals::parse("").since(&before), ConntrackCounters::default());
    }
}

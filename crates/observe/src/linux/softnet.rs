//! The kernel's input queues, from `/proc/net/softnet_stat`.

use crate::growth::growth_32;
use linerate_model::Softnet;

/// Each core's queue: processed, dropped, squeezed. The kernel's counters have 32 bits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SoftnetCounts(Vec<[u64; 3]>);

impl SoftnetCounts {
    /// Reads the file's hexadecimal columns (softnet_seq_show in net/core/net-procfs.c), one line a core.
    pub(crate) fn parse(text: &str) -> Self {
        let queue = |line: &str| {
            let mut fields = line.split_ascii_whitespace().map(|field| u64::from_str_radix(field, 16).ok());
            Some([fields.next()??, fields.next()??, fields.next()??])
        };
        Self(text.lines().filter_map(queue).collect())
    }

    /// Returns the difference from `before`, summed over all cores.
    pub(crate) fn since(&self, before: &Self) -> Softnet {
        let mut all = Softnet::default();
        for (now, then) in self.0.iter().zip(&before.0) {
            all.processed += growth_32(then[0], now[0]);
            all.dropped += growth_32(then[1], now[1]);
            all.squeezed += growth_32(then[2], now[2]);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_up_the_cores() {
        let before = SoftnetCounts::parse(
            "00000016 00000000 00000000 00000000 00000000\nffffffff 00000001 00000000 00000000 00000000\n",
        );
        let after = SoftnetCounts::parse(
            "00000026 0000000a 00000002 00000000 00000000\n00000003 00000001 00000001 00000000 00000000\n",
        );
        // 0x26 - 0x16 = 16, and the second core's counter ran over its 32 bits: 4 more.
        assert_eq!(after.since(&before), Softnet { processed: 20, dropped: 10, squeezed: 3 });
    }
}

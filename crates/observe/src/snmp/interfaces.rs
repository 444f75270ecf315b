//! The interface table of a device: IF-MIB, RFC 2863.

use super::error::SnmpError;
use super::wire::{Answer, Name, Wire};
use linerate_model::DeviceInterface;
use std::collections::BTreeMap;

/// `ifEntry` and `ifXEntry`; a column number follows.
const IF_ENTRY: [u64; 9] = [1, 3, 6, 1, 2, 1, 2, 2, 1];
const IF_X_ENTRY: [u64; 10] = [1, 3, 6, 1, 2, 1, 31, 1, 1, 1];

/// A column of one of the two tables.
#[derive(Debug, Clone, Copy)]
enum Column {
    If(u64),
    IfX(u64),
}

impl Column {
    fn name(self) -> Name {
        match self {
            Self::If(column) => IF_ENTRY.into_iter().chain([column]).collect(),
            Self::IfX(column) => IF_X_ENTRY.into_iter().chain([column]).collect(),
        }
    }
}

/// `ifName`, else `ifDescr`.
const NAMES: [Column; 2] = [Column::IfX(1), Column::If(2)];

/// Field of an interface that a counter adds to.
type Count = fn(&mut DeviceInterface) -> &mut u64;

/// Each counter: what it adds to, and the columns that hold it, the widest first.
const COUNTERS: [(Count, &[Column]); 12] = [
    (|to| &mut to.in_frames, &[Column::IfX(7), Column::If(11)]),
    // A device without ifXTable counts multicast and broadcast together, as ifInNUcastPkts.
    (|to| &mut to.in_frames, &[Column::IfX(8), Column::IfX(2), Column::If(12)]),
    (|to| &mut to.in_frames, &[Column::IfX(9), Column::IfX(3)]),
    (|to| &mut to.out_frames, &[Column::IfX(11), Column::If(17)]),
    (|to| &mut to.out_frames, &[Column::IfX(12), Column::IfX(4), Column::If(18)]),
    (|to| &mut to.out_frames, &[Column::IfX(13), Column::IfX(5)]),
    (|to| &mut to.in_bytes, &[Column::IfX(6), Column::If(10)]),
    (|to| &mut to.out_bytes, &[Column::IfX(10), Column::If(16)]),
    (|to| &mut to.in_discards, &[Column::If(13)]),
    (|to| &mut to.out_discards, &[Column::If(19)]),
    (|to| &mut to.in_errors, &[Column::If(14)]),
    (|to| &mut to.out_errors, &[Column::If(20)]),
];

/// A counter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counter {
    Narrow(u32),
    Wide(u64),
}

impl Counter {
    fn new(answer: &Answer) -> Option<Self> {
        match *answer {
            Answer::Counter32(count) => Some(Self::Narrow(count)),
            Answer::Counter64(count) => Some(Self::Wide(count)),
            _ => None,
        }
    }

    /// How far it grew. A counter runs over from the upper half of its range; from the lower half, a smaller value is a
    /// new counter (the interface was replaced), which grew from zero.
    fn since(self, before: Self) -> u64 {
        match (before, self) {
            (Self::Narrow(then), Self::Narrow(now)) if now >= then || then > u32::MAX / 2 => {
                now.wrapping_sub(then).into()
            }
            (Self::Wide(then), Self::Wide(now)) if now >= then || then > u64::MAX / 2 => now.wrapping_sub(then),
            (_, Self::Narrow(now)) => now.into(),
            (_, Self::Wide(now)) => now,
        }
    }
}

/// Columns that a device has.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    name: Option<Name>,
    counters: Vec<(Count, Name)>,
}

impl Columns {
    /// Finds the first column with rows for each counter.
    pub(super) async fn find(wire: &mut Wire) -> Result<Self, SnmpError> {
        let mut counters = Vec::new();
        for (count, columns) in COUNTERS {
            counters.extend(first(wire, columns).await?.map(|name| (count, name)));
        }
        Ok(Self { name: first(wire, &NAMES).await?, counters })
    }
}

async fn first(wire: &mut Wire, columns: &[Column]) -> Result<Option<Name>, SnmpError> {
    for column in columns {
        let name = column.name();
        if !wire.column(&name).await?.is_empty() {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// The table as read once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Interfaces {
    /// By `ifIndex`.
    names: BTreeMap<Name, String>,
    /// By `ifIndex`, then as in [`Columns::counters`].
    counters: BTreeMap<Name, Vec<Option<Counter>>>,
}

impl Interfaces {
    pub(super) async fn take(wire: &mut Wire, columns: &Columns) -> Result<Self, SnmpError> {
        let mut table = Self::default();
        if let Some(name) = &columns.name {
            let rows = wire.column(name).await?;
            table.names = rows.into_iter().filter_map(|(index, name)| Some((index, name.into_text()?))).collect();
        }
        for (at, (_, column)) in columns.counters.iter().enumerate() {
            for (index, answer) in wire.column(column).await? {
                let row = table.counters.entry(index).or_insert_with(|| vec![None; columns.counters.len()]);
                row[at] = Counter::new(&answer);
            }
        }
        Ok(table)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    /// True if any counter differs. Our own questions pass an interface of the device, so that a table in which nothing
    /// moved is an old one.
    pub(super) fn differs_from(&self, before: &Self) -> bool {
        self.counters != before.counters
    }

    /// Returns the difference for the interfaces in both readings, without silent ones.
    pub(super) fn since(&self, before: &Self, columns: &Columns) -> Vec<DeviceInterface> {
        let grown = self.counters.iter().filter_map(|(index, now)| {
            let then = before.counters.get(index)?;
            let number = || index.iter().map(u64::to_string).collect::<Vec<_>>().join(".");
            let name = self.names.get(index).filter(|name| !name.is_empty()).cloned().unwrap_or_else(number);
            let mut interface = DeviceInterface { name, ..DeviceInterface::default() };
            for ((count, _), (now, then)) in columns.counters.iter().zip(now.iter().zip(then)) {
                if let Some((now, then)) = now.zip(*then) {
                    let sum = count(&mut interface);
                    *sum = sum.saturating_add(now.since(then));
                }
            }
            Some(interface)
        });
        grown.filter(|interface| !interface.is_silent()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_run_over_at_either_width() {
        assert_eq!(Counter::Narrow(5).since(Counter::Narrow(u32::MAX - 4)), 10);
        assert_eq!(Counter::Wide(5).since(Counter::Wide(u64::MAX - 4)), 10);
        assert_eq!(Counter::Wide(1 << 33).since(Counter::Wide(7)), (1 << 33) - 7);
    }

    #[test]
    fn a_smaller_value_from_below_is_a_new_counter() {
        assert_eq!(Counter::Narrow(5).since(Counter::Narrow(1000)), 5);
        assert_eq!(Counter::Wide(5).since(Counter::Wide(1 << 40)), 5);
    }

    #[test]
    fn unicast_multicast_and_broadcast_are_frames() {
        let columns = Columns {
            name: None,
            counters: COUNTERS.iter().map(|(count, columns)| (*count, columns[0].name())).collect(),
        };
        let table = |values: [u64; 12]| Interfaces {
            names: BTreeMap::from([(vec![3], "eth0".into())]),
            counters: BTreeMap::from([(vec![3], values.map(|value| Some(Counter::Wide(value))).to_vec())]),
        };
        let before = table([100; 12]);
        let after = table([101, 102, 104, 108, 116, 132, 164, 228, 356, 612, 1124, 2148]);
        let expected = DeviceInterface {
            name: "eth0".into(),
            in_frames: 1 + 2 + 4,
            out_frames: 8 + 16 + 32,
            in_bytes: 64,
            out_bytes: 128,
            in_discards: 256,
            out_discards: 512,
            in_errors: 1024,
            out_errors: 2048,
        };
        assert_eq!(after.since(&before, &columns), vec![expected]);
        assert_eq!(before.since(&before, &columns), vec![]);
        assert!(after.differs_from(&before) && !before.differs_from(&before));
        // Nonsense stays nonsense, and breaks nothing.
        let most = table([u64::MAX; 12]).since(&table([0; 12]), &columns);
        assert_eq!((most[0].in_frames, most[0].in_bytes), (u64::MAX, u64::MAX));
    }
}

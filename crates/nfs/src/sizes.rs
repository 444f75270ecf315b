//! Sizes of reads and writes: the tables of LADDIS and SFS.

use rand::RngExt as _;
use rand::rngs::SmallRng;

/// A row of a table: percent, and the smallest and largest length, KiB.
type Row = (u32, u32, u32);

/// Reads.
const READS: [Row; 5] = [(85, 8, 8), (8, 17, 23), (4, 33, 39), (2, 65, 71), (1, 129, 135)];
/// Writes.
const WRITES: [Row; 6] = [(49, 1, 7), (36, 9, 15), (8, 17, 23), (4, 33, 39), (2, 65, 71), (1, 129, 135)];
/// Percent of writes that append.
const APPENDS: u32 = 70;

/// The length of a read, KiB.
pub(crate) fn read(random: &mut SmallRng) -> u32 {
    draw(&READS, random)
}

/// The length of a write, KiB.
pub(crate) fn write(random: &mut SmallRng) -> u32 {
    draw(&WRITES, random)
}

/// Whether a write appends.
pub(crate) fn appends(random: &mut SmallRng) -> bool {
    random.random_range(0..100) < APPENDS
}

fn draw(table: &[Row], random: &mut SmallRng) -> u32 {
    let mut at = random.random_range(0..100);
    for (percent, least, most) in table {
        if at < *percent {
            return random.random_range(*least..=*most);
        }
        at -= percent;
    }
    unreachable!("the rows add up to 100 percent")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    #[test]
    fn lengths_follow_their_tables() {
        let mut random = SmallRng::seed_from_u64(1);
        for (table, draws) in [(&READS[..], read as fn(&mut SmallRng) -> u32), (&WRITES[..], write)] {
            assert_eq!(table.iter().map(|(percent, ..)| percent).sum::<u32>(), 100);
            let lengths: Vec<u32> = (0..100_000).map(|_| draws(&mut random)).collect();
            for (percent, least, most) in table {
                let row: Vec<_> = lengths.iter().filter(|length| (*least..=*most).contains(length)).collect();
                // Ten standard deviations of the smallest share are 0.3 %.
                assert!((row.len() as f64 / 1_000.0 - f64::from(*percent)).abs() < 1.6, "{percent}: {}", row.len());
                assert!((*least..=*most).all(|length| row.contains(&&length)), "every length of {least} to {most}");
            }
        }
        let appending = (0..100_000).filter(|_| appends(&mut random)).count();
        assert!(appending.abs_diff(70_000) < 1_500, "{appending}");
    }
}

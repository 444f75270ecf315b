//! A file's data: pages where something was written, nothing where not.

use super::room::{Room, Taken};
use crate::store::Result;
use nfs3_types::nfs3::nfsstat3;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Size of a page: one usual transfer.
const PAGE: usize = 8 << 10;
/// Largest file offset (off_t).
pub(crate) const FILE_MAXIMUM: u64 = i64::MAX as u64;

/// A file's data.
#[derive(Debug)]
pub(super) struct Pages {
    pages: BTreeMap<u64, Box<[u8]>>,
    length: u64,
    taken: Taken,
}

impl Pages {
    pub(super) fn new(room: &Arc<Room>) -> Self {
        Self { pages: BTreeMap::new(), length: 0, taken: Taken::nothing(room) }
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Memory it takes.
    pub(super) fn taken(&self) -> u64 {
        self.taken.bytes()
    }

    /// Appends at most `count` bytes from `offset` to `data`; says whether they reach the end.
    pub(super) fn read(&self, offset: u64, count: u32, data: &mut Vec<u8>) -> bool {
        let end = self.length.min(offset.saturating_add(u64::from(count)));
        for (page, part) in parts(offset, end.saturating_sub(offset)) {
            match self.pages.get(&page) {
                Some(page) => data.extend_from_slice(&page[part]),
                None => data.resize(data.len() + part.len(), 0),
            }
        }
        end >= self.length
    }

    /// Writes all of `data`, or nothing if there is no room.
    pub(super) fn write(&mut self, offset: u64, mut data: &[u8]) -> Result<()> {
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= FILE_MAXIMUM);
        let end = end.ok_or(nfsstat3::NFS3ERR_FBIG)?;
        let missing = parts(offset, data.len() as u64).filter(|(page, _)| !self.pages.contains_key(page)).count();
        self.taken.grow((missing * PAGE) as u64)?;
        for (page, part) in parts(offset, data.len() as u64) {
            let (now, later) = data.split_at(part.len());
            self.pages.entry(page).or_insert_with(|| vec![0; PAGE].into_boxed_slice())[part].copy_from_slice(now);
            data = later;
        }
        self.length = self.length.max(end);
        Ok(())
    }

    /// Cuts it off or lengthens it by zeros.
    pub(super) fn resize(&mut self, length: u64) -> Result<()> {
        if length > FILE_MAXIMUM {
            return Err(nfsstat3::NFS3ERR_FBIG);
        }
        if length < self.length {
            let beyond = self.pages.split_off(&length.div_ceil(PAGE as u64));
            self.taken.shrink((beyond.len() * PAGE) as u64);
            if let Some(last) = self.pages.get_mut(&(length / PAGE as u64)) {
                last[(length % PAGE as u64) as usize..].fill(0);
            }
        }
        self.length = length;
        Ok(())
    }
}

/// The pages that `length` bytes from `offset` lie on, and which part of each.
fn parts(offset: u64, length: u64) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let end = offset.saturating_add(length);
    let mut at = offset;
    std::iter::from_fn(move || {
        let page = at / PAGE as u64;
        let from = (at % PAGE as u64) as usize;
        let to = PAGE.min(from + usize::try_from(end.checked_sub(at)?).unwrap_or(PAGE));
        at += (to - from) as u64;
        (to > from).then_some((page, from..to))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Act {
        Write(u64, Vec<u8>),
        Resize(u64),
        Read(u64, u32),
    }

    fn act() -> impl Strategy<Value = Act> {
        let offset = 0..5 * PAGE as u64;
        prop_oneof![
            (offset.clone(), prop::collection::vec(any::<u8>(), 0..2 * PAGE))
                .prop_map(|(at, data)| Act::Write(at, data)),
            offset.clone().prop_map(Act::Resize),
            (offset, 0..3 * PAGE as u32).prop_map(|(at, count)| Act::Read(at, count)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn pages_are_a_file(acts in prop::collection::vec(act(), 1..24)) {
            let room = Room::new(1 << 30);
            let mut pages = Pages::new(&room);
            let mut plain: Vec<u8> = Vec::new();
            for act in acts {
                match act {
                    Act::Write(at, data) => {
                        pages.write(at, &data).expect("room");
                        let end = at as usize + data.len();
                        plain.resize(plain.len().max(end), 0);
                        plain[at as usize..end].copy_from_slice(&data);
                    }
                    Act::Resize(length) => {
                        pages.resize(length).expect("a length");
                        plain.resize(length as usize, 0);
                    }
                    Act::Read(at, count) => {
                        let mut read = vec![7];
                        let end = pages.read(at, count, &mut read);
                        let from = plain.len().min(at as usize);
                        let to = plain.len().min(at as usize + count as usize);
                        prop_assert_eq!(&read[1..], &plain[from..to]);
                        prop_assert_eq!(end, at + u64::from(count) >= plain.len() as u64);
                    }
                }
                prop_assert_eq!(pages.length(), plain.len() as u64);
                prop_assert_eq!(room.bytes - room.free(), (pages.pages.len() * PAGE) as u64);
            }
            drop(pages);
            prop_assert_eq!(room.free(), room.bytes);
        }
    }

    #[test]
    fn what_has_no_room_is_not_begun() {
        let room = Room::new(2 * PAGE as u64);
        let mut pages = Pages::new(&room);
        pages.write(0, &[1; PAGE]).expect("the first page");
        assert_eq!(pages.write(PAGE as u64, &[2; 2 * PAGE]), Err(nfsstat3::NFS3ERR_NOSPC));
        assert_eq!(pages.length(), PAGE as u64);
        pages.write(1 << 50, &[3]).expect("far out is one page all the same");
        assert_eq!(pages.length(), (1 << 50) + 1);
        assert_eq!(pages.write(FILE_MAXIMUM, &[1]), Err(nfsstat3::NFS3ERR_FBIG));
        assert_eq!(pages.write(u64::MAX, &[1]), Err(nfsstat3::NFS3ERR_FBIG));
        assert_eq!(pages.resize(u64::MAX), Err(nfsstat3::NFS3ERR_FBIG));
        let mut data = Vec::new();
        assert!(pages.read(u64::MAX, u32::MAX, &mut data) && data.is_empty());
    }
}

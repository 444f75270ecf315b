//! The calls without a reply, found by their xid.

use std::collections::VecDeque;

/// Calls under way. The xids count up from a random one, so that a place in the queue gives the xid.
#[derive(Debug)]
pub struct Waiting<T> {
    /// The xid of the first.
    first: u32,
    calls: VecDeque<Option<T>>,
    count: usize,
}

impl<T> Default for Waiting<T> {
    /// Nobody waits; the first call gets a random xid.
    fn default() -> Self {
        Self::starting_at(rand::random())
    }
}

impl<T> Waiting<T> {
    /// The next call has this xid.
    pub fn starting_at(xid: u32) -> Self {
        Self { first: xid, calls: VecDeque::new(), count: 0 }
    }

    /// The xid that the next call gets.
    pub fn next(&self) -> u32 {
        self.first.wrapping_add(self.calls.len() as u32)
    }

    /// Adds a call under the xid [`Waiting::next`].
    pub fn add(&mut self, call: T) {
        self.calls.push_back(Some(call));
        self.count += 1;
    }

    /// Removes the call of `xid`. Returns `None` if it is not under way.
    pub fn take(&mut self, xid: u32) -> Option<T> {
        let call = self.calls.get_mut(xid.wrapping_sub(self.first) as usize)?.take()?;
        self.count -= 1;
        while let Some(None) = self.calls.front() {
            self.calls.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        Some(call)
    }

    /// The call of `xid`.
    pub fn find(&mut self, xid: u32) -> Option<&mut T> {
        self.calls.get_mut(xid.wrapping_sub(self.first) as usize)?.as_mut()
    }

    /// Takes all out.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.first = self.next();
        self.count = 0;
        std::mem::take(&mut self.calls).into_iter().flatten()
    }

    /// Returns the number of calls.
    pub fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_xid_finds_its_call_once_and_in_any_order() {
        let mut waiting = Waiting { first: u32::MAX - 1, ..Waiting::default() };
        let xids: Vec<u32> = (0..4)
            .map(|n| {
                let xid = waiting.next();
                waiting.add(n);
                xid
            })
            .collect();
        assert_eq!(xids, [u32::MAX - 1, u32::MAX, 0, 1]);
        for (xid, expected) in [(0, Some(2)), (0, None), (2, None), (u32::MAX - 1, Some(0)), (u32::MAX - 1, None)] {
            assert_eq!(waiting.take(xid), expected, "{xid}");
        }
        assert_eq!((waiting.first, waiting.count()), (u32::MAX, 2));
        assert_eq!((waiting.take(u32::MAX), waiting.take(1), waiting.count()), (Some(1), Some(3), 0));
        assert_eq!(waiting.next(), 2);
    }
}

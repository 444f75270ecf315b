//! Names that are created and removed during the load, so that the file set itself keeps its size.

use std::collections::VecDeque;

/// Numbers of the names of one kind that a flow has created and not removed.
#[derive(Debug, Default)]
pub(crate) struct TransientNames {
    existing: VecDeque<u32>,
    next: u32,
}

impl TransientNames {
    /// Returns a new name.
    pub(crate) fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// Returns a new name in the same directory as `number`: names go in turn over `directories`.
    pub(crate) fn fresh_like(&mut self, number: u32, directories: u32) -> u32 {
        let fresh = self.next + (number % directories + directories - self.next % directories) % directories;
        self.next = fresh + 1;
        fresh
    }

    /// Notes that a name was created.
    pub(crate) fn created(&mut self, number: u32) {
        self.existing.push_back(number);
    }

    /// Takes the oldest name, to be removed or renamed. Without one it returns a new name: the server's refusal is
    /// counted.
    pub(crate) fn take(&mut self) -> u32 {
        self.existing.pop_front().unwrap_or_else(|| self.fresh())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_name_goes_first_and_none_comes_twice() {
        let mut names = TransientNames::default();
        let fresh: Vec<u32> = (0..3).map(|_| names.fresh()).collect();
        assert_eq!(fresh, [0, 1, 2]);
        names.created(1);
        names.created(0);
        assert_eq!([names.take(), names.take(), names.take()], [1, 0, 3]);
        assert_eq!(names.fresh(), 4);
        assert_eq!([names.fresh_like(14, 10), names.fresh_like(14, 10), names.fresh_like(3, 10)], [14, 24, 33]);
        assert_eq!(names.fresh(), 34);
    }
}

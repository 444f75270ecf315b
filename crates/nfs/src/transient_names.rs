//! Names that come and go during the load, so that the file set itself keeps its size.

use std::collections::VecDeque;

/// The names of one kind that a flow has made and not removed, by number.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    there: VecDeque<u32>,
    next: u32,
}

impl Spares {
    /// A name that is not there yet.
    pub(crate) fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// A name that is not there yet and lies in the same directory as `number`: they are dealt out in turn over `directories`.
    pub(crate) fn fresh_like(&mut self, number: u32, directories: u32) -> u32 {
        let fresh = self.next + (number % directories + directories - self.next % directories) % directories;
        self.next = fresh + 1;
        fresh
    }

    /// The name was made.
    pub(crate) fn made(&mut self, number: u32) {
        self.there.push_back(number);
    }

    /// The name that has been there longest; it is to be removed or renamed. If there is none, one that is not there: the
    /// server's refusal is counted.
    pub(crate) fn take(&mut self) -> u32 {
        self.there.pop_front().unwrap_or_else(|| self.fresh())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_name_goes_first_and_none_comes_twice() {
        let mut spares = Spares::default();
        let made: Vec<u32> = (0..3).map(|_| spares.fresh()).collect();
        assert_eq!(made, [0, 1, 2]);
        spares.made(1);
        spares.made(0);
        assert_eq!([spares.take(), spares.take(), spares.take()], [1, 0, 3]);
        assert_eq!(spares.fresh(), 4);
        assert_eq!([spares.fresh_like(14, 10), spares.fresh_like(14, 10), spares.fresh_like(3, 10)], [14, 24, 33]);
        assert_eq!(spares.fresh(), 34);
    }
}

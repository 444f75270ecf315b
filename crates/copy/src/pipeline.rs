//! Stages of a lane: each in a thread of its own, with a short queue between, or all in one thread, each calling the
//! next. A stage does its work ([`Work`]) and does not depend on the difference.

use crate::stage::{Board, Clock};
use crossbeam_channel::{Receiver, Sender};
use linerate_model::CopyStage;

/// Nobody takes any more, or nothing more is to be made: who hears of it ends too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// Receiver of items: a stage, or the queue of a stage in another thread.
pub(crate) trait Stage<T> {
    /// Takes the next one.
    fn take(&mut self, item: T) -> Result<(), Gone>;

    /// Passes on what was kept back, since the next item may take a while.
    fn idle(&mut self) -> Result<(), Gone> {
        Ok(())
    }

    /// Nothing more comes.
    fn end(&mut self) -> Result<(), Gone> {
        Ok(())
    }
}

/// Stage that follows.
pub(crate) type Next<'c, T> = Box<dyn Stage<T> + 'c>;

/// Work of a stage. It takes items one after the other and passes on its results.
pub(crate) trait Work<T> {
    /// Result of the work.
    type Made;

    /// Works on the next one.
    fn work(&mut self, item: T, on: &mut Onward<'_, '_, Self::Made>) -> Result<(), Gone>;

    /// Passes on what it keeps back.
    fn flush(&mut self, _on: &mut Onward<'_, '_, Self::Made>) -> Result<(), Gone> {
        Ok(())
    }

    /// Passes on what is left when nothing more comes.
    fn finish(&mut self, on: &mut Onward<'_, '_, Self::Made>) -> Result<(), Gone> {
        self.flush(on)
    }
}

/// The way on from a stage at work. The time that the next one takes is its own, and not the stage's.
pub(crate) struct Onward<'a, 'c, T> {
    clock: &'a mut Clock<'c>,
    next: &'a mut Next<'c, T>,
}

impl<T> Onward<'_, '_, T> {
    /// Passes something on.
    pub(crate) fn pass(&mut self, item: T) -> Result<(), Gone> {
        let Self { clock, next } = self;
        clock.await_next(|| next.take(item))
    }

    /// Waits for an event before which the following stages must have finished.
    pub(crate) fn wait<W>(&mut self, wait: impl FnOnce() -> W) -> W {
        self.clock.await_next(wait)
    }
}

/// Stage with a clock.
pub(crate) struct Timed<'c, W, M> {
    clock: Clock<'c>,
    work: W,
    next: Next<'c, M>,
}

impl<'c, W, M> Timed<'c, W, M> {
    pub(crate) fn new(board: &'c Board, stage: CopyStage, work: W, next: Next<'c, M>) -> Self {
        let mut clock = board.clock(stage);
        clock.rests();
        Self { clock, work, next }
    }

    fn at_work(&mut self, action: impl FnOnce(&mut W, &mut Onward<'_, 'c, M>) -> Result<(), Gone>) -> Result<(), Gone> {
        let Self { clock, work, next } = self;
        clock.begins();
        let done = action(work, &mut Onward { clock, next });
        clock.rests();
        done
    }
}

impl<T, W: Work<T>> Stage<T> for Timed<'_, W, W::Made> {
    fn take(&mut self, item: T) -> Result<(), Gone> {
        self.at_work(|work, on| work.work(item, on))
    }

    fn idle(&mut self) -> Result<(), Gone> {
        self.at_work(|work, on| work.flush(on))?;
        self.next.idle()
    }

    fn end(&mut self) -> Result<(), Gone> {
        self.at_work(|work, on| work.finish(on))?;
        self.next.end()
    }
}

/// Another thread takes it.
impl<T> Stage<T> for Sender<T> {
    fn take(&mut self, item: T) -> Result<(), Gone> {
        self.send(item).map_err(|_| Gone)
    }
}

/// Receiver after the last stage.
pub(crate) struct Nowhere;

impl Stage<()> for Nowhere {
    fn take(&mut self, (): ()) -> Result<(), Gone> {
        Ok(())
    }
}

/// Has a stage take what comes, until nothing more comes or it has had enough.
pub(crate) fn run<T>(from: &Receiver<T>, mut stage: impl Stage<T>) {
    loop {
        let item = match from.try_recv() {
            Ok(item) => item,
            Err(_) => {
                if stage.idle().is_err() {
                    return;
                }
                match from.recv() {
                    Ok(item) => item,
                    Err(_) => break,
                }
            }
        };
        if stage.take(item).is_err() {
            return;
        }
    }
    // A stage that refuses the rest has a reason, and reports it.
    let _ = stage.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::bounded;
    use std::thread::sleep;
    use std::time::Duration;

    /// Keeps numbers back until there are two, and passes on their sum; it takes a while for each.
    struct Pairs {
        kept: Option<u32>,
        takes: Duration,
    }

    impl Work<u32> for Pairs {
        type Made = u32;

        fn work(&mut self, item: u32, on: &mut Onward<'_, '_, u32>) -> Result<(), Gone> {
            sleep(self.takes);
            match self.kept.take() {
                Some(kept) => on.pass(kept + item),
                None => {
                    self.kept = Some(item);
                    Ok(())
                }
            }
        }

        fn flush(&mut self, on: &mut Onward<'_, '_, u32>) -> Result<(), Gone> {
            self.kept.take().map_or(Ok(()), |kept| on.pass(kept))
        }
    }

    fn pairs<'c>(board: &'c Board, stage: CopyStage, takes: u64, next: Next<'c, u32>) -> Timed<'c, Pairs, u32> {
        Timed::new(board, stage, Pairs { kept: None, takes: Duration::from_millis(takes) }, next)
    }

    #[test]
    fn in_one_thread_each_waits_while_the_others_work() {
        let begun = linerate_sys::clock::now();
        let board = Board::default();
        let (out, sums) = bounded(10);
        let (numbers_in, numbers) = bounded(10);
        (1..=5).for_each(|number| numbers_in.send(number).expect("there is room"));
        drop(numbers_in);
        let second = pairs(&board, CopyStage::Write, 20, Box::new(out));
        run(&numbers, pairs(&board, CopyStage::Read, 2, Box::new(second)));
        assert_eq!(sums.iter().collect::<Vec<_>>(), [10, 5]);
        let stages = board.finish(linerate_units::Nanos::default());
        let first = stages[&CopyStage::Read];
        let second = stages[&CopyStage::Write];
        let ms = |nanos: linerate_units::Nanos| nanos.get() / 1_000_000;
        assert!(ms(first.busy) >= 10 && ms(first.waiting_for_next) >= 60, "{first:?}");
        assert!(ms(second.busy) >= 60 && ms(second.waiting_for_previous) >= 10, "{second:?}");
        // The work of the second is not the first one's too.
        let elapsed = linerate_sys::clock::now() - begun;
        assert!((first.busy + second.busy).get() <= elapsed, "{first:?} {second:?} in {elapsed} ns");
    }

    #[test]
    fn who_takes_no_more_ends_those_before() {
        let board = Board::default();
        let (out, sums) = bounded(10);
        drop(sums);
        let mut stage = pairs(&board, CopyStage::Read, 0, Box::new(out));
        assert_eq!(stage.take(1), Ok(()));
        assert_eq!(stage.take(2), Err(Gone));
    }
}

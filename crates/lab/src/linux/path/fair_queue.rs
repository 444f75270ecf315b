//! Fair queue: each flow has a queue of its own, and the queues take turns (deficit round robin, Shreedhar and Varghese
//! 1995).

use std::collections::{HashMap, VecDeque};

/// Bytes that a flow may send in its turn: a full frame.
const QUANTUM: u64 = 1_514;

/// Queues of flows.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    flows: HashMap<u64, Flow<T>>,
    /// Flows with something to send, in the order of their turns.
    turns: VecDeque<u64>,
    bytes: u64,
}

/// Queue of one flow.
#[derive(Debug)]
struct Flow<T> {
    frames: VecDeque<(u64, T)>,
    bytes: u64,
    /// Bytes that the flow may still send in this turn.
    credit: u64,
}

impl<T> FairQueue<T> {
    pub(super) fn new() -> Self {
        Self { flows: HashMap::new(), turns: VecDeque::new(), bytes: 0 }
    }

    /// Returns the bytes of all frames.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes of the frames of one flow.
    pub(super) fn bytes_of(&self, flow: u64) -> u64 {
        self.flows.get(&flow).map_or(0, |flow| flow.bytes)
    }

    /// Returns the flow with the most bytes.
    pub(super) fn longest(&self) -> Option<u64> {
        self.flows.iter().max_by_key(|(number, flow)| (flow.bytes, **number)).map(|(number, _)| *number)
    }

    /// Queues a frame last in its flow.
    pub(super) fn push(&mut self, flow: u64, bytes: u64, frame: T) {
        self.bytes += bytes;
        let turns = &mut self.turns;
        let queue = self.flows.entry(flow).or_insert_with(|| {
            turns.push_back(flow);
            Flow { frames: VecDeque::new(), bytes: 0, credit: QUANTUM }
        });
        queue.frames.push_back((bytes, frame));
        queue.bytes += bytes;
    }

    /// Takes the next frame.
    pub(super) fn pop(&mut self) -> Option<T> {
        loop {
            let number = *self.turns.front()?;
            let flow = self.flows.get_mut(&number)?;
            let next = flow.frames.front().map_or(0, |(bytes, _)| *bytes);
            if flow.credit < next {
                flow.credit += QUANTUM;
                self.turns.rotate_left(1);
                continue;
            }
            flow.credit -= next;
            flow.bytes -= next;
            self.bytes -= next;
            let (_, frame) = flow.frames.pop_front()?;
            if flow.frames.is_empty() {
                self.flows.remove(&number);
                self.turns.pop_front();
            }
            return Some(frame);
        }
    }

    /// Takes the last frame of a flow.
    pub(super) fn pop_last(&mut self, number: u64) -> Option<T> {
        let flow = self.flows.get_mut(&number)?;
        let (bytes, frame) = flow.frames.pop_back()?;
        flow.bytes -= bytes;
        self.bytes -= bytes;
        if flow.frames.is_empty() {
            self.flows.remove(&number);
            self.turns.retain(|turn| *turn != number);
        }
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_take_turns_by_bytes() {
        let mut queue = FairQueue::new();
        for number in 0..10 {
            queue.push(1, 1_514, (1, number));
        }
        for number in 0..20 {
            queue.push(2, 757, (2, number));
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        // Two short frames for each long one, and each flow in its order.
        for turns in order.chunks(3) {
            assert_eq!(turns.iter().filter(|(flow, _)| *flow == 1).count(), 1, "{order:?}");
        }
        assert!(order.iter().filter(|(flow, _)| *flow == 2).map(|(_, number)| *number).eq(0..20));
        assert_eq!((queue.bytes(), queue.longest()), (0, None));
    }

    #[test]
    fn the_longest_flow_loses_its_last_frame() {
        let mut queue = FairQueue::new();
        queue.push(1, 100, "a");
        queue.push(2, 100, "b");
        queue.push(2, 100, "c");
        assert_eq!(queue.longest(), Some(2));
        assert_eq!(queue.pop_last(2), Some("c"));
        assert_eq!((queue.bytes_of(2), queue.bytes()), (100, 200));
        assert_eq!(queue.pop_last(1), Some("a"));
        assert_eq!((queue.pop(), queue.pop()), (Some("b"), None));
    }

    #[test]
    fn a_frame_longer_than_a_turn_passes() {
        let mut queue = FairQueue::new();
        queue.push(1, 9_216, "jumbo");
        queue.push(2, 60, "short");
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some("short"), Some("jumbo"), None]);
    }
}

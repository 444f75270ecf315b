//! Start-up: TCP had not yet grown to its rate when the window closed.

use super::Opinion;
use super::facts::{FlowFacts, GROWN, HELD_BACK, Work, time};
use linerate_model::{LimitPlace, MessageValue, Support, message};

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    if facts.work != Work::Tcp {
        return None;
    }
    let (tcp, course) = (facts.tcp.as_ref()?, facts.course.as_ref()?);
    let sender = course.tcp.as_ref()?;
    if !(course.rises || sender.window_rises) || course.growth < GROWN || sender.window_growth < GROWN {
        return Some(Opinion::new(
            Support::Against,
            message!("start-up-no-growth", "The rate did not grow with the congestion window."),
        ));
    }
    let text = message!(
        "start-up-growth",
        "The rate grew throughout the window, to {rate} times that of its first third, and the congestion window \
         to {window} times: at a round trip of {time} TCP had not reached its rate yet.",
        rate = MessageValue::number(course.growth, 1),
        window = MessageValue::number(sender.window_growth, 1),
        time = time(tcp.min_rtt)
    );
    let next = message!(
        "start-up-next",
        "Warm up longer (--warmup) and measure longer (--time): TCP takes many round trips to reach its rate."
    );
    // What stands in a queue, or fills the receiver's window, has met another limit already.
    let window_stands = tcp.window_limited >= HELD_BACK && !sender.peer_window_rises;
    if tcp.queued() || tcp.fills_window() || window_stands {
        return Some(Opinion::new(Support::Hint, text).then(next));
    }
    if sender.has_lost || tcp.retransmitted > 0.0 {
        let text =
            text.and(message!("start-up-lost", "But something was lost before or then, after which TCP grows slowly."));
        return Some(Opinion::new(Support::Hint, text).then(next));
    }
    Some(Opinion::new(Support::Strong, text).at(LimitPlace::SenderHost).then(next).despite_steal())
}

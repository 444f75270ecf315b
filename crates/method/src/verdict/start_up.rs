//! Start-up: TCP had not yet grown to its rate when the window closed.

use super::Opinion;
use super::facts::{FlowFacts, GROWN, HELD_BACK, Work, time};
use linerate_model::{LimitPlace, Support};

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    if facts.work != Work::Tcp {
        return None;
    }
    let (tcp, course) = (facts.tcp.as_ref()?, facts.course.as_ref()?);
    let sender = course.tcp.as_ref()?;
    if !(course.rises || sender.window_rises) || course.growth < GROWN || sender.window_growth < GROWN {
        return Some(Opinion::new(Support::Against, "The rate did not grow with the congestion window."));
    }
    let text = format!(
        "The rate grew throughout the window, to {:.1} times that of its first third, and the congestion window to {:.1} times: \
         at a round trip of {} TCP had not reached its rate yet.",
        course.growth,
        sender.window_growth,
        time(tcp.min_rtt)
    );
    let next = "Warm up longer (--warmup) and measure longer (--time): TCP takes many round trips to reach its rate.";
    // What stands in a queue, or fills the receiver's window, has met another limit already.
    let window_stands = tcp.window_limited >= HELD_BACK && !sender.peer_window_rises;
    if tcp.queued() || tcp.fills_window() || window_stands {
        return Some(Opinion::new(Support::Hint, text).then(next));
    }
    if sender.has_lost || tcp.retransmitted > 0.0 {
        let text = format!("{text} But something was lost before or then, after which TCP grows slowly.");
        return Some(Opinion::new(Support::Hint, text).then(next));
    }
    Some(Opinion::new(Support::Strong, text).at(LimitPlace::SenderHost).then(next).despite_steal())
}

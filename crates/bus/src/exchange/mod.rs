//! Requests to an agent's API and their answers, as messages of NATS.
//!
//! | subject                                  | published by | content                                                  |
//! |------------------------------------------|--------------|----------------------------------------------------------|
//! | `linerate.FLEET.agent.NAME.api`          | caller       | a request; its reply subject is chosen by the caller     |
//! | `linerate.FLEET.from.NAME.reply.ID`      | agent        | the parts of the answer, numbered                        |
//! | `linerate.FLEET.agent.NAME.alive.ID`     | caller       | the caller still reads the answer                        |
//! | `linerate.FLEET.agent.NAME.cancel.ID`    | caller       | the caller has dropped the answer                        |
//!
//! NATS delivers a message at most once. A missing part breaks an answer, as a broken connection does, and the caller
//! repeats its request. An agent drops an answer whose caller is silent for [`SILENCE`].

mod call;
mod frame;
mod queue;

pub use call::{CallError, Response, ResponseBody};
pub use frame::{BadMessage, Head, Request};
pub use queue::{Arrival, Call, RequestQueue};

use std::time::Duration;

/// Interval at which a caller reports that it still reads an answer.
const ALIVE: Duration = Duration::from_secs(5);

/// Silence of a caller after which its answer is dropped.
const SILENCE: Duration = Duration::from_secs(15);

/// Most bytes of one part of an answer. All NATS servers take messages of this size.
const PART: usize = 256 << 10;

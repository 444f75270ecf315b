//! Entry points for fuzzing: what holders of a URL, and strangers that pair, ask of an agent, up to where work would begin.

use crate::admission::admit;
use crate::engines::table;
use crate::grant::Grant;
use crate::{EngineOptions, Limits};
use linerate_control::Resolve;
use linerate_control::pairing::{PairingCode, PairingEnd, PairingMessage, PairingProof};
use linerate_engine::Engine;
use linerate_model::{Assignment, Order};
use std::sync::LazyLock;

/// The engines of an agent without options.
static ENGINES: LazyLock<Vec<Box<dyn Engine>>> = LazyLock::new(|| table(&EngineOptions::default()));

/// Reads a request's body. Its first byte chooses the route; an assignment is weighed as if it were the only one.
pub fn request(bytes: &[u8]) {
    let Some((route, body)) = bytes.split_first() else { return };
    match route % 6 {
        0 => drop(serde_json::from_slice::<Order>(body)),
        1 => drop(serde_json::from_slice::<Vec<String>>(body)),
        2 => drop(serde_json::from_slice::<Resolve>(body)),
        4 => drop(serde_json::from_slice::<PairingMessage>(body).map(|theirs| pair(&theirs))),
        5 => drop(serde_json::from_slice::<PairingProof>(body)),
        _ => drop(serde_json::from_slice::<Assignment>(body).map(|assignment| weigh(&assignment))),
    }
}

fn pair(theirs: &PairingMessage) {
    let (end, _) = PairingEnd::agent(&PairingCode::generate());
    let _ = end.finish(&theirs.message);
}

fn weigh(assignment: &Assignment) {
    let mut takers = ENGINES.iter().filter(|engine| engine.takes(&assignment.task));
    let engine = takers.next().expect("each task has an engine");
    assert!(takers.next().is_none(), "each task has one engine only");
    if let Ok(demand) = engine.demand(assignment) {
        let limits = Limits::default();
        let _ = admit(&limits, &Grant::of_owner(&limits), assignment.task.kind(), &demand, std::iter::empty(), &[]);
    }
}

//! Whether the ports keep their links while a trial runs.
//!
//! Frames that a dead link swallowed are not the device's loss: such a trial fails, and says which port it was.

use crate::plan::Plan;
use linerate_sys::netlink::{Link, Route};
use std::cell::RefCell;

/// Looks after the ports of a trial.
pub(crate) struct Carrier {
    state: RefCell<State>,
}

struct State {
    route: Route,
    ports: Vec<(u32, String)>,
    /// How often each port's carrier had come or gone when it was first looked at. Attaching a program may take it away for
    /// a while, so that is not before the trial has begun.
    changes: Vec<Option<u32>>,
    lost: Option<String>,
}

impl Carrier {
    pub(crate) fn of(plan: &Plan) -> Result<Self, linerate_sys::Error> {
        let ports: Vec<_> = plan.ports.iter().map(|port| (port.link, port.interface.clone())).collect();
        let changes = vec![None; ports.len()];
        Ok(Self { state: RefCell::new(State { route: Route::open()?, ports, changes, lost: None }) })
    }

    /// Looks at the links. Returns the port that lost its link, now or before.
    pub(crate) fn look(&self) -> Option<String> {
        let state = &mut *self.state.borrow_mut();
        if state.lost.is_none()
            && let Ok(links) = state.route.links()
        {
            state.note(&links);
        }
        state.lost.clone()
    }

    /// The port that lost its link.
    pub(crate) fn lost(self) -> Option<String> {
        self.state.into_inner().lost
    }
}

impl State {
    fn note(&mut self, links: &[Link]) {
        for ((index, name), changes) in self.ports.iter().zip(&mut self.changes) {
            let steady = links
                .iter()
                .find(|link| link.index == *index)
                .is_some_and(|link| link.up && *changes.get_or_insert(link.carrier_changes) == link.carrier_changes);
            if !steady {
                self.lost = Some(name.clone());
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_went_and_came_back_was_lost() {
        let link = |index, up, carrier_changes| Link { index, up, carrier_changes, ..Link::default() };
        let lost_after = |looks: &[[Link; 2]]| {
            let ports = vec![(1, "p0".to_owned()), (2, "p1".to_owned())];
            let mut state = State {
                route: Route::open().expect("a netlink socket needs no privilege"),
                ports,
                changes: vec![None; 2],
                lost: None,
            };
            looks.iter().for_each(|links| state.note(links));
            state.lost
        };
        let fine = [link(1, true, 2), link(2, true, 7)];
        assert_eq!(lost_after(&[fine.clone(), fine.clone()]), None);
        assert_eq!(lost_after(&[fine.clone(), [link(1, true, 2), link(2, false, 8)]]), Some("p1".to_owned()));
        assert_eq!(lost_after(&[fine.clone(), [link(1, true, 4), link(2, true, 7)]]), Some("p0".to_owned()));
        assert_eq!(lost_after(&[fine, [link(3, true, 2), link(2, true, 7)]]), Some("p0".to_owned()));
    }
}

//! How each core spent the window.

use linerate_model::CoreUse;

/// Each core's time since boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CoreTimes(Vec<CoreUse>);

impl CoreTimes {
    pub(crate) fn new(cores: Vec<CoreUse>) -> Self {
        Self(cores)
    }

    /// Each core's time since the machine was started.
    pub(crate) fn since_start(&self) -> &[CoreUse] {
        &self.0
    }

    /// Returns the number of online cores.
    pub(crate) fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Returns the difference from `before` for cores that were online both times.
    pub(crate) fn since(&self, before: &Self) -> Vec<CoreUse> {
        let both = self.0.iter().filter_map(|now| Some((now, before.0.iter().find(|then| then.core == now.core)?)));
        both.map(|(now, then)| now.since(then)).collect()
    }
}

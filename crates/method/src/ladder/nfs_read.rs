//! NFS reads: file data from the server's memory.

use super::{Facts, Figure, LadderRequest, Layer, nfs};
use linerate_model::{LayerName, Message, Task};

const MIX: &str = "read";

pub(super) struct NfsRead;

impl Layer for NfsRead {
    fn name(&self) -> LayerName {
        LayerName::NfsRead
    }

    fn trials(&self, request: &LadderRequest) -> Vec<(String, Task)> {
        nfs::trials(MIX, request)
    }

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, Message> {
        nfs::figure(MIX, facts)
    }

    fn advice(&self, facts: &Facts<'_>) -> Option<Message> {
        nfs::advice(MIX, facts)
    }
}

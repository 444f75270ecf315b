//! NFS writes: file data to the server's memory, committed now and then.

use super::{Facts, Figure, LadderRequest, Layer, nfs};
use linerate_model::{LayerName, Message, Task};

const MIX: &str = "write";

pub(super) struct NfsWrite;

impl Layer for NfsWrite {
    fn name(&self) -> LayerName {
        LayerName::NfsWrite
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

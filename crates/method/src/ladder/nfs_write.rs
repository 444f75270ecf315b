//! NFS writes: file data to the server's memory, committed now and then.

use super::{Asked, Facts, Figure, Layer, nfs};
use linerate_model::{RungName, Workload};

const NAME: &str = "nfs tcp write";

pub(super) struct NfsWrite;

impl Layer for NfsWrite {
    fn name(&self) -> RungName {
        RungName::NfsWrite
    }

    fn trials(&self, asked: &Asked) -> Vec<(String, Workload)> {
        nfs::trials(NAME, "write", asked)
    }

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, String> {
        nfs::figure(NAME, facts)
    }

    fn advice(&self, facts: &Facts<'_>) -> String {
        nfs::advice(NAME, facts)
    }
}

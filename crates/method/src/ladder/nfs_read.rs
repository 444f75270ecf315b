//! NFS reads: file data from the server's memory.

use super::{Asked, Facts, Figure, Layer, nfs};
use linerate_model::{RungName, Workload};

const NAME: &str = "nfs tcp read";

pub(super) struct NfsRead;

impl Layer for NfsRead {
    fn name(&self) -> RungName {
        RungName::NfsRead
    }

    fn trials(&self, asked: &Asked) -> Vec<(String, Workload)> {
        nfs::trials(NAME, "read", asked)
    }

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, String> {
        nfs::figure(NAME, facts)
    }

    fn advice(&self, facts: &Facts<'_>) -> String {
        nfs::advice(NAME, facts)
    }
}

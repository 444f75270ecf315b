//! Checks an NFS load as far as possible without a server.

use linerate_model::{NfsOperation, NfsTask, Transport};
use linerate_oncrpc::RpcError;

/// Checks everything that can be checked without a server.
pub(crate) fn check(spec: &NfsTask) -> Result<(), RpcError> {
    let asked = |text: String| Err(RpcError::InvalidRequest(text));
    spec.mix.check().map_err(|error| RpcError::InvalidRequest(error.to_string()))?;
    spec.check().and_then(|()| spec.files.check()).map_err(|error| RpcError::InvalidRequest(error.to_string()))?;
    if !spec.mix.needs_files() {
        return Ok(());
    }
    let unit = NfsTask::UNIT;
    let transfer = spec.transfer_bytes.get();
    let file = spec.files.file_bytes.get();
    let (over, most) = match spec.net.transport {
        Transport::Tcp => ("TCP", NfsTask::TCP_MAXIMUM),
        Transport::Udp => ("UDP", NfsTask::UDP_MAXIMUM),
    };
    if !(unit..=most).contains(&transfer) || !transfer.is_multiple_of(unit) {
        return asked(format!(
            "transfers of {transfer} bytes over {over}: choose {unit} to {most}, a multiple of {unit}"
        ));
    }
    if file < unit || !file.is_multiple_of(unit) {
        return asked(format!("files of {file} bytes: choose a multiple of {unit}, as in 144KiB"));
    }
    let set = spec.files;
    if set.directories == 0 {
        return asked("0 directories: files lie in directories, choose 1 or more".to_owned());
    }
    if set.files < u32::from(spec.net.flows) {
        return asked(format!(
            "{} files for {} connections: each needs files of its own; ask for as many files or fewer connections",
            set.files, spec.net.flows
        ));
    }
    if set.symlinks == 0 && spec.mix.percent(NfsOperation::Readlink) > 0.0 {
        return asked(format!("0 symbolic links: mix `{}` reads links, choose 1 or more", spec.mix.name));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{FileSet, NfsMix};
    use linerate_units::ByteCount;

    #[test]
    fn what_cannot_be_done_is_said_beforehand() {
        let plain = || NfsTask::plain(Transport::Udp, NfsMix::named("sfs97-like").expect("built in"));
        check(&plain()).expect("the defaults can be done");
        type Change = fn(&mut NfsTask);
        let changes: [(Change, &str); 9] = [
            (|spec| spec.outstanding = 5_000, "choose 1 to 4096"),
            (|spec| spec.transfer_bytes = ByteCount::new(64 << 10), "choose 1024 to 61440"),
            (|spec| spec.transfer_bytes = ByteCount::new(1_500), "a multiple of 1024"),
            (|spec| spec.files.file_bytes = ByteCount::new(0), "files of 0 bytes"),
            (|spec| spec.files = FileSet { files: 900_000, ..spec.files }, "fewer or smaller"),
            (|spec| spec.files.directories = 0, "0 directories"),
            (|spec| spec.files.files = 0, "0 files for 1 connections"),
            (|spec| spec.files.symlinks = 0, "reads links"),
            (|spec| spec.mix.percent.retain(|operation, _| *operation != NfsOperation::Read), "add up to 82"),
        ];
        for (change, needle) in changes {
            let mut spec = plain();
            change(&mut spec);
            let error = check(&spec).expect_err(needle).to_string();
            assert!(error.contains(needle), "{error}");
        }
        let mut null = NfsTask::plain(Transport::Tcp, NfsMix::named("null").expect("built in"));
        null.files = FileSet { files: 0, directories: 0, ..null.files };
        check(&null).expect("null calls need no files");
    }
}

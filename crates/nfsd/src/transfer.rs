//! The procedures that carry a file's data: READ, WRITE and COMMIT (RFC 1813 sections 3.3.6, 3.3.7 and 3.3.21).

use crate::arguments::Arguments;
use crate::reply::{answer, attributes, unchanged};
use crate::store::Store;
use linerate_oncrpc::message::Refused;
use nfs3_types::nfs3::{
    COMMIT3resfail, COMMIT3resok, Nfs3Option, READ3res, READ3resfail, READ3resok, WRITE3resfail, WRITE3resok, nfsstat3,
    stable_how, writeverf3,
};
use nfs3_types::xdr_codec::{Opaque, Pack};

/// Size of the results of a successful READ before the data: status, attributes, count, end of file, length.
const READ_HEAD: usize = 4 + (4 + 84) + 4 + 4 + 4;

/// READ: the store appends the data to the reply, and what stands before them is filled in afterwards.
pub(super) fn read(
    store: &dyn Store,
    maximum: u32,
    arguments: &mut Arguments<'_>,
    reply: &mut Vec<u8>,
) -> Result<(), Refused> {
    let (file, offset, count) = (arguments.handle()?, arguments.take::<u64>()?, arguments.take::<u32>()?);
    let start = reply.len();
    reply.resize(start + READ_HEAD, 0);
    let done = file.and_then(|file| store.read(file, offset, count.min(maximum), reply));
    let (eof, file_attributes) = match done {
        Ok(done) => done,
        Err(status) => {
            reply.truncate(start);
            let failed = || READ3resfail { file_attributes: attributes(store, file) };
            answer::<READ3resok<'_>, _>(reply, Err(status), failed);
            return Ok(());
        }
    };
    let count = (reply.len() - start - READ_HEAD) as u32;
    let nothing = Opaque::borrowed(&[]);
    let results = READ3resok { file_attributes: Nfs3Option::Some(file_attributes), count, eof, data: nothing };
    let mut head = &mut reply[start..start + READ_HEAD];
    READ3res::Ok(results).pack(&mut head).expect("there is room for exactly this");
    let length_at = start + READ_HEAD - 4;
    reply[length_at..length_at + 4].copy_from_slice(&count.to_be_bytes());
    reply.resize(start + READ_HEAD + (count as usize).next_multiple_of(4), 0);
    Ok(())
}

/// WRITE: what is more than `maximum` is left for another call.
pub(super) fn write(
    store: &dyn Store,
    maximum: u32,
    arguments: &mut Arguments<'_>,
    reply: &mut Vec<u8>,
) -> Result<(), Refused> {
    let (file, offset, count) = (arguments.handle()?, arguments.take::<u64>()?, arguments.take::<u32>()?);
    let (stable, data) = (arguments.take::<stable_how>()?, arguments.opaque()?);
    let written = count.min(maximum);
    let done = file.and_then(|file| {
        if data.len() != count as usize {
            return Err(nfsstat3::NFS3ERR_INVAL);
        }
        let file_wcc = store.write(file, offset, &data[..written as usize], stable)?;
        Ok(WRITE3resok { file_wcc, count: written, committed: stable, verf: writeverf3(store.verifier()) })
    });
    answer(reply, done, || WRITE3resfail { file_wcc: unchanged(store, file) });
    Ok(())
}

/// COMMIT: always of the whole file, as RFC 1813 section 3.3.21 allows.
pub(super) fn commit(store: &dyn Store, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Result<(), Refused> {
    let (file, _offset, _count) = (arguments.handle()?, arguments.take::<u64>()?, arguments.take::<u32>()?);
    let done = file.and_then(|file| store.commit(file));
    let done = done.map(|file_wcc| COMMIT3resok { file_wcc, verf: writeverf3(store.verifier()) });
    answer(reply, done, || COMMIT3resfail { file_wcc: unchanged(store, file) });
    Ok(())
}

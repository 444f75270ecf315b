//! Operations of one flow, and the results of its answers.

use crate::answers::{self, Answer, Verifier};
use crate::calls::{Ask, procedure};
use crate::content::mixed;
use crate::files::{Files, Span};
use crate::operation_mix::OperationMix;
use crate::session::{Session, malformed};
use crate::set::{self, Set};
use crate::status;
use crate::transient_names::TransientNames;
use linerate_model::{NfsOperation, NfsTask};
use linerate_oncrpc::RpcError;
use linerate_oncrpc::message::{Procedure, Refused, Reply};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

/// Operations of one flow.
#[derive(Debug)]
pub(crate) struct Work {
    flow: u16,
    /// From which all that is drawn by chance follows.
    seed: u64,
    /// File set; `None` if no operation works on files.
    set: Option<Arc<Set>>,
    operations: OperationMix,
    random: SmallRng,
    files: Files,
    names: TransientNames,
    directories: TransientNames,
    /// Writes are stable when they are answered.
    stable: bool,
    /// Write verifier of the server, once it sent one.
    verifier: Option<Verifier>,
    arguments: Vec<u8>,
    data: Vec<u8>,
    /// Rooms of answered reads, for the next ones.
    rooms: Vec<Vec<u32>>,
}

/// An operation in flight: what must be known when it is answered.
#[derive(Debug)]
pub(crate) struct PendingCall {
    pub(crate) operation: NfsOperation,
    subject: Subject,
}

#[derive(Debug)]
enum Subject {
    None,
    Read {
        span: Span,
        oldest: Vec<u32>,
    },
    Write(Span),
    /// A name that is to be made.
    Name(u32),
    Directory(u32),
    /// The link that is read, by number.
    Link(usize),
}

/// Result of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    /// Why it failed, by the name of a status.
    pub(crate) failed: Option<Cow<'static, str>>,
    /// Bytes of file data read.
    pub(crate) read: u64,
    /// Bytes of file data written.
    pub(crate) written: u64,
    /// Bytes read that were not what had been written.
    pub(crate) corrupt: u64,
}

impl Digest {
    fn failed(why: impl Into<Cow<'static, str>>) -> Self {
        Self { failed: Some(why.into()), ..Self::default() }
    }
}

impl Work {
    /// Makes the operations of `flow` on the files of `set`.
    pub(crate) fn new(spec: &NfsTask, flow: u16, set: Option<Arc<Set>>) -> Self {
        let seed = mixed(spec.seed ^ mixed(u64::from(flow) + 1));
        Self {
            flow,
            seed,
            set,
            operations: OperationMix::new(&spec.mix, seed),
            random: SmallRng::seed_from_u64(mixed(seed)),
            files: Files::new(spec, flow),
            names: TransientNames::default(),
            directories: TransientNames::default(),
            stable: !spec.mix.commits(),
            verifier: None,
            arguments: Vec::new(),
            data: Vec::new(),
            rooms: Vec::new(),
        }
    }

    /// The seed of the flow's arrivals.
    pub(crate) fn arrivals(&self) -> u64 {
        mixed(self.seed ^ 0x61)
    }

    /// Makes the names that removals and renames will need before the load has made any: as many as two batches and all
    /// that is under way could take.
    pub(crate) fn stock(&mut self, session: &mut Session<'_>, outstanding: u16) -> Result<(), RpcError> {
        let Some(set) = self.set.clone() else { return Ok(()) };
        let need = |operations: &[NfsOperation]| {
            let max_names: usize = operations.iter().map(|operation| self.operations.max_per_batch(*operation)).sum();
            if max_names == 0 { 0 } else { 2 * max_names + usize::from(outstanding) }
        };
        let names = need(&[NfsOperation::Remove, NfsOperation::Rename]);
        let directories = need(&[NfsOperation::Rmdir]);
        let server = session.caller.server();
        let refused = |name: String| {
            move |answer: Answer<'_>| match answer {
                Answer::Failed(status) => Err(RpcError::Refused {
                    server,
                    what: format!("making `{name}`"),
                    reason: format!("{}{}", status::name(status), status::remedy(status)),
                }),
                _ => Ok(()),
            }
        };
        let flow = self.flow;
        let what = "making names to remove";
        session.run(
            what,
            names,
            |n, into| Ask::Create(set.directory_of(n as u32), set::spare_name(flow, n as u32).as_bytes()).pack(into),
            |n, answer| refused(set::spare_name(flow, n as u32))(answer),
        )?;
        session.run(
            what,
            directories,
            |n, into| {
                Ask::Mkdir(set.directory_of(n as u32), set::spare_directory_name(flow, n as u32).as_bytes()).pack(into)
            },
            |n, answer| refused(set::spare_directory_name(flow, n as u32))(answer),
        )?;
        for (names, count) in [(&mut self.names, names), (&mut self.directories, directories)] {
            for _ in 0..count {
                let number = names.fresh();
                names.created(number);
            }
        }
        Ok(())
    }

    /// Draws the next operation: what it is, and the call to make.
    pub(crate) fn next(&mut self) -> (PendingCall, Procedure, &[u8]) {
        let operation = self.operations.next();
        let subject = self.pack(operation);
        (PendingCall { operation, subject }, procedure(operation), &self.arguments)
    }

    /// Packs the arguments of the next `operation`.
    fn pack(&mut self, operation: NfsOperation) -> Subject {
        let Self { flow, set, random, files, names, directories, arguments: into, .. } = self;
        let flow = *flow;
        let Some(set) = set else {
            debug_assert_eq!(operation, NfsOperation::Null, "all others work on files");
            Ask::Null.pack(into);
            return Subject::None;
        };
        let mut any = |of: usize| random.random_range(0..of);
        let fresh = |number: u32| (set.directory_of(number), set::spare_name(flow, number));
        match operation {
            NfsOperation::Null => Ask::Null.pack(into),
            NfsOperation::Getattr => Ask::Getattr(&set.files[any(set.files.len())]).pack(into),
            NfsOperation::Setattr => Ask::Touch(&set.files[any(set.files.len())]).pack(into),
            NfsOperation::Lookup => {
                let file = any(set.files.len());
                Ask::Lookup(set.directory_of(file as u32), set::file_name(file).as_bytes()).pack(into)
            }
            NfsOperation::Access => Ask::Access(&set.files[any(set.files.len())]).pack(into),
            NfsOperation::Readdir => Ask::Readdir(&set.directories[any(set.directories.len())]).pack(into),
            NfsOperation::Readdirplus => Ask::Readdirplus(&set.directories[any(set.directories.len())]).pack(into),
            NfsOperation::Fsstat => Ask::Fsstat(&set.export).pack(into),
            NfsOperation::Fsinfo => Ask::Fsinfo(&set.export).pack(into),
            NfsOperation::Pathconf => Ask::Pathconf(&set.top).pack(into),
            NfsOperation::Commit => Ask::Commit(&set.files[files.last_written()]).pack(into),
            NfsOperation::Readlink => {
                let link = any(set.links.len());
                Ask::Readlink(&set.links[link]).pack(into);
                return Subject::Link(link);
            }
            NfsOperation::Read => {
                let span = files.next_read(random);
                let mut oldest = self.rooms.pop().unwrap_or_default();
                oldest.clear();
                files.oldest(&span, &mut oldest);
                let file = &set.files[files.number(&span)];
                Ask::Read { file, offset: span.offset(), count: span.bytes() }.pack(into);
                return Subject::Read { span, oldest };
            }
            NfsOperation::Write => {
                self.data.clear();
                let span = files.next_write(random, &mut self.data);
                let file = &set.files[files.number(&span)];
                Ask::Write { file, offset: span.offset(), data: &self.data, stable: self.stable }.pack(into);
                return Subject::Write(span);
            }
            NfsOperation::Create => {
                let number = names.fresh();
                let (directory, name) = fresh(number);
                Ask::Create(directory, name.as_bytes()).pack(into);
                return Subject::Name(number);
            }
            NfsOperation::Symlink => {
                let number = names.fresh();
                let (directory, name) = fresh(number);
                let to = set::link_target(number as usize, set.files.len());
                Ask::Symlink { directory, name: name.as_bytes(), to: to.as_bytes() }.pack(into);
                return Subject::Name(number);
            }
            NfsOperation::Mkdir => {
                let number = directories.fresh();
                Ask::Mkdir(set.directory_of(number), set::spare_directory_name(flow, number).as_bytes()).pack(into);
                return Subject::Directory(number);
            }
            NfsOperation::Remove => {
                let (directory, name) = fresh(names.take());
                Ask::Remove(directory, name.as_bytes()).pack(into)
            }
            NfsOperation::Rmdir => {
                let number = directories.take();
                Ask::Rmdir(set.directory_of(number), set::spare_directory_name(flow, number).as_bytes()).pack(into)
            }
            NfsOperation::Rename => {
                let old = names.take();
                // The new name lies in the same directory.
                let new = names.fresh_like(old, set.directories.len() as u32);
                let (directory, from) = fresh(old);
                Ask::Rename { directory, from: from.as_bytes(), to: set::spare_name(flow, new).as_bytes() }.pack(into);
                return Subject::Name(new);
            }
        };
        Subject::None
    }

    /// Digests the server's reply to `pending`. `again` means that calls have been sent twice (UDP): a late copy of a
    /// write may have undone a newer one. Fails if the reply is malformed.
    pub(crate) fn digest(
        &mut self,
        pending: PendingCall,
        reply: Reply<'_>,
        server: SocketAddr,
        again: bool,
    ) -> Result<Digest, RpcError> {
        let PendingCall { operation, subject } = pending;
        let results = match reply {
            Reply::Accepted(results) => results,
            Reply::Refused(why) => {
                self.give_up(subject);
                return Ok(Digest::failed(error_name(why)));
            }
            Reply::Lost => {
                self.give_up(subject);
                return Ok(Digest::failed("no reply"));
            }
        };
        let answer = answers::read(operation, results).ok_or_else(|| malformed(server, operation))?;
        if let Answer::Failed(status) = answer {
            self.give_up(subject);
            return Ok(Digest::failed(status::name(status)));
        }
        Ok(match (subject, answer) {
            (Subject::Read { span, mut oldest }, Answer::Data { bytes, eof }) => {
                if again {
                    oldest.fill(0);
                }
                let corrupt = self.files.wrong(&span, bytes, eof, &oldest);
                self.rooms.push(oldest);
                Digest { read: bytes.len() as u64, corrupt, ..Digest::default() }
            }
            (Subject::Write(span), Answer::Written { count, verifier }) => {
                self.files.written(&span, count == span.bytes());
                let is_stable = self.stable || self.remembers(verifier);
                if is_stable { Digest { written: count.into(), ..Digest::default() } } else { Digest::failed(FORGOT) }
            }
            (_, Answer::Committed(verifier)) => {
                if self.remembers(verifier) {
                    Digest::default()
                } else {
                    Digest::failed(FORGOT)
                }
            }
            (Subject::Name(number), _) => {
                self.names.created(number);
                Digest::default()
            }
            (Subject::Directory(number), _) => {
                self.directories.created(number);
                Digest::default()
            }
            (Subject::Link(link), Answer::Path(path)) => {
                let files = self.set.as_ref().map_or(0, |set| set.files.len());
                let right = path == set::link_target(link, files).as_bytes();
                Digest { corrupt: if right { 0 } else { path.len().max(1) as u64 }, ..Digest::default() }
            }
            _ => Digest::default(),
        })
    }

    /// `pending` was never answered.
    pub(crate) fn unanswered(&mut self, pending: PendingCall) {
        self.give_up(pending.subject);
    }

    fn give_up(&mut self, subject: Subject) {
        match subject {
            Subject::Write(span) => self.files.written(&span, false),
            Subject::Read { oldest, .. } => self.rooms.push(oldest),
            _ => {}
        }
    }

    /// Whether the server has forgotten nothing since its last verifier: RFC 1813 section 3.3.7.
    fn remembers(&mut self, verifier: Verifier) -> bool {
        let remembers = *self.verifier.get_or_insert(verifier) == verifier;
        if !remembers {
            self.verifier = Some(verifier);
            self.files.doubt();
        }
        remembers
    }
}

/// Error of an operation during which the server was restarted.
const FORGOT: &str = "the write verifier changed";

/// The name of what a server that refuses a call says.
fn error_name(why: Refused) -> &'static str {
    match why {
        Refused::ProgramUnavailable => "PROG_UNAVAIL",
        Refused::ProgramMismatch { .. } => "PROG_MISMATCH",
        Refused::ProcedureUnavailable => "PROC_UNAVAIL",
        Refused::GarbageArguments => "GARBAGE_ARGS",
        Refused::SystemError => "SYSTEM_ERR",
        Refused::RpcMismatch { .. } => "RPC_MISMATCH",
        Refused::Auth(_) => "AUTH_ERROR",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::handle;
    use crate::content::{BLOCK, BlockId};
    use linerate_model::{IoSizes, NfsMix, Transport};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn work(percent: &[(NfsOperation, f64)]) -> Work {
        let mix = NfsMix::new("test", percent.iter().copied().collect::<BTreeMap<_, _>>(), IoSizes::Whole);
        let spec = NfsTask::plain(Transport::Udp, mix.expect("valid"));
        let handles = |count: u32| (0..count).map(|n| handle(&n.to_be_bytes())).collect();
        let set = Set {
            export: handle(b"export"),
            name: "linerate-test-0".to_owned(),
            top: handle(b"top"),
            directories: handles(spec.files.directories),
            files: handles(spec.files.files),
            links: handles(spec.files.symlinks),
        };
        Work::new(&spec, 0, Some(Arc::new(set)))
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    fn digest(work: &mut Work, pending: PendingCall, reply: Reply<'_>) -> Result<Digest, RpcError> {
        work.digest(pending, reply, "192.0.2.1:2049".parse().expect("an address"), false)
    }

    /// Results of a READ of the first 8 KiB of file 0, with one byte changed if `damaged`.
    fn results(damaged: bool) -> Vec<u8> {
        let mut data = Vec::new();
        (0..8).for_each(|block| BlockId { seed: 1, file: 0, block }.write(0, &mut data));
        data[5 * BLOCK + 77] ^= u8::from(damaged);
        // NFS3_OK, no attributes, count, not the end, length.
        [words(&[0, 0, 8192, 0, 8192]), data].concat()
    }

    #[test]
    fn what_was_read_is_compared_with_what_must_be_there() {
        for (damaged, corrupt) in [(false, 0), (true, 1)] {
            let mut work = work(&[(NfsOperation::Read, 100.0)]);
            let (pending, to, arguments) = work.next();
            assert_eq!((to.procedure, arguments), (6, &words(&[4, 0, 0, 0, 8192])[..]));
            let digest = digest(&mut work, pending, Reply::Accepted(&results(damaged))).expect("results");
            assert_eq!(digest, Digest { read: 8192, corrupt, ..Digest::default() });
        }
    }

    #[test]
    fn failures_are_told_by_name() {
        for (reply, expected) in [
            (Reply::Accepted(&[0, 0, 0, 70, 0, 0, 0, 0][..]), "NFS3ERR_STALE"),
            (Reply::Refused(Refused::GarbageArguments), "GARBAGE_ARGS"),
            (Reply::Lost, "no reply"),
        ] {
            let mut work = work(&[(NfsOperation::Lookup, 100.0)]);
            let pending = work.next().0;
            assert_eq!(digest(&mut work, pending, reply).expect("a digest"), Digest::failed(expected));
        }
    }

    #[test]
    fn a_server_that_forgot_what_it_had_not_committed_is_found_out() {
        let mut work = work(&[(NfsOperation::Write, 99.0), (NfsOperation::Commit, 1.0)]);
        let mut failed = 0;
        for turn in 0..100u32 {
            let (pending, ..) = work.next();
            // The verifier changes half-way.
            let verifier = [0, turn / 50];
            let results = match pending.operation {
                NfsOperation::Write => [words(&[0, 0, 0, 8192, 0]), words(&verifier)].concat(),
                _ => [words(&[0, 0, 0]), words(&verifier)].concat(),
            };
            let digest = digest(&mut work, pending, Reply::Accepted(&results)).expect("results");
            assert!(digest.failed.as_deref().is_none_or(|why| why == FORGOT));
            failed += u32::from(digest.failed.is_some());
        }
        assert_eq!(failed, 1);
    }

    proptest! {
        #[test]
        fn no_reply_does_any_harm(turns in proptest::collection::vec((any::<bool>(), proptest::collection::vec(0..4u32, 0..40)), 1..20)) {
            let mut work = work(&NfsMix::named("sfs97-like").expect("built in").percent.into_iter().collect::<Vec<_>>());
            for (lost, reply) in turns {
                let (pending, ..) = work.next();
                let reply = words(&reply);
                let reply = if lost { Reply::Lost } else { Reply::Accepted(&reply) };
                if let Ok(digest) = digest(&mut work, pending, reply) {
                    prop_assert!(digest.read <= 160);
                }
            }
        }
    }
}

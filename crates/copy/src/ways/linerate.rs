//! From agent to agent over TCP: a source to each of its destinations, many files in flight, and no answer for any of
//! them.

use super::settle;
use crate::CopyError;
use crate::block::{BLOCKS, Block, Blocks, FILES, Record};
use crate::connection::{self, ASKS, DONE, GAVE_UP, LaneListener, next_length, wait};
use crate::control::Control;
use crate::destination::root::Root;
use crate::destination::verify::Verify;
use crate::destination::write::Ending;
use crate::destination::{Unverified, Verified, WAITING};
use crate::entry::{Entry, Kind};
use crate::lane::{Shared, reading_end, writing_end};
use crate::pipeline::{Stage, Timed, run};
use crate::side::Side;
use crate::source::{BATCHES, Batch, Origin, list};
use crossbeam_channel::{Receiver, Sender, bounded};
use linerate_engine::{PeerSilence, tcp_flow};
use linerate_model::{CopyExisting, CopyOptions, CopySide, CopyStage, CopyVerify, SessionKey};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::{clock, tcp};
use linerate_units::Nanos;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

/// Interval of looking at a destination that owes its last word.
const LOOK: Duration = Duration::from_secs(1);
/// Questions that may be on their way.
const QUESTIONS: usize = 16;

/// The connections between a source and a destination. Either opens them: whichever reaches the other.
pub(crate) struct Lanes {
    address: SocketAddr,
    lanes: Vec<TcpStream>,
    asks: Option<TcpStream>,
}

impl Lanes {
    /// Opens them.
    pub(crate) fn connect(
        address: SocketAddr,
        key: &SessionKey,
        options: &CopyOptions,
        control: &Control,
    ) -> Result<Self, CopyError> {
        let open = |lane| connection::open(address, key, lane, control);
        let lanes = (0..options.lanes).map(open).collect::<Result<_, _>>()?;
        let asks = (options.existing == CopyExisting::Resume).then(|| open(ASKS)).transpose()?;
        Ok(Self { address, lanes, asks })
    }

    /// Waits for them.
    pub(crate) fn accept(listener: LaneListener, options: &CopyOptions, control: &Control) -> Result<Self, CopyError> {
        let own = listener.address;
        let asks = options.existing == CopyExisting::Resume;
        let (lanes, asks) = listener.accept(options.lanes, asks, control)?;
        // The address is for messages: a lane that is gone already has the address that it came to.
        let address = lanes.first().and_then(|lane| lane.peer_addr().ok()).unwrap_or(own);
        Ok(Self { address, lanes, asks })
    }
}

/// The connections to one destination.
pub(crate) struct Target(Lanes);

impl From<Lanes> for Target {
    fn from(lanes: Lanes) -> Self {
        Self(lanes)
    }
}

impl Target {
    /// Sends the tree, from `start` on.
    pub(crate) fn send(self, origin: &Origin, options: &CopyOptions, start: u64, control: &Control) -> CopySide {
        let side = &Side::new(control);
        let Self(Lanes { address, lanes, asks }) = self;
        let complete = thread::scope(|scope| {
            let (batches_in, batches) = bounded(BATCHES);
            let mut wanted = batches;
            if let Some(asks) = asks {
                let (missing_in, missing) = bounded(BATCHES);
                let (pending_in, pending) = bounded(QUESTIONS);
                let listed = wanted;
                let mut answers = asks.try_clone();
                scope.spawn(move || {
                    if let Err(error) = ask(asks, &listed, &pending_in) {
                        unasked(&error, side, control);
                    }
                });
                scope.spawn(move || {
                    let left_out = match &mut answers {
                        Ok(answers) => leave_out(answers, &pending, &missing_in),
                        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
                    };
                    if let Err(error) = left_out {
                        unasked(&error, side, control);
                    }
                });
                wanted = missing;
            }
            let mut ends = Vec::new();
            for lane in lanes {
                let shared = Shared { options, side, control };
                let (blocks_in, blocks) = bounded::<Block>(WAITING);
                reading_end(scope, origin, wanted.clone(), blocks_in, shared);
                match lane.try_clone() {
                    Ok(answer) => ends.push(scope.spawn(move || end(answer, address, side, control))),
                    Err(error) => control.fault(b"", CopyStage::Send, error),
                }
                scope.spawn(move || send(lane, &blocks, side, control));
            }
            drop(wanted);
            list::run(origin, batches_in, options.links, side, control);
            let done = ends.into_iter().map(|end| end.join().unwrap_or(false)).filter(|done| *done).count();
            done == usize::from(options.lanes)
        });
        let time = Nanos::new(clock::now().saturating_sub(start));
        side.result(time, complete && !control.gave_up() && !control.is_stopped())
    }
}

/// The stage that sends. Why a connection broke is known where its end is waited for.
fn send(mut lane: TcpStream, blocks: &Receiver<Block>, side: &Side, control: &Control) {
    let mut clock = side.board.clock(CopyStage::Send);
    while let Ok(block) = clock.await_previous(|| blocks.recv()) {
        if connection::send(&mut lane, &block).is_err() {
            return;
        }
        control.sent(block.bytes().len() as u64);
    }
    let _ = lane.shutdown(Shutdown::Write);
}

/// Waits for the destination's last word on a lane: whether all is in place there.
fn end(mut lane: TcpStream, address: SocketAddr, side: &Side, control: &Control) -> bool {
    let mut word = [0];
    let heard = last_word(&mut lane, &mut word);
    // After the last word all has been acknowledged, and the figures are those of its last round trips.
    if let Ok(Some(after)) = tcp::info(lane.as_socket()) {
        side.add_connection(tcp_flow(&lane, &tcp::Info::default(), &after));
    }
    match (heard, word[0]) {
        (Ok(()), DONE) => return true,
        // The destination itself says why.
        (Ok(()), GAVE_UP) => {}
        (Ok(()), _) => control.fault(b"", CopyStage::Send, format!("{address} answers, but not for this copy")),
        (Err(_), _) if control.is_stopped() || control.gave_up() || side.has_ended() => {}
        (Err(error), _) => {
            control.fault(b"", CopyStage::Send, format!("the connection to {address} broke: {}", broken(&error)));
        }
    }
    side.end();
    // A sender that waits for room is woken.
    let _ = lane.shutdown(Shutdown::Both);
    false
}

/// Reads the last word. A destination may take its time, but not be silent.
fn last_word(lane: &mut TcpStream, word: &mut [u8; 1]) -> io::Result<()> {
    lane.set_read_timeout(Some(LOOK))?;
    let mut silence = PeerSilence::default();
    loop {
        match lane.read(word) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok(()),
            // The kind of a read that took too long depends on the system.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                ) =>
            {
                let silent = silence.look(lane.as_socket()).map_err(io::Error::other)?;
                if silent.map(u128::from) > Some(connection::LOST.as_nanos()) {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn broken(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => String::from("the other end closed it"),
        _ => error.to_string(),
    }
}

/// Without the answers nobody knows which files are missing.
fn unasked(error: &io::Error, side: &Side, control: &Control) {
    if !control.is_stopped() && !control.gave_up() && !side.has_ended() {
        let reason = format!("the destination no longer says which files it has: {}", broken(error));
        control.fault(b"", CopyStage::List, reason);
    }
    side.end();
}

/// Asks which files are there already.
fn ask(mut asks: TcpStream, listed: &Receiver<Batch>, pending: &Sender<Batch>) -> io::Result<()> {
    let blocks = Blocks::new(1);
    while let Ok(batch) = listed.recv() {
        let mut question = blocks.take();
        for Entry { path, mode, modified, kind } in &batch {
            if let Kind::File { size, .. } = kind {
                if !question.has_room(0) {
                    connection::send(&mut asks, &question)?;
                    drop(question);
                    question = blocks.take();
                }
                question.file(path, *mode, *modified, *size);
            }
        }
        if !question.is_empty() {
            connection::send(&mut asks, &question)?;
        }
        if pending.send(batch).is_err() {
            break;
        }
    }
    let _ = asks.shutdown(Shutdown::Write);
    Ok(())
}

/// Passes on what the destination does not have: it answers with a byte for each file.
fn leave_out(answers: &mut TcpStream, pending: &Receiver<Batch>, missing: &Sender<Batch>) -> io::Result<()> {
    while let Ok(batch) = pending.recv() {
        let files = batch.iter().filter(|entry| matches!(entry.kind, Kind::File { .. })).count();
        let mut there = vec![0; files];
        answers.read_exact(&mut there)?;
        let mut there = there.into_iter();
        let is_missing = |entry: &Entry| !matches!(entry.kind, Kind::File { .. }) || there.next() == Some(0);
        if missing.send(batch.into_iter().filter(is_missing).collect()).is_err() {
            break;
        }
    }
    Ok(())
}

/// The connections of one source.
pub(crate) struct Arrival(Lanes);

impl From<Lanes> for Arrival {
    fn from(lanes: Lanes) -> Self {
        Self(lanes)
    }
}

impl Arrival {
    /// Receives the tree into `root`, or nowhere, from `start` on.
    pub(crate) fn receive(self, root: Option<&Root>, options: &CopyOptions, start: u64, control: &Control) -> CopySide {
        let side = &Side::new(control);
        let Self(Lanes { mut lanes, asks, .. }) = self;
        let count = lanes.len();
        let complete = thread::scope(|scope| {
            if let (Some(asks), Some(root)) = (asks, root) {
                scope.spawn(move || answer(asks, root, side));
            }
            let writers: Vec<_> = lanes
                .iter_mut()
                .map(|lane| {
                    let shared = Shared { options, side, control };
                    let (verified_in, verified) = bounded::<Verified>(WAITING);
                    if options.verify == CopyVerify::Received {
                        let (received_in, received) = bounded::<Block>(WAITING);
                        scope.spawn(move || receive(lane, received_in, side, control));
                        scope.spawn(move || {
                            let verify = Verify::new(control);
                            run(&received, Timed::new(&side.board, CopyStage::Verify, verify, Box::new(verified_in)));
                        });
                    } else {
                        scope.spawn(move || receive(lane, Unverified(verified_in), side, control));
                    }
                    writing_end(scope, root, verified, shared)
                })
                .collect();
            let endings = writers.into_iter().map(|writer| writer.join().unwrap_or(Ending::Broken));
            endings.fold(true, |all, ending| all & judge(ending, control))
        });
        settle(root, options.sync, count, side, control);
        let complete = complete && !control.is_stopped() && !control.gave_up();
        for lane in &mut lanes {
            // A source that is gone needs no last word.
            let _ = lane.write_all(&[if complete { DONE } else { GAVE_UP }]);
        }
        side.result(Nanos::new(clock::now().saturating_sub(start)), complete)
    }
}

/// Whether a lane's end is a good one; one that nobody accounts for is a fault.
fn judge(ending: Ending, control: &Control) -> bool {
    if ending == Ending::Broken && !control.is_stopped() && !control.gave_up() {
        control.fault(b"", CopyStage::Receive, "the source is gone before all had come");
    }
    ending == Ending::Complete
}

/// The stage that receives.
fn receive(lane: &mut TcpStream, mut out: impl Stage<Block>, side: &Side, control: &Control) {
    let mut clock = side.board.clock(CopyStage::Receive);
    let blocks = Blocks::new(BLOCKS);
    loop {
        let mut block = clock.await_next(|| blocks.take());
        if clock.await_previous(|| wait(lane)).is_err() {
            return;
        }
        match next_length(lane) {
            // The end; or a broken connection, which shows in that the last record is missing.
            Ok(None) | Err(_) => return,
            Ok(Some(length)) => {
                let Some(space) = block.expect(length) else { return };
                if fill(lane, space, &mut |lane| clock.await_previous(|| wait(lane))).is_err() {
                    return;
                }
            }
        }
        if clock.await_next(|| out.take(block)).is_err() {
            break;
        }
    }
    if control.is_stopped() {
        return;
    }
    // Nobody takes any more. The source hears of it, and what it still sends goes nowhere.
    let _ = lane.write_all(&[GAVE_UP]);
    let mut nowhere = vec![0; 64 << 10];
    while lane.read(&mut nowhere).is_ok_and(|read| read > 0) {}
}

/// Reads the available bytes, so that waiting and taking are separate.
fn fill(
    lane: &mut TcpStream,
    mut space: &mut [u8],
    wait: &mut dyn FnMut(&TcpStream) -> io::Result<()>,
) -> io::Result<()> {
    while !space.is_empty() {
        wait(lane)?;
        match lane.read(space)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => space = &mut space[read..],
        }
    }
    Ok(())
}

/// Answers which files are there already.
fn answer(mut asks: TcpStream, root: &Root, side: &Side) {
    let blocks = Blocks::new(1);
    let mut storage = root.storage.another();
    while let Ok(Some(length)) = next_length(&mut asks) {
        let mut question = blocks.take();
        let Some(space) = question.expect(length) else { return };
        if asks.read_exact(space).is_err() {
            return;
        }
        let mut there = Vec::with_capacity(FILES);
        for (_, record) in question.records().flatten() {
            if let Record::File { path, modified, size, .. } = record {
                let has = root.has(&mut *storage, path, size, modified);
                side.tally.kept.add(has.into());
                there.push(u8::from(has));
            }
        }
        if asks.write_all(&there).is_err() {
            return;
        }
    }
}

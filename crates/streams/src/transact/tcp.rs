//! Transactions over a persistent TCP connection, with any number of outstanding requests.

use super::{QUIET_NS, SILENCE_NS, Schedule, Tally, drained, schedule};
use crate::bulk_tcp::Account;
use crate::error::StreamError;
use crate::flow::{Outcome, Shared};
use linerate_engine::Stopped;
use linerate_model::{FlowCounts, TransactTask};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::is_timeout;
use linerate_sys::{clock, socket, tcp};
use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpStream};

/// Bytes read and written in one call.
const BUFFER: usize = 64 << 10;
/// Most outstanding requests of an open loop without answers. Later requests stay in the schedule, and are timed from
/// their due time all the same.
const WAITING_MAXIMUM: usize = 1 << 20;
/// Most response bytes whose requests the server reads at a time, so that it sees the time.
const ANSWERS_BYTES: u64 = 1 << 20;

/// Asks until the window closes, then waits for the answers.
pub(super) fn ask(
    shared: &Shared,
    index: usize,
    spec: &TransactTask,
    stream: &TcpStream,
) -> Result<Outcome, StreamError> {
    let timeline = &shared.timeline;
    let request = spec.request_bytes.get();
    let response = spec.response_bytes.get();
    let mut schedule = schedule(spec, shared, index);
    let mut tally = Tally::new(shared, index, spec);
    let mut account = Account::new(shared, stream);
    let mut out = vec![0; BUFFER];
    let mut into = vec![0; BUFFER];
    rand::fill(&mut out[..]);
    // Times when the outstanding requests were made or due.
    let mut waiting: VecDeque<u64> = VecDeque::new();
    // Bytes of requests that are not sent yet.
    let mut unsent = 0u64;
    // Bytes of the response that is being read.
    let mut partial = 0u64;
    shared.stop.sleep_until(timeline.start());
    let mut now = account.sample()?;
    // Time of the last sign of the peer. Acknowledgements count too, because a large request may take long.
    let mut heard = now;
    let mut unacknowledged = 0;
    loop {
        if shared.stop.is_set() {
            return Err(Stopped.into());
        }
        let asks = schedule.as_ref().map_or(now < timeline.close(), |schedule| schedule.goes_on(now, timeline.close()));
        // Without room, another request waits for answers or acknowledgements.
        let mut is_full = false;
        if asks {
            let before = waiting.len();
            match &mut schedule {
                Some(schedule) => {
                    // Requests that have no room in the buffer could not be sent yet either.
                    let room = (BUFFER as u64).saturating_sub(unsent).div_ceil(request) as usize;
                    let limit = (waiting.len() + room).min(WAITING_MAXIMUM);
                    tally.late(schedule, now);
                    while schedule.due() <= now && schedule.goes_on(now, timeline.close()) && waiting.len() < limit {
                        waiting.push_back(schedule.due());
                        schedule.advance();
                    }
                    is_full = waiting.len() >= limit;
                }
                None => waiting.resize(waiting.len().max(spec.outstanding.into()), now),
            }
            unsent += (waiting.len() - before) as u64 * request;
        } else if now >= timeline.close() && (waiting.is_empty() || now > drained(timeline.close(), heard)) {
            // Ending earlier would look like a broken connection to the server.
            break;
        }
        if unsent > 0 {
            let length = (out.len() as u64).min(unsent) as usize;
            match tcp::send_now(stream, &out[..length]) {
                Ok(sent) => unsent -= sent as u64,
                Err(error) if is_timeout(&error) => (),
                Err(error) => return Err(gone(shared, index, &error, &tally)),
            }
        }
        // Only a closed loop without unsent bytes can sleep in the read itself.
        let until = schedule.as_ref().filter(|_| asks && !is_full).map(Schedule::due);
        let sleeps_in_read = !spec.busy_poll && unsent == 0 && until.is_none();
        if !sleeps_in_read && !spec.busy_poll {
            let left = until.unwrap_or(u64::MAX).saturating_sub(clock::now()).min(100_000_000);
            if unsent > 0 {
                socket::wait_ready(stream.as_socket(), left)?;
            } else {
                socket::wait_readable(&[stream.as_socket()], left)?;
            }
        }
        match tcp::receive(stream, &mut into, sleeps_in_read) {
            Ok(0) if waiting.is_empty() && shared.may_end(clock::now()) => break,
            Ok(0) => return Err(gone(shared, index, &io::ErrorKind::UnexpectedEof.into(), &tally)),
            Ok(bytes) => {
                partial += bytes as u64;
                let answers = partial / response;
                account.total += answers * request;
                now = account.sample()?;
                heard = now;
                for _ in 0..answers {
                    let Some(since) = waiting.pop_front() else {
                        return Err(shared.gone(index, "it answered more than was asked"));
                    };
                    tally.answered(since, now);
                }
                partial %= response;
            }
            Err(error) if is_timeout(&error) => {
                now = account.sample()?;
                let left = unsent + tcp::unacknowledged(stream)?.unwrap_or(0);
                if left < unacknowledged {
                    heard = now;
                }
                unacknowledged = left;
                if !waiting.is_empty() && now > heard.max(waiting[0]) + SILENCE_NS {
                    return Err(shared.gone(
                        index,
                        format!("no answer for {} s, {} outstanding", SILENCE_NS / 1_000_000_000, waiting.len()),
                    ));
                }
            }
            Err(error) => return Err(gone(shared, index, &error, &tally)),
        }
    }
    // An error here means that the server has closed already.
    let _ = stream.shutdown(Shutdown::Write);
    account.end()?;
    // Requests of an open loop that were due but never left this host completely count as not sent.
    let unsent_requests = unsent.div_ceil(request).min(waiting.len() as u64);
    for since in waiting.drain(waiting.len() - unsent_requests as usize..) {
        tally.transactions.not_sent += u64::from(tally.open_loop && tally.in_window(since));
    }
    waiting.into_iter().for_each(|since| tally.failed(since));
    tally.not_sent(schedule.as_ref());
    let (sent_bytes, received_bytes) = tally.bytes();
    let (_, _, tcp) = account.close()?;
    Ok(Outcome {
        transactions: Some(tally.transactions),
        flow: FlowCounts { sent_bytes, received_bytes, tcp },
        ..Outcome::default()
    })
}

/// Answers until the asking end is done.
pub(super) fn answer(
    shared: &Shared,
    index: usize,
    spec: &TransactTask,
    stream: &TcpStream,
) -> Result<Outcome, StreamError> {
    let timeline = &shared.timeline;
    let request = spec.request_bytes.get();
    let response = spec.response_bytes.get();
    let mut account = Account::new(shared, stream);
    let mut out = vec![0; BUFFER];
    let mut into = vec![0; BUFFER];
    rand::fill(&mut out[..]);
    let max_bytes = into.len().min(usize::try_from((ANSWERS_BYTES / response).max(1) * request).unwrap_or(BUFFER));
    // Bytes of the request that is being read.
    let mut partial = 0u64;
    // Bytes of the response that is being written.
    let mut written = 0u64;
    // Bytes of responses that are not sent yet.
    let mut unsent = 0u64;
    // Time of the last sign of the peer. Acknowledgements of a large response count too.
    let mut heard = timeline.start();
    let mut unacknowledged = 0;
    loop {
        if shared.stop.is_set() {
            return Err(Stopped.into());
        }
        let now = account.sample()?;
        if now > drained(timeline.close(), heard) + QUIET_NS {
            break;
        }
        let moved = if unsent > 0 {
            tcp::send_now(stream, &out[..(out.len() as u64).min(unsent) as usize])
        } else {
            tcp::receive(stream, &mut into[..max_bytes], !spec.busy_poll)
        };
        match moved {
            Ok(sent) if unsent > 0 => {
                unsent -= sent as u64;
                written += sent as u64;
                heard = now;
                account.total += written / response * request;
                written %= response;
                shared.meters[index].served(account.total, account.total / request * response);
            }
            Ok(0) => {
                // A client that started earlier may end before the window of this end opens. Its counts matter.
                let now = account.sample()?;
                if account.window.is_closed() || partial == 0 && shared.may_end(now) {
                    break;
                }
                return Err(shared.gone(index, "it ended the connection"));
            }
            Ok(bytes) => {
                partial += bytes as u64;
                unsent = partial / request * response;
                partial %= request;
                heard = now;
            }
            // The client never stops reading, so there will be room.
            Err(error) if is_timeout(&error) && unsent > 0 => {
                socket::wait_writable(stream.as_socket(), 100_000_000)?;
            }
            Err(error) if is_timeout(&error) => {
                let left = tcp::unacknowledged(stream)?.unwrap_or(0);
                if left < unacknowledged {
                    heard = now;
                }
                unacknowledged = left;
                if spec.rate.is_none() && now > heard + SILENCE_NS && now < timeline.close() {
                    return Err(shared.gone(index, format!("no request for {} s", SILENCE_NS / 1_000_000_000)));
                }
            }
            Err(_) if now > timeline.close() => break,
            Err(error) => return Err(shared.gone(index, error.to_string())),
        }
    }
    if !account.window.is_open() && !account.window.is_closed() {
        // The window never opened.
        return Ok(Outcome::default());
    }
    account.end()?;
    let (received_bytes, _, tcp) = account.close()?;
    let sent_bytes = received_bytes / request * response;
    Ok(Outcome { flow: FlowCounts { sent_bytes, received_bytes, tcp }, ..Outcome::default() })
}

fn gone(shared: &Shared, index: usize, error: &io::Error, tally: &Tally<'_>) -> StreamError {
    shared.gone(index, format!("{error}, after {} transactions", tally.transactions.completed))
}

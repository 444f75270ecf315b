//! Transactions over a standing TCP connection, any number of them under way.

use super::{QUIET_NS, SILENCE_NS, Schedule, Tally, drained, schedule};
use crate::bulk_tcp::{Account, is_timeout};
use crate::error::StreamError;
use crate::flow::{Outcome, Shared};
use linerate_model::{FlowCounts, TransactTask};
use linerate_sys::{clock, socket, tcp};
use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;

/// Room for what is read or written in one call.
const BUFFER: usize = 64 << 10;
/// An open loop that is not answered keeps so many requests under way; those due later stay in the schedule, and are timed
/// from when they were due all the same.
const WAITING_MAXIMUM: usize = 1 << 20;
/// The answering end reads no more requests at a time than ask for this much, so that it sees the time.
const ANSWERS_BYTES: u64 = 1 << 20;

/// Asks until the window closes, then waits for the answers.
pub(super) fn ask(
    shared: &Shared,
    index: usize,
    spec: &TransactTask,
    stream: &TcpStream,
) -> Result<Outcome, StreamError> {
    let timeline = &shared.timeline;
    let (request, response) = (spec.request_bytes.get(), spec.response_bytes.get());
    let mut schedule = schedule(spec, shared, index);
    let mut tally = Tally::new(shared, index, spec);
    let mut account = Account::new(shared, stream);
    let (mut out, mut into) = (vec![0; BUFFER], vec![0; BUFFER]);
    rand::fill(&mut out[..]);
    // When the requests that are not yet answered were made or due.
    let mut waiting: VecDeque<u64> = VecDeque::new();
    let (mut unsent, mut read) = (0u64, 0u64);
    shared.stop.sleep_until(timeline.start());
    let mut now = account.sample()?;
    // What the peer acknowledges is a sign of it too: a large request may take long.
    let (mut heard, mut held) = (now, 0);
    loop {
        if shared.stop.is_set() {
            return Err(StreamError::Stopped);
        }
        let asks = schedule.as_ref().map_or(now < timeline.close(), |schedule| schedule.goes_on(now, timeline.close()));
        // There is no room for another request until answers or acknowledgements come.
        let mut is_full = false;
        if asks {
            let before = waiting.len();
            match &mut schedule {
                Some(schedule) => {
                    // What has no room in the buffer either could not be sent yet.
                    let room = (BUFFER as u64).saturating_sub(unsent).div_ceil(request) as usize;
                    let most = (waiting.len() + room).min(WAITING_MAXIMUM);
                    tally.late(schedule, now);
                    while schedule.due() <= now && schedule.goes_on(now, timeline.close()) && waiting.len() < most {
                        waiting.push_back(schedule.due());
                        schedule.advance();
                    }
                    is_full = waiting.len() >= most;
                }
                None => waiting.resize(waiting.len().max(spec.outstanding.into()), now),
            }
            unsent += (waiting.len() - before) as u64 * request;
        } else if now >= timeline.close() && (waiting.is_empty() || now > drained(timeline.close(), heard)) {
            // Not before: the answering end would take it for a connection that broke.
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
        // Only a closed loop with nothing left to send can sleep in the read itself.
        let until = schedule.as_ref().filter(|_| asks && !is_full).map(Schedule::due);
        let sleeps_in_read = !spec.busy_poll && unsent == 0 && until.is_none();
        if !sleeps_in_read && !spec.busy_poll {
            let left = until.unwrap_or(u64::MAX).saturating_sub(clock::now()).min(100_000_000);
            if unsent > 0 {
                socket::wait_ready(stream.as_fd(), left)?;
            } else {
                socket::wait_readable(&[stream.as_fd()], left)?;
            }
        }
        match tcp::receive(stream, &mut into, sleeps_in_read) {
            Ok(0) if waiting.is_empty() && shared.may_end(clock::now()) => break,
            Ok(0) => return Err(gone(shared, index, &io::ErrorKind::UnexpectedEof.into(), &tally)),
            Ok(taken) => {
                read += taken as u64;
                let answers = read / response;
                account.total += answers * request;
                now = account.sample()?;
                heard = now;
                for _ in 0..answers {
                    let Some(since) = waiting.pop_front() else {
                        return Err(shared.gone(index, "it answered more than was asked"));
                    };
                    tally.answered(since, now);
                }
                read %= response;
            }
            Err(error) if is_timeout(&error) => {
                now = account.sample()?;
                let left = unsent + tcp::unacknowledged(stream)?;
                if left < held {
                    heard = now;
                }
                held = left;
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
    // An error here means that the answering end has closed already.
    let _ = stream.shutdown(Shutdown::Write);
    account.end()?;
    // Requests of an open loop that were due, but of which the end never left this host, count as not sent.
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
        flow: FlowCounts { sent_bytes, received_bytes, tcp: Some(tcp) },
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
    let (request, response) = (spec.request_bytes.get(), spec.response_bytes.get());
    let mut account = Account::new(shared, stream);
    let (mut out, mut into) = (vec![0; BUFFER], vec![0; BUFFER]);
    rand::fill(&mut out[..]);
    let most = into.len().min(usize::try_from((ANSWERS_BYTES / response).max(1) * request).unwrap_or(BUFFER));
    // Parts of the request that is being read and of the response that is being written, and what is owed.
    let (mut read, mut written, mut owed) = (0u64, 0u64, 0u64);
    // What the peer acknowledges of a large response is a sign of it too.
    let (mut heard, mut held) = (timeline.start(), 0);
    loop {
        if shared.stop.is_set() {
            return Err(StreamError::Stopped);
        }
        let now = account.sample()?;
        if now > drained(timeline.close(), heard) + QUIET_NS {
            break;
        }
        let done = if owed > 0 {
            tcp::send_now(stream, &out[..(out.len() as u64).min(owed) as usize])
        } else {
            tcp::receive(stream, &mut into[..most], !spec.busy_poll)
        };
        match done {
            Ok(sent) if owed > 0 => {
                owed -= sent as u64;
                written += sent as u64;
                heard = now;
                account.total += written / response * request;
                written %= response;
                shared.meters[index].served(account.total, account.total / request * response);
            }
            Ok(0) => {
                // An asking end that started earlier may be done before the window of this end opens. Its counts are what matters.
                let now = account.sample()?;
                if account.window.is_closed() || read == 0 && shared.may_end(now) {
                    break;
                }
                return Err(shared.gone(index, "it ended the connection"));
            }
            Ok(taken) => {
                read += taken as u64;
                owed = read / request * response;
                read %= request;
                heard = now;
            }
            // The asking end never stops reading, so there will be room.
            Err(error) if is_timeout(&error) && owed > 0 => {
                socket::wait_writable(stream.as_fd(), 100_000_000)?;
            }
            Err(error) if is_timeout(&error) => {
                let left = tcp::unacknowledged(stream)?;
                if left < held {
                    heard = now;
                }
                held = left;
                if spec.rate.is_none() && now > heard + SILENCE_NS && now < timeline.close() {
                    return Err(shared.gone(index, format!("no request for {} s", SILENCE_NS / 1_000_000_000)));
                }
            }
            Err(_) if now > timeline.close() => break,
            Err(error) => return Err(shared.gone(index, error.to_string())),
        }
    }
    if !account.window.is_open() && !account.window.is_closed() {
        // It never opened.
        return Ok(Outcome::default());
    }
    account.end()?;
    let (received_bytes, _, tcp) = account.close()?;
    let sent_bytes = received_bytes / request * response;
    Ok(Outcome { flow: FlowCounts { sent_bytes, received_bytes, tcp: Some(tcp) }, ..Outcome::default() })
}

fn gone(shared: &Shared, index: usize, error: &io::Error, tally: &Tally<'_>) -> StreamError {
    shared.gone(index, format!("{error}, after {} transactions", tally.transactions.completed))
}

//! DNS messages (RFC 1035 section 4), as far as multicast DNS needs them.

use crate::name::Name;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most questions, and most records, that are read of one message. A message with more is refused.
const MAX_ENTRIES: usize = 128;
/// The message is a response (QR).
const RESPONSE: u16 = 0x8000;
/// The response comes from the owner of its records (AA).
const AUTHORITATIVE: u16 = 0x0400;
/// The bits of the flags that must be zero in every message: the operation code and the response code.
const CODES: u16 = 0x780f;
/// The class of the Internet.
const INTERNET: u16 = 1;
/// The record is the only one of its name and type (RFC 6762 section 10.2); in a question: a unicast response is
/// wanted.
const TOP_BIT: u16 = 0x8000;

/// Types of records, and `ANY` of questions.
pub(crate) mod kinds {
    pub(crate) const A: u16 = 1;
    pub(crate) const PTR: u16 = 12;
    pub(crate) const TXT: u16 = 16;
    pub(crate) const AAAA: u16 = 28;
    pub(crate) const SRV: u16 = 33;
    pub(crate) const ANY: u16 = 255;
}

/// A message. Records are those of all three sections.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Message {
    pub(crate) is_response: bool,
    pub(crate) questions: Vec<Question>,
    pub(crate) records: Vec<Record>,
}

/// A question for records of a name.
#[derive(Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) name: Name,
    pub(crate) kind: u16,
}

/// A resource record.
#[derive(Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) name: Name,
    /// Time to live, in seconds.
    pub(crate) ttl: u32,
    pub(crate) data: RecordData,
}

/// The data of a record.
#[derive(Debug, PartialEq)]
pub(crate) enum RecordData {
    Pointer(Name),
    Service {
        port: u16,
        host: Name,
    },
    Text(Vec<Vec<u8>>),
    Address(IpAddr),
    /// Data of a type that is not used here.
    Other,
}

impl Message {
    /// Reads a message. Returns `None` if it is malformed.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader { bytes, position: 2 };
        let flags = reader.u16()?;
        if flags & CODES != 0 {
            return None;
        }
        let questions = usize::from(reader.u16()?);
        let records = usize::from(reader.u16()?) + usize::from(reader.u16()?) + usize::from(reader.u16()?);
        if questions > MAX_ENTRIES || records > MAX_ENTRIES {
            return None;
        }
        Some(Self {
            is_response: flags & RESPONSE != 0,
            questions: (0..questions).map(|_| reader.question()).collect::<Option<Vec<_>>>()?,
            records: (0..records).map(|_| reader.record()).collect::<Option<Vec<_>>>()?,
        })
    }

    /// Encodes the message; all records are answers.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let flags = if self.is_response { RESPONSE | AUTHORITATIVE } else { 0 };
        let mut bytes = Vec::with_capacity(512);
        for number in [0, flags, self.questions.len() as u16, self.records.len() as u16, 0, 0] {
            bytes.extend(number.to_be_bytes());
        }
        for question in &self.questions {
            question.name.write(&mut bytes);
            bytes.extend(question.kind.to_be_bytes());
            bytes.extend(INTERNET.to_be_bytes());
        }
        for record in &self.records {
            record.write(&mut bytes);
        }
        bytes
    }
}

impl Record {
    fn write(&self, bytes: &mut Vec<u8>) {
        let (kind, class) = match &self.data {
            RecordData::Pointer(_) => (kinds::PTR, INTERNET),
            RecordData::Service { .. } => (kinds::SRV, INTERNET | TOP_BIT),
            RecordData::Text(_) => (kinds::TXT, INTERNET | TOP_BIT),
            RecordData::Address(IpAddr::V4(_)) => (kinds::A, INTERNET | TOP_BIT),
            RecordData::Address(IpAddr::V6(_)) => (kinds::AAAA, INTERNET | TOP_BIT),
            RecordData::Other => return,
        };
        self.name.write(bytes);
        bytes.extend(kind.to_be_bytes());
        bytes.extend(class.to_be_bytes());
        bytes.extend(self.ttl.to_be_bytes());
        let length_at = bytes.len();
        bytes.extend([0, 0]);
        match &self.data {
            RecordData::Pointer(name) => name.write(bytes),
            RecordData::Service { port, host } => {
                // Priority and weight.
                bytes.extend([0; 4]);
                bytes.extend(port.to_be_bytes());
                host.write(bytes);
            }
            RecordData::Text(texts) => {
                for text in texts {
                    let text = &text[..text.len().min(255)];
                    bytes.push(text.len() as u8);
                    bytes.extend(text);
                }
            }
            RecordData::Address(IpAddr::V4(address)) => bytes.extend(address.octets()),
            RecordData::Address(IpAddr::V6(address)) => bytes.extend(address.octets()),
            RecordData::Other => {}
        }
        let length = (bytes.len() - length_at - 2) as u16;
        bytes[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
    }
}

/// A position in a message.
struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let array = self.bytes.get(self.position..)?.first_chunk()?;
        self.position += N;
        Some(*array)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let slice = self.bytes.get(self.position..)?.get(..length)?;
        self.position += length;
        Some(slice)
    }

    fn name(&mut self) -> Option<Name> {
        let (name, end) = Name::read(self.bytes, self.position)?;
        self.position = end;
        Some(name)
    }

    fn question(&mut self) -> Option<Question> {
        let name = self.name()?;
        let kind = self.u16()?;
        self.u16()?;
        Some(Question { name, kind })
    }

    fn record(&mut self) -> Option<Record> {
        let name = self.name()?;
        let kind = self.u16()?;
        let is_internet = self.u16()? & !TOP_BIT == INTERNET;
        let ttl = self.u32()?;
        let length = usize::from(self.u16()?);
        let start = self.position;
        let data = self.slice(length)?;
        let end = self.position;
        self.position = start;
        let data = if is_internet { self.data(kind, data)? } else { RecordData::Other };
        // Names in the data may lead anywhere before, but not end after them.
        if self.position > end {
            return None;
        }
        self.position = end;
        Some(Record { name, ttl, data })
    }

    /// Reads the data of a record at the position, which are also `data`.
    fn data(&mut self, kind: u16, data: &[u8]) -> Option<RecordData> {
        Some(match kind {
            kinds::PTR => RecordData::Pointer(self.name()?),
            kinds::SRV => {
                self.slice(4)?;
                RecordData::Service { port: self.u16()?, host: self.name()? }
            }
            kinds::TXT => RecordData::Text(texts(data)?),
            kinds::A => RecordData::Address(Ipv4Addr::from(<[u8; 4]>::try_from(data).ok()?).into()),
            kinds::AAAA => RecordData::Address(Ipv6Addr::from(<[u8; 16]>::try_from(data).ok()?).into()),
            _ => RecordData::Other,
        })
    }
}

/// Splits the data of a text record. Returns `None` if the last text is incomplete.
fn texts(mut data: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut texts = Vec::new();
    while let Some((&length, rest)) = data.split_first() {
        let (text, rest) = rest.split_at_checked(length.into())?;
        texts.push(text.to_vec());
        data = rest;
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        let service = Name::new(["_linerate", "_tcp", "local"]);
        let agent = Name::new(["rack-1", "_linerate", "_tcp", "local"]);
        let host = Name::new(["host", "local"]);
        let record = |name: &Name, data| Record { name: name.clone(), ttl: 120, data };
        Message {
            is_response: true,
            questions: vec![Question { name: service.clone(), kind: kinds::PTR }],
            records: vec![
                record(&service, RecordData::Pointer(agent.clone())),
                record(&agent, RecordData::Service { port: 4_747, host: host.clone() }),
                record(&agent, RecordData::Text(vec![b"version=1".to_vec(), Vec::new()])),
                record(&host, RecordData::Address(Ipv4Addr::new(192, 0, 2, 1).into())),
                record(&host, RecordData::Address(Ipv6Addr::LOCALHOST.into())),
            ],
        }
    }

    #[test]
    fn messages_are_read_as_written() {
        assert_eq!(Message::read(&message().encode()), Some(message()));
    }

    #[test]
    fn a_message_that_is_cut_or_asks_for_too_much_is_refused() {
        let whole = message().encode();
        for length in 0..whole.len() {
            assert_eq!(Message::read(&whole[..length]), None, "{length} bytes");
        }
        for (at, value) in [(2, 0x08), (3, 0x03), (4, 0xff), (6, 0xff), (8, 0xff), (10, 0xff)] {
            let mut changed = whole.clone();
            changed[at] = value;
            assert_eq!(Message::read(&changed), None, "byte {at}");
        }
    }
}

//! Reading lines of any bytes with bounded memory.

use std::io::{self, BufRead, BufReader, Read};
use tokio::sync::mpsc;

/// One line of the input, with its ending.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1.
    pub n: u64,
    bytes: Vec<u8>,
}

impl Line {
    /// Every byte of it, the ending included if the input has one.
    pub fn whole(&self) -> &[u8] {
        &self.bytes
    }

    /// Without its ending, `\n` or `\r\n`.
    pub fn body(&self) -> &[u8] {
        let line = self.bytes.strip_suffix(b"\n");
        let without = line.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        without.unwrap_or(&self.bytes)
    }

    fn is_blank(&self) -> bool {
        self.bytes.trim_ascii().is_empty()
    }
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    Line(Line),
    /// A line without an envelope; only its number matters.
    Blank,
    /// A line over the limit, of this many bytes with its ending, of which
    /// nothing was kept.
    TooLong {
        n: u64,
        len: usize,
    },
}

/// The lines of an input.
pub struct Lines<R> {
    reader: BufReader<R>,
    limit: usize,
    n: u64,
}

impl<R: Read> Lines<R> {
    /// Bodies of more than `limit` bytes are too long.
    pub fn new(reader: R, limit: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            limit,
            n: 0,
        }
    }

    fn read(&mut self) -> io::Result<Option<Input>> {
        let mut bytes = Vec::new();
        // Two more, for the ending.
        let longest = self.limit as u64 + 2;
        if (&mut self.reader)
            .take(longest)
            .read_until(b'\n', &mut bytes)?
            == 0
        {
            return Ok(None);
        }
        self.n += 1;
        let rest = match bytes.last() {
            Some(b'\n') => 0,
            _ => self.reader.skip_until(b'\n')?,
        };
        let line = Line { n: self.n, bytes };
        Ok(Some(if rest > 0 || line.body().len() > self.limit {
            let len = line.whole().len() + rest;
            Input::TooLong { n: self.n, len }
        } else if line.is_blank() {
            Input::Blank
        } else {
            Input::Line(line)
        }))
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = io::Result<Input>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// Reads an input in a thread of its own, no more than `ahead` lines ahead.
///
/// The thread ends with the input or with the receiver, at the next line. It
/// may wait in a read for ever, and does not keep the program from ending.
pub fn read_ahead<R: Read + Send + 'static>(
    reader: R,
    limit: usize,
    ahead: usize,
) -> io::Result<mpsc::Receiver<io::Result<Input>>> {
    let (sender, receiver) = mpsc::channel(ahead);
    std::thread::Builder::new()
        .name("input".into())
        .spawn(move || {
            for input in Lines::new(reader, limit) {
                let failed = input.is_err();
                if sender.blocking_send(input).is_err() || failed {
                    break;
                }
            }
        })?;
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8], limit: usize) -> Vec<Input> {
        Lines::new(input, limit).map(Result::unwrap).collect()
    }

    fn line(n: u64, bytes: &[u8]) -> Input {
        Input::Line(Line {
            n,
            bytes: bytes.to_vec(),
        })
    }

    #[test]
    fn endings_belong_to_lines_and_not_to_bodies() {
        for (bytes, body) in [
            (&b"{}\n"[..], &b"{}"[..]),
            (b"{}\r\n", b"{}"),
            (b"{}", b"{}"),
            (b"{}\r", b"{}\r"),
            (b"{}\r\r\n", b"{}\r"),
            (b"\xff\x00\n", b"\xff\x00"),
        ] {
            let read = lines(bytes, 100);
            assert_eq!(read, [line(1, bytes)]);
            let [Input::Line(line)] = &read[..] else {
                panic!("{read:?}");
            };
            assert_eq!(line.body(), body);
            assert_eq!(line.whole(), bytes);
        }
    }

    #[test]
    fn blank_lines_are_counted() {
        let read = lines(b"\n \t\r\n{}\n\r\n\n[]", 100);
        let blank = Input::Blank;
        assert_eq!(
            read,
            [
                Input::Blank,
                Input::Blank,
                line(3, b"{}\n"),
                Input::Blank,
                blank,
                line(6, b"[]")
            ]
        );
    }

    #[test]
    fn the_limit_is_for_the_body() {
        let too_long = |n, len| Input::TooLong { n, len };
        assert_eq!(lines(b"12345\n", 5), [line(1, b"12345\n")]);
        assert_eq!(
            lines(b"12345\r\n1", 5),
            [line(1, b"12345\r\n"), line(2, b"1")]
        );
        assert_eq!(lines(b"123456\n1\n", 5), [too_long(1, 7), line(2, b"1\n")]);
        assert_eq!(lines(b"1234567\n1\n", 5), [too_long(1, 8), line(2, b"1\n")]);
        assert_eq!(lines(b"12345678\r\n1", 5), [too_long(1, 10), line(2, b"1")]);
        assert_eq!(lines(b"1\n12345678", 5), [line(1, b"1\n"), too_long(2, 8)]);
    }
}

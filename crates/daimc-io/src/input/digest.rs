//! SHA-256 of the bytes that are read.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use sha2::{Digest as _, Sha256};

/// The most pieces that wait for the hashing thread.
const WAITING: usize = 16;

/// Bytes that are hashed at a time.
const PIECE: usize = 1 << 18;

/// The SHA-256 of some bytes, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    digits(Sha256::new_with_prefix(bytes))
}

/// The SHA-256 of the bytes so far.
pub(super) enum Digest {
    /// Computed by the thread that reads.
    Inline(Sha256),
    /// Computed by a thread of its own, since parsers are about as fast.
    Threaded {
        /// Bytes that were not sent yet.
        piece: Vec<u8>,
        pieces: SyncSender<Vec<u8>>,
        thread: JoinHandle<Sha256>,
    },
}

impl Default for Digest {
    fn default() -> Self {
        Self::Inline(Sha256::new())
    }
}

impl Digest {
    /// Continues in a thread of its own, or in this one if none can be started.
    pub(super) fn in_thread(self) -> Self {
        let Self::Inline(mut hash) = self else { return self };
        let before = hash.clone();
        let (pieces, received) = sync_channel::<Vec<u8>>(WAITING);
        let thread = Builder::new().name("hash".into()).spawn(move || {
            received.into_iter().for_each(|piece| hash.update(piece));
            hash
        });
        match thread {
            Ok(thread) => Self::Threaded { piece: Vec::new(), pieces, thread },
            Err(_) => Self::Inline(before),
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Inline(hash) => hash.update(bytes),
            Self::Threaded { piece, pieces, .. } => {
                piece.extend_from_slice(bytes);
                if piece.len() >= PIECE {
                    // The thread receives pieces as long as the sender exists.
                    let _ = pieces.send(std::mem::take(piece));
                }
            }
        }
    }

    /// Hashes all bytes of a reader.
    pub(super) fn update_from(&mut self, reader: impl Read) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(PIECE, reader);
        loop {
            let bytes = reader.fill_buf()?;
            if bytes.is_empty() {
                return Ok(());
            }
            self.update(bytes);
            let count = bytes.len();
            reader.consume(count);
        }
    }

    /// The hexadecimal digits.
    pub(super) fn finish(self) -> String {
        match self {
            Self::Inline(hash) => digits(hash),
            Self::Threaded { piece, pieces, thread } => {
                let _ = pieces.send(piece);
                drop(pieces);
                thread.join().map(digits).unwrap_or_default()
            }
        }
    }
}

fn digits(hash: Sha256) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16));
    hash.finalize().iter().flat_map(digits).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_does_not_depend_on_threads_or_pieces() {
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        let expected = sha256(&bytes);
        for size in [1000, 300_000, 2_000_000] {
            for mut digest in [Digest::default(), Digest::default().in_thread()] {
                bytes.chunks(size).for_each(|chunk| digest.update(chunk));
                assert_eq!(digest.finish(), expected, "{size}");
            }
        }
        let mut digest = Digest::default();
        digest.update_from(&bytes[..]).unwrap();
        assert_eq!(digest.finish(), expected);
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}

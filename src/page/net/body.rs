//! A file as the body of an answer: a separate thread reads slightly ahead of the consumer, with
//! bounded memory.

use hyper::body::{Body, Bytes, Frame, SizeHint};
use perfetto_heap::Source;
use std::io::{self, Read as _, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::sync::{OwnedMutexGuard, mpsc};

/// Bytes of a piece.
const PIECE: usize = 256 << 10;
/// Pieces that are read ahead.
const AHEAD: usize = 2;

/// Progress of a body, for monitoring the connection.
#[derive(Debug, Default)]
pub(super) struct Progress {
    taken: AtomicU64,
}

impl Progress {
    /// Bytes that were taken from bodies.
    pub(super) fn bytes(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }
}

/// Body of an answer.
pub(super) enum Content {
    /// Text, or nothing.
    Text(Bytes),
    File(FileBody),
}

/// A file that is being read.
pub(super) struct FileBody {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    left: u64,
    progress: Arc<Progress>,
}

impl FileBody {
    /// Creates a body of the first `length` bytes of a source. The reader locks the source until
    /// everything is read or the body is dropped.
    pub(super) fn new(
        mut source: OwnedMutexGuard<Box<dyn Source>>,
        length: u64,
        progress: Arc<Progress>,
    ) -> FileBody {
        let (send, pieces) = mpsc::channel(AHEAD);
        tokio::task::spawn_blocking(move || {
            let mut left = length;
            let mut failed = source.seek(SeekFrom::Start(0)).err();
            while left > 0 && failed.is_none() {
                let mut piece = Vec::with_capacity(PIECE.min(left as usize));
                match (&mut **source)
                    .take(left.min(PIECE as u64))
                    .read_to_end(&mut piece)
                {
                    Ok(0) => failed = Some(io::ErrorKind::UnexpectedEof.into()),
                    Ok(read) => {
                        left -= read as u64;
                        if send.blocking_send(Ok(piece.into())).is_err() {
                            return;
                        }
                    }
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(error) = failed {
                // If the body was dropped, the error is irrelevant.
                let _ = send.blocking_send(Err(error));
            }
        });
        FileBody {
            pieces,
            left: length,
            progress,
        }
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Content::Text(text) if text.is_empty() => Poll::Ready(None),
            Content::Text(text) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(text))))),
            Content::File(file) if file.left == 0 => Poll::Ready(None),
            Content::File(file) => file.pieces.poll_recv(context).map(|piece| {
                let piece = match piece? {
                    Ok(piece) => piece,
                    Err(error) => return Some(Err(error)),
                };
                let length = piece.len() as u64;
                file.left = file.left.saturating_sub(length);
                file.progress.taken.fetch_add(length, Ordering::AcqRel);
                Some(Ok(Frame::data(piece)))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Content::Text(text) => text.is_empty(),
            Content::File(file) => file.left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Content::Text(text) => text.len() as u64,
            Content::File(file) => file.left,
        })
    }
}

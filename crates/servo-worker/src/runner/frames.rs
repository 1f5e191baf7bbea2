//! Frames: four bytes of length, big-endian, and a JSON object of that length.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// No frame is longer.
pub(super) const MAX_FRAME: usize = 16 << 20;

/// Why no frame came.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    /// The other side hung up, or the system did.
    #[error("the connection ended: {0}")]
    Io(#[from] std::io::Error),
    /// The other side does not keep to the protocol.
    #[error("a frame of {len} bytes, and {MAX_FRAME} are allowed")]
    TooLong { len: usize },
    /// What came is not a message.
    #[error("a frame that is not a message: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// Reads the next message.
pub(super) async fn read<T: DeserializeOwned>(from: &mut (impl AsyncRead + Unpin)) -> Result<T, FrameError> {
    let len = from.read_u32().await? as usize;
    if len > MAX_FRAME {
        return Err(FrameError::TooLong { len });
    }
    let mut frame = vec![0; len];
    from.read_exact(&mut frame).await?;
    Ok(serde_json::from_slice(&frame)?)
}

/// Writes a message, in one piece.
pub(super) async fn write(
    to: &mut (impl AsyncWrite + Unpin),
    message: &impl Serialize,
) -> Result<(), FrameError> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let len = frame.len() - 4;
    if len > MAX_FRAME {
        return Err(FrameError::TooLong { len });
    }
    frame[..4].copy_from_slice(&(len as u32).to_be_bytes());
    to.write_all(&frame).await?;
    Ok(())
}

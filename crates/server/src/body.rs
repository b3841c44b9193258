//! Request bodies: within a size, within a time, and within what the server holds at once.

use std::{sync::Arc, time::Duration};

use axum::{body::Body, http::HeaderMap};
use base::{Code, Error, Result};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::App;

/// How much of an unwanted body is read before the refusal is sent. A client that is still sending when
/// its connection is closed would see the close and not the reason.
const DRAIN_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How long that may take in all, and how long it may stand still.
const DRAIN_TIME: Duration = Duration::from_secs(5);
const DRAIN_IDLE: Duration = Duration::from_millis(500);

/// A body in memory, with its share of what the server may hold.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

/// Reads a body of at most `bytes_max` bytes.
///
/// # Errors
/// [`Code::BodyTooLarge`], [`Code::Overloaded`] if the server holds too many bodies, and
/// [`Code::BadRequest`] if the body stands still, takes too long, or ends before its time.
pub(crate) async fn read(app: &App, headers: &HeaderMap, body: &mut Body, bytes_max: usize) -> Result<Held> {
    let too_large =
        |got: String| Error::new(Code::BodyTooLarge, format!("the body is too large (got {got} bytes, expected at most {bytes_max})"));
    let declared = content_length(headers);
    if let Some(n) = declared.filter(|n| *n > bytes_max as u64) {
        return Err(too_large(n.to_string()));
    }
    let mut buffer = BytesMut::new();
    let mut share = Share::new(Arc::clone(&app.body_kib));
    share.cover(usize::try_from(declared.unwrap_or(0)).unwrap_or(usize::MAX))?;
    let all = async {
        while let Some(bytes) = timeout(app.config.idle_timeout, next(body)).await.map_err(|_| stopped(buffer.len()))?? {
            if buffer.len() + bytes.len() > bytes_max {
                return Err(too_large("more".to_owned()));
            }
            share.cover(buffer.len() + bytes.len())?;
            buffer.extend_from_slice(&bytes);
        }
        Ok(())
    };
    match timeout(app.config.body_timeout, all).await {
        Ok(outcome) => outcome?,
        Err(_) => return Err(stopped(buffer.len())),
    }
    Ok(Held { bytes: buffer.freeze(), _share: share.permit })
}

/// The next bytes of a body; `None` at its end.
///
/// # Errors
/// [`Code::BadRequest`] if the connection breaks or the chunking is malformed.
pub(crate) async fn next(body: &mut Body) -> Result<Option<Bytes>> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Error::new(Code::BadRequest, "the body ended before it was complete; nothing was done").with_internal(error.to_string())
        })?;
        // Trailers are of no use to any route.
        if let Ok(bytes) = frame.into_data() {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// Reads and forgets what is left of a body, as far as that is worth it.
pub(crate) async fn drain(headers: &HeaderMap, body: &mut Body) {
    // Reading would tell a client that waits for `100 Continue` to send what nobody wants.
    if headers.contains_key("expect") {
        return;
    }
    let mut left = DRAIN_BYTES_MAX;
    let _ = timeout(DRAIN_TIME, async {
        while let Ok(Ok(Some(bytes))) = timeout(DRAIN_IDLE, next(body)).await {
            left = left.saturating_sub(bytes.len());
            if left == 0 {
                break;
            }
        }
    })
    .await;
}

/// The error of a body that stands still or drips.
pub(crate) fn stopped(n_bytes: usize) -> Error {
    Error::new(Code::BadRequest, format!("the body did not come in time (got {n_bytes} bytes of it); nothing was done"))
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(axum::http::header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A body's share of the memory for bodies. It never waits: two bodies that each held half would wait for ever.
struct Share {
    pool: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Share {
    fn new(pool: Arc<Semaphore>) -> Self {
        Self { pool, permit: None }
    }

    /// Grows the share until it covers `n_bytes`.
    fn cover(&mut self, n_bytes: usize) -> Result<()> {
        let held = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = n_bytes.div_ceil(1024).saturating_sub(held);
        if missing == 0 {
            return Ok(());
        }
        let more = u32::try_from(missing).ok().and_then(|n| Arc::clone(&self.pool).try_acquire_many_owned(n).ok()).ok_or_else(|| {
            Error::new(
                Code::Overloaded,
                "the server holds as many request bodies as it may; nothing was done. Send the request again later",
            )
        })?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_grows_to_the_pools_end_and_comes_back() {
        let pool = Arc::new(Semaphore::new(4));
        let mut share = Share::new(Arc::clone(&pool));
        share.cover(0).unwrap();
        share.cover(1).unwrap();
        share.cover(1024).unwrap();
        assert_eq!(pool.available_permits(), 3);
        share.cover(4096).unwrap();
        assert_eq!(pool.available_permits(), 0);
        let error = share.cover(4097).unwrap_err();
        assert!(error.code == Code::Overloaded && error.retryable);
        drop(share);
        assert_eq!(pool.available_permits(), 4);
    }
}

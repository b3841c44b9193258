//! Import and export: the polled calls, and the two links over which the files go.
//!
//! A link's path ends in a secret that was handed to a caller who was asked for a credential, so the
//! link asks for none. It is never logged: the log names routes, not paths.

use std::io::SeekFrom;

use api::{
    envelope,
    export::ExportRequest,
    import::{ImportRequest, ImportUpload},
};
use axum::{
    body::Body,
    http::{
        HeaderValue,
        header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, ETAG},
    },
};
use base::{Error, Result};
use bytes::Bytes;
use d1::ImportInit;
use futures_util::stream;
use tokio::{
    io::{AsyncReadExt, AsyncSeekExt},
    time::timeout,
};

use crate::{answer::Answer, body, call::Call, convert};

/// Bytes of an export that are read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// `POST …/import`.
pub(crate) async fn import(call: Call) -> Result<Answer> {
    let (d1, ctx, database) = (&call.app.d1, &call.ctx, call.capture("database"));
    let state = match call.json()? {
        ImportRequest::Init { etag } => match d1.import_init(ctx, database, &etag).await? {
            ImportInit::Upload { link, filename } => {
                let upload_url = format!("{}/uploads/{link}", call.origin);
                return Ok(Answer::json(envelope::success(ImportUpload { upload_url, filename })));
            }
            ImportInit::Known(state) => state,
        },
        ImportRequest::Ingest { filename, etag } => d1.import_ingest(ctx, database, &filename, &etag).await?,
        ImportRequest::Poll { current_bookmark } => d1.import_poll(ctx, database, &current_bookmark).await?,
    };
    Ok(Answer::json(envelope::success(convert::import_poll(state))))
}

/// `POST …/export`.
pub(crate) async fn export(call: Call) -> Result<Answer> {
    let body: ExportRequest = call.json()?;
    let options = convert::export_options(body.dump_options.unwrap_or_default());
    let state = call.app.d1.export_poll(&call.ctx, call.capture("database"), options, body.current_bookmark.as_deref()).await?;
    Ok(Answer::json(envelope::success(convert::export_poll(state, &call.origin))))
}

/// `PUT /uploads/{link}`. wrangler takes the `etag`, without its quotes, for the MD5 of what arrived.
pub(crate) async fn upload(mut call: Call) -> Result<Answer> {
    match receive(&mut call).await {
        Ok(etag) => {
            let etag = HeaderValue::from_str(&format!("\"{etag}\"")).map_err(|error| Error::internal(format!("etag: {error}")))?;
            Ok(Answer::json(envelope::success(())).with_header(ETAG, etag))
        }
        Err(error) => {
            body::drain(&call.headers, &mut call.stream).await;
            Err(error)
        }
    }
}

/// Hands bytes to the service as they come, so that memory does not grow with the file. Returns their MD5.
async fn receive(call: &mut Call) -> Result<String> {
    let mut upload = call.app.d1.upload_open(&call.ctx, call.capture("link")).await?;
    let mut n_bytes = 0;
    loop {
        let next = timeout(call.app.config.idle_timeout, body::next(&mut call.stream)).await;
        let Some(bytes) = next.map_err(|_| body::stopped(n_bytes))?? else { return upload.finish().await };
        n_bytes += bytes.len();
        upload.write(&bytes).await?;
    }
}

/// `GET /exports/{link}`.
pub(crate) async fn download(call: Call) -> Result<Answer> {
    let (file, n_bytes, filename) = call.app.d1.export_open(&call.ctx, call.capture("link")).await?;
    let mut file = tokio::fs::File::from_std(file);
    // Two downloads may share one open file's position.
    file.seek(SeekFrom::Start(0)).await.map_err(|error| Error::io("the export", error))?;
    let chunks = stream::try_unfold(file, |mut file| async move {
        let mut chunk = vec![0; CHUNK_BYTES];
        let n = file.read(&mut chunk).await?;
        chunk.truncate(n);
        Ok::<_, std::io::Error>((n > 0).then(|| (Bytes::from(chunk), file)))
    });
    let answer = Answer { body: Body::from_stream(chunks), ..Answer::json(Vec::new()) };
    let disposition = format!("attachment; filename=\"{}\"", filename.replace(['"', '\\', '\r', '\n'], "_"));
    let disposition = HeaderValue::from_str(&disposition).map_err(|error| Error::internal(format!("filename: {error}")))?;
    Ok(answer
        .with_header(CONTENT_TYPE, HeaderValue::from_static("application/sql"))
        .with_header(CONTENT_LENGTH, HeaderValue::from(n_bytes))
        .with_header(CONTENT_DISPOSITION, disposition))
}

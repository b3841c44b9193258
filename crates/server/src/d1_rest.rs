//! Databases and queries over REST.

use api::{
    database::{CreateDatabase, Fields, UpdateDatabase},
    envelope,
    result::Form,
};
use base::{Code, Error, Result};

use crate::{
    answer::{Answer, HEAVY_BYTES, offload},
    call::Call,
    convert, session,
};

/// `POST /d1/database`.
pub(crate) async fn create(call: Call) -> Result<Answer> {
    let new = convert::new_database(call.json::<CreateDatabase>()?);
    let info = call.app.d1.create(&call.ctx, new).await?;
    // The database is there, whatever its figures say; a token that may only create may not read them.
    let stats = call.app.d1.stats(&call.ctx, info.id).await.ok();
    Ok(Answer::json(envelope::success(convert::created_database(info, stats, &call.app.config.region))))
}

/// `GET /d1/database`.
pub(crate) async fn list(call: Call) -> Result<Answer> {
    let (page, per_page) = call.query.page()?;
    let name = call.query.get("name").filter(|name| !name.is_empty());
    let databases = call.app.d1.list(&call.ctx, name, page, per_page).await?;
    Ok(Answer::json(convert::page(databases, convert::list_item)))
}

/// `GET /d1/database/{database}`, by id or by name.
pub(crate) async fn get(call: Call) -> Result<Answer> {
    let fields = Fields::new(call.query.all("fields"));
    let info = call.app.d1.get(&call.ctx, call.capture("database")).await?;
    // Only these two need the database's file; wrangler's look-up of a name asks for neither.
    let stats = match fields.wants("num_tables") || fields.wants("file_size") {
        true => Some(call.app.d1.stats(&call.ctx, info.id).await?),
        false => None,
    };
    Ok(Answer::json(envelope::success(fields.select(&convert::database(info, stats, &call.app.config.region)))))
}

/// `PATCH` and `PUT /d1/database/{database}`.
pub(crate) async fn update(call: Call) -> Result<Answer> {
    let body: UpdateDatabase = call.json()?;
    let info = call.app.d1.set_read_replication(&call.ctx, call.capture("database"), &body.read_replication.mode).await?;
    let stats = call.app.d1.stats(&call.ctx, info.id).await?;
    Ok(Answer::json(envelope::success(convert::database(info, Some(stats), &call.app.config.region))))
}

/// `DELETE /d1/database/{database}`.
pub(crate) async fn delete(call: Call) -> Result<Answer> {
    call.app.d1.delete(&call.ctx, call.capture("database")).await?;
    Ok(Answer::json(envelope::success(())))
}

/// `POST /d1/database/{database}/query`: rows as objects.
pub(crate) async fn query(call: Call) -> Result<Answer> {
    run(call, Form::Objects).await
}

/// `POST /d1/database/{database}/raw`: rows as arrays.
pub(crate) async fn raw(call: Call) -> Result<Answer> {
    run(call, Form::ColumnsAndRows).await
}

async fn run(mut call: Call, form: Form) -> Result<Answer> {
    let body = std::mem::take(&mut call.body);
    let batch = offload(body.bytes.len() > HEAVY_BYTES, move || api::query::decode_rest(&body.bytes).map(convert::scripts)).await?;
    let (results, bookmark) = call.app.d1.query(&call.ctx, call.capture("database"), batch).await?;
    let bookmark = session::headers(&call.headers, bookmark);
    let (heavy, app) = (convert::are_heavy(&results), call.app);
    let body = offload(heavy, move || Ok(convert::rest_results(&results, &app.config.region, form))).await?;
    Ok(Answer::json(body).with_headers(bookmark))
}

/// `…/time_travel/…`: the routes are there, so that clients get a reason and not a 404.
#[expect(clippy::unused_async, reason = "a handler")]
pub(crate) async fn time_travel(_: Call) -> Result<Answer> {
    Err(Error::new(
        Code::NotImplemented,
        "Time Travel is not served by this release of Hearth; use an export to keep a state of the database",
    ))
}

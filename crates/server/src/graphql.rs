//! `POST /graphql`: the analytics that wrangler asks for. Not enveloped.

use api::graphql::{self, D1Sum, GraphqlRequest, Question};
use api::time::iso;
use base::{Ctx, Result};

use crate::{App, answer::Answer, call::Call};

/// Answers by the operation's name.
pub(crate) async fn answer(call: Call) -> Result<Answer> {
    let request: GraphqlRequest = call.json()?;
    let is_ours = request.account().is_none_or(|account| account == call.app.config.account.as_str());
    let value = match request.question() {
        _ if !is_ours => graphql::no_account(),
        Question::D1Metrics(Some(database)) => d1_metrics(&call.app, &call.ctx, &database).await?,
        Question::D1Metrics(None) => graphql::d1_metrics(&[]),
        Question::D1Queries => graphql::d1_queries_empty(),
        Question::Unknown => graphql::unknown(),
    };
    Ok(Answer::json(value.to_string().into_bytes()))
}

async fn d1_metrics(app: &App, ctx: &Ctx, database: &str) -> Result<serde_json::Value> {
    let hours = app.d1.hour_use(ctx, database.parse()?).await?;
    let hours = hours.iter().map(|hour| {
        let sum = D1Sum {
            read_queries: hour.read_queries,
            write_queries: hour.write_queries,
            rows_read: hour.rows_read,
            rows_written: hour.rows_written,
        };
        (iso(hour.hour), sum)
    });
    Ok(graphql::d1_metrics(&hours.collect::<Vec<_>>()))
}

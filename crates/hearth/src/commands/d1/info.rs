//! `hearth d1 info`: a database and what was asked of it in the last day.

use std::process::ExitCode;

use base::{Clock, SystemClock, Timestamp};
use serde_json::{Value, json};

use super::{database_path, object_table};
use crate::{client::Client, failure::Failure, printer::Printer};

/// The hours that the figures are summed over.
const WINDOW_MS: i64 = 24 * 3_600_000;
/// wrangler's own question, cut to what is read here. The server goes by its name.
const QUERY: &str = "query getD1MetricsOverviewQuery($accountTag: string, $filter: ZoneWorkersRequestsFilter_InputObject) { viewer { accounts(filter: {accountTag: $accountTag}) { d1AnalyticsAdaptiveGroups(limit: 10000, filter: $filter) { sum { readQueries writeQueries rowsRead rowsWritten } dimensions { datetimeHour } } } } }";

/// Show a database: size, tables, and its use over the last 24 hours
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or id
    database: String,
}

/// Runs the command.
///
/// # Errors
/// If there is no such database.
pub(crate) fn run(args: &Args, client: &Client, printer: &Printer) -> Result<ExitCode, Failure> {
    let mut info = client.get(&database_path(&args.database))?;
    let now = SystemClock::default().now();
    let variables = json!({
        "accountTag": client.target().account.as_str(),
        "filter": { "AND": [{
            "datetimeHour_geq": api::time::iso(Timestamp(now.0 - WINDOW_MS)),
            "datetimeHour_leq": api::time::iso(now),
            "databaseId": info["uuid"],
        }] },
    });
    let body = json!({ "query": QUERY, "operationName": "getD1MetricsOverviewQuery", "variables": variables });
    // A token for databases only may not ask for figures; the database itself is still shown.
    let data = client.graphql(&body).unwrap_or_else(|failure| {
        printer.warn(&format!("without the figures of the last 24 hours: {}", failure.message));
        Value::Null
    });
    let Some(hours) = data.pointer("/viewer/accounts/0/d1AnalyticsAdaptiveGroups").and_then(Value::as_array) else {
        printer.result(&info, &object_table(&info))?;
        return Ok(ExitCode::SUCCESS);
    };
    let sum = |name: &str| hours.iter().filter_map(|hour| hour["sum"][name].as_u64()).sum::<u64>();
    for (field, name) in [
        ("read_queries_24h", "readQueries"),
        ("write_queries_24h", "writeQueries"),
        ("rows_read_24h", "rowsRead"),
        ("rows_written_24h", "rowsWritten"),
    ] {
        info[field] = sum(name).into();
    }
    printer.result(&info, &object_table(&info))?;
    Ok(ExitCode::SUCCESS)
}

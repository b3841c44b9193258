//! `hearth d1 execute`: runs SQL and shows rows and what they cost.

use std::{fs::File, io::Read, path::PathBuf, process::ExitCode};

use serde_json::{Value, json};

use super::{cell, database_path};
use crate::{client::Client, failure::Failure, printer::Printer, table::Table};

/// Bytes of SQL that one request carries; larger files go through `import`.
const SQL_BYTES_MAX: u64 = 32_000_000;

/// Run SQL; several statements run as one transaction
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("sql").required(true))]
pub(crate) struct Args {
    /// Name or id
    database: String,
    /// The SQL
    #[arg(long, short, group = "sql", value_name = "SQL")]
    command: Option<String>,
    /// A file with the SQL; - is standard input
    #[arg(long, short, group = "sql", value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Runs the command. With `--json` it prints the server's list of results as it came, like wrangler.
///
/// # Errors
/// SQLite's own message if a statement fails; then nothing was changed.
pub(crate) fn run(args: &Args, client: &Client, printer: &Printer) -> Result<ExitCode, Failure> {
    let sql = match (&args.command, &args.file) {
        (Some(sql), _) => sql.clone(),
        (None, Some(file)) => read_sql(file)?,
        (None, None) => return Err(Failure::usage("no SQL (expected --command or --file)")),
    };
    let path = database_path(&args.database);
    let body = json!({ "sql": sql });
    if printer.is_json() {
        let results = client.post(&format!("{path}/query"), &body)?;
        printer.json_value(&results)?;
        return Ok(ExitCode::SUCCESS);
    }
    // `raw` keeps empty and repeated column names, which objects cannot.
    let results = client.post(&format!("{path}/raw"), &body)?;
    let mut is_first = true;
    for result in results.as_array().into_iter().flatten() {
        let columns = &result["results"]["columns"];
        let rows = &result["results"]["rows"];
        if columns.as_array().is_some_and(|columns| !columns.is_empty()) {
            if !is_first {
                printer.line("")?;
            }
            is_first = false;
            printer.table(&rows_table(columns, rows))?;
        }
        printer.note(&cost(rows.as_array().map_or(0, Vec::len), &result["meta"]));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a statement cost, in a line.
fn cost(n_rows: usize, meta: &Value) -> String {
    let rows = if n_rows == 1 { "row" } else { "rows" };
    let duration = meta["duration"].as_f64().unwrap_or_default();
    format!("{n_rows} {rows}, rows_read {}, rows_written {}, {duration:.2} ms", cell(&meta["rows_read"]), cell(&meta["rows_written"]))
}

fn rows_table(columns: &Value, rows: &Value) -> Table {
    let cells = |list: &Value| list.as_array().into_iter().flatten().map(cell).collect::<Vec<_>>();
    let mut table = Table::new(cells(columns));
    for row in rows.as_array().into_iter().flatten() {
        table.push(cells(row));
    }
    table
}

/// The SQL of a file, or of standard input for `-`.
fn read_sql(file: &PathBuf) -> Result<String, Failure> {
    let shown = if file.as_os_str() == "-" { "standard input".to_owned() } else { file.display().to_string() };
    let mut bytes = Vec::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().lock().take(SQL_BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|file| file.take(SQL_BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::io(format!("{shown} could not be read"), &error))?;
    if bytes.len() as u64 > SQL_BYTES_MAX {
        return Err(Failure::new(format!("{shown} is larger than {SQL_BYTES_MAX} bytes, which one request does not carry"))
            .hint("send it as a file: `hearth d1 import DATABASE FILE` takes up to 5 GB"));
    }
    String::from_utf8(bytes).map_err(|error| {
        Failure::new(format!("{shown} is not UTF-8 (byte {} cannot be read)", error.utf8_error().valid_up_to()))
            .hint("convert it, for example with `iconv -t UTF-8`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_repeated_columns_and_every_kind_of_value_are_shown() {
        let table = rows_table(&json!(["a", "a", ""]), &json!([[1, "x", null], [1.5, [0, 255], "NULL"]]));
        assert_eq!(table.tab_separated(), "a\ta\t\n1\tx\tNULL\n1.5\t[0,255]\tNULL\n");
    }

    #[test]
    fn the_cost_names_the_billed_figures() {
        let meta = json!({"rows_read": 2186, "rows_written": 0, "duration": 1.2345});
        assert_eq!(cost(1, &meta), "1 row, rows_read 2186, rows_written 0, 1.23 ms");
        assert_eq!(cost(0, &meta), "0 rows, rows_read 2186, rows_written 0, 1.23 ms");
    }
}

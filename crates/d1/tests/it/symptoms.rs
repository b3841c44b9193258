//! The seed's table "Symptom, cause, fix": the rows that a service can show, each with its text.
//! COMPAT.md says for each of the 15 rows where it is provoked.

use base::{Code, Limits};
use d1::{Batch, Statement, Value};

use crate::Home;

#[tokio::test(flavor = "multi_thread")]
async fn d3_03_an_account_that_is_full_refuses_writes_until_a_database_is_deleted() {
    let home = Home::new(Limits { account_bytes_max: 300_000, ..Limits::d1_paid() }).await;
    home.create("a").await;
    home.create("b").await;
    home.run("a", "CREATE TABLE t(a); INSERT INTO t VALUES(zeroblob(400000))").await.unwrap();
    let error = home.run("b", "CREATE TABLE t(a)").await.unwrap_err();
    let text = "Your account has exceeded D1's maximum account storage limit, please contact Cloudflare to raise your limit.";
    assert_eq!((error.code, error.message.as_str(), error.retryable), (Code::Sql, text, false));
    home.run("b", "SELECT 1").await.unwrap();
    home.d1.delete(&home.ctx, "a").await.unwrap();
    home.run("b", "CREATE TABLE t(a)").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_01_d3_02_and_d1_17_refusals_of_size_have_their_texts_through_the_service() {
    let home = Home::new(Limits::d1_paid()).await;
    home.create("a").await;
    home.run("a", "CREATE TABLE t(a)").await.unwrap();
    let bind = |value: Value| {
        let item = Statement { sql: "INSERT INTO t VALUES(?1)".to_owned(), params: vec![value] };
        home.d1.query(&home.ctx, "a", Batch { items: vec![item], is_prepared: false })
    };
    bind(Value::Text("x".repeat(2_000_000))).await.unwrap();
    assert_eq!(bind(Value::Text("x".repeat(2_000_001))).await.unwrap_err().message, "string or blob too big: SQLITE_TOOBIG");
    let long = format!("INSERT INTO t VALUES('{}')", "x".repeat(100_000));
    assert_eq!(home.run("a", &long).await.unwrap_err().message, "statement too long: SQLITE_TOOBIG");
    let six = ["SELECT 1"; 6].join(" UNION ALL ");
    assert_eq!(home.run("a", &six).await.unwrap_err().message, "too many terms in compound SELECT: SQLITE_ERROR");
    assert_eq!(home.run("a", "SELECT * FROM dbstat").await.unwrap_err().message, "no such table: dbstat: SQLITE_ERROR");
    assert_eq!(home.count("a", "SELECT count(*) FROM t").await, 1);
}

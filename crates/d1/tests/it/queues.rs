//! One database is one queue; its limits have production's texts.

use std::time::Duration;

use base::{Code, Limits};

use crate::Home;

const SLOW: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 100000000) SELECT count(*) FROM c";

#[tokio::test(flavor = "multi_thread")]
async fn d3_03_a_full_queue_and_a_long_wait_are_refused_and_another_database_goes_on() {
    let limits = Limits { query_ms_max: 600, queued_requests_max: 3, queued_ms_max: 200, ..Limits::d1_paid() };
    let home = std::sync::Arc::new(Home::new(limits).await);
    home.create("slow").await;
    home.create("quick").await;
    let mut waiting = Vec::new();
    for i in 0..6 {
        let home = std::sync::Arc::clone(&home);
        waiting.push(tokio::spawn(async move { home.run("slow", SLOW).await.map(drop).map_err(|e| (e.code, e.message, e.retryable)) }));
        if i == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    home.run("quick", "SELECT 1").await.unwrap();
    let mut texts = Vec::new();
    for task in waiting {
        texts.push(task.await.unwrap().unwrap_err());
    }
    let of = |code, text: &str, retryable| texts.iter().filter(|t| **t == (code, text.to_owned(), retryable)).count();
    assert_eq!(of(Code::Timeout, "D1 DB exceeded its CPU time limit and was reset.", false), 1, "{texts:?}");
    assert_eq!(of(Code::Overloaded, "D1 DB is overloaded. Too many requests queued.", true), 2, "{texts:?}");
    assert_eq!(of(Code::Overloaded, "D1 DB is overloaded. Requests queued for too long.", true), 3, "{texts:?}");
    home.run("slow", "SELECT 1").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_03_a_stop_ends_what_waits_with_a_reset_and_lets_what_runs_finish() {
    let home = std::sync::Arc::new(Home::new(Limits { query_ms_max: 700, ..Limits::d1_paid() }).await);
    home.create("a").await;
    let spawn = |sql: &'static str| {
        let home = std::sync::Arc::clone(&home);
        tokio::spawn(async move { home.run("a", sql).await.map(drop).map_err(|e| (e.message, e.retryable)) })
    };
    let running = spawn(SLOW);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let waiting = spawn("CREATE TABLE never(a)");
    tokio::time::sleep(Duration::from_millis(100)).await;
    home.d1.shutdown().await;
    assert_eq!(waiting.await.unwrap().unwrap_err(), ("D1 DB reset because its code was updated.".to_owned(), true));
    assert_eq!(running.await.unwrap().unwrap_err().0, "D1 DB exceeded its CPU time limit and was reset.");
    assert_eq!(home.run("a", "SELECT 1").await.unwrap_err().code, Code::Reset);
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_database_ends_what_runs_on_it() {
    let home = std::sync::Arc::new(Home::new(Limits::d1_paid()).await);
    home.create("a").await;
    let running = {
        let home = std::sync::Arc::clone(&home);
        tokio::spawn(async move { home.run("a", SLOW).await.map(drop).map_err(|e| e.code) })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    let waiting = {
        let home = std::sync::Arc::clone(&home);
        tokio::spawn(async move { home.run("a", "SELECT 1").await.map(drop).map_err(|e| (e.code, e.retryable)) })
    };
    tokio::time::sleep(Duration::from_millis(50)).await;
    home.d1.delete(&home.ctx, "a").await.unwrap();
    assert_eq!(running.await.unwrap(), Err(Code::DatabaseNotFound), "not a reset: it can never succeed");
    assert_eq!(waiting.await.unwrap(), Err((Code::DatabaseNotFound, false)));
}

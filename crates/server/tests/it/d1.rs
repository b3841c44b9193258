//! Databases and queries over REST.

use serde_json::{Value, json};

use crate::harness::{ACCOUNT, Hearth};

fn databases() -> String {
    format!("{ACCOUNT}/d1/database")
}

fn database(name: &str) -> String {
    format!("{ACCOUNT}/d1/database/{name}")
}

async fn query(hearth: &Hearth, body: Value) -> Value {
    let reply = hearth.call("POST", &database("shop/query"), body.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()["result"].clone()
}

#[tokio::test]
async fn a_database_is_created_found_by_both_names_and_deleted() {
    let hearth = Hearth::start().await;
    let body = json!({"name": "shop", "primary_location_hint": "weur"}).to_string();
    let made = hearth.call("POST", &databases(), body).await.json()["result"].clone();
    let id = made["uuid"].as_str().unwrap();
    assert_eq!((&made["name"], &made["version"], &made["running_in_region"]), (&json!("shop"), &json!("production"), &json!("WEUR")));
    assert_eq!((&made["created_in_region"], &made["primary_location_hint"]), (&json!("WEUR"), &json!("weur")));
    assert!(made["file_size"].as_u64().unwrap() >= 4096 && made["num_tables"] == 0 && made["jurisdiction"].is_null());
    for name in ["shop", id] {
        let got = hearth.call("GET", &database(name), "").await.json()["result"].clone();
        assert_eq!((&got["uuid"], &got["read_replication"]), (&made["uuid"], &json!({"mode": "disabled"})));
        assert_eq!(got.get("created_in_region"), None);
    }
    let deleted = hearth.call("DELETE", &database(id), "").await;
    assert_eq!(deleted.text(), r#"{"success":true,"errors":[],"messages":[],"result":null}"#);
    for name in ["shop", id] {
        let gone = hearth.call("GET", &database(name), "").await;
        assert_eq!((gone.status, gone.error().0), (404, 7404), "{name}");
    }
}

#[tokio::test]
async fn only_the_fields_that_are_asked_for_are_shown() {
    let hearth = Hearth::start().await;
    let id = hearth.database("shop").await;
    for query in ["fields=uuid%2Cname", "fields=uuid,name", "fields=uuid&fields=name", "fields=name&fields=uuid,nothing"] {
        let got = hearth.call("GET", &database(&format!("shop?{query}")), "").await.json()["result"].clone();
        assert_eq!(got, json!({"uuid": id, "name": "shop"}), "{query}");
    }
}

#[tokio::test]
async fn a_second_database_of_one_name_is_a_conflict_that_is_not_sent_again() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    let again = hearth.call("POST", &databases(), r#"{"name":"shop"}"#).await;
    assert_eq!((again.status, again.error().0, again.header("x-should-retry")), (409, 7502, Some("false")));
}

#[tokio::test]
async fn lists_come_in_pages_and_end_with_an_empty_one() {
    let hearth = Hearth::start().await;
    for i in 0..12 {
        hearth.database(&format!("db-{i:02}")).await;
    }
    let page = async |query: &str| hearth.call("GET", &format!("{}?{query}", databases()), "").await.json();
    let first = page("per_page=10&page=1").await;
    assert_eq!(first["result"].as_array().unwrap().len(), 10);
    assert_eq!(first["result_info"], json!({"page": 1, "per_page": 10, "count": 10, "total_count": 12, "total_pages": 2}));
    let keys: Vec<_> = first["result"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["uuid", "name", "version", "created_at", "jurisdiction"]);
    assert_eq!(page("per_page=10&page=2").await["result"].as_array().unwrap().len(), 2);
    for past in ["per_page=10&page=3", "page=2", "page=4294967295&per_page=10000"] {
        assert_eq!(page(past).await["result"], json!([]), "{past}");
    }
    assert_eq!(page("").await["result"].as_array().unwrap().len(), 12);
    assert_eq!(page("name=db-03").await["result"].as_array().unwrap().len(), 1);
    assert_eq!(hearth.call("GET", &format!("{}?page=0", databases()), "").await.error().0, 7400);
}

#[tokio::test]
async fn replication_is_set_by_patch_and_put() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    for (method, mode) in [("PATCH", "auto"), ("PUT", "disabled")] {
        let reply = hearth.call(method, &database("shop"), json!({"read_replication": {"mode": mode}}).to_string()).await;
        assert_eq!(reply.json()["result"]["read_replication"]["mode"], mode, "{method}");
    }
    let wrong = hearth.call("PATCH", &database("shop"), r#"{"read_replication":{"mode":"sometimes"}}"#).await;
    assert_eq!((wrong.status, wrong.error().0), (400, 7400));
    assert_eq!(hearth.call("PATCH", &database("shop"), "{}").await.status, 400);
}

#[tokio::test]
async fn a_query_gives_one_result_for_each_statement() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    let results = query(&hearth, json!({"sql": "CREATE TABLE t(a, b); INSERT INTO t VALUES(1, 'x'); SELECT * FROM t"})).await;
    let shown: Vec<_> = results.as_array().unwrap().iter().map(|result| &result["results"]).collect();
    assert_eq!(shown, [&json!([]), &json!([]), &json!([{"a": 1, "b": "x"}])]);
    let keys: Vec<_> = results[1].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["results", "success", "meta"]);
    let meta = results[1]["meta"].as_object().unwrap();
    assert_eq!(
        meta.keys().collect::<Vec<_>>(),
        [
            "served_by",
            "served_by_region",
            "served_by_primary",
            "timings",
            "duration",
            "changes",
            "last_row_id",
            "changed_db",
            "size_after",
            "rows_read",
            "rows_written",
            "total_attempts"
        ]
    );
    assert_eq!((&meta["changes"], &meta["last_row_id"], &meta["rows_written"]), (&json!(1), &json!(1), &json!(1)));
    assert!(meta["served_by"].as_str().unwrap().starts_with("hearth-"));
}

#[tokio::test]
async fn a_batch_is_one_transaction() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    query(&hearth, json!({"sql": "CREATE TABLE t(a UNIQUE)"})).await;
    let results = query(&hearth, json!({"batch": [{"sql": "INSERT INTO t VALUES(?)", "params": ["x"]}, {"sql": "SELECT * FROM t"}]})).await;
    assert_eq!(results[1]["results"], json!([{"a": "x"}]));
    let poison = json!({"batch": [{"sql": "INSERT INTO t VALUES('y')"}, {"sql": "INSERT INTO t VALUES('x')"}]});
    let failed = hearth.call("POST", &database("shop/query"), poison.to_string()).await;
    assert_eq!((failed.status, failed.error().0, &failed.json()["result"]), (400, 7500, &json!([])));
    assert!(failed.error().1.starts_with("UNIQUE constraint failed: t.a: SQLITE_CONSTRAINT"), "{}", failed.error().1);
    assert_eq!(query(&hearth, json!({"sql": "SELECT COUNT(*) n FROM t"})).await[0]["results"], json!([{"n": 1}]));
}

#[tokio::test]
async fn raw_gives_columns_and_rows() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    let raw = hearth.call("POST", &database("shop/raw"), r#"{"sql":"SELECT 1 AS a, 2 AS a, x'00ff' AS b"}"#).await.json();
    assert_eq!(raw["result"][0]["results"], json!({"columns": ["a", "a", "b"], "rows": [[1, 2, [0, 255]]]}));
    let objects = query(&hearth, json!({"sql": "SELECT 1 AS a, 2 AS a, x'00ff' AS b"})).await;
    assert_eq!(objects[0]["results"].to_string(), r#"[{"a":2,"b":[0,255]}]"#);
}

#[tokio::test]
async fn values_come_out_as_d1_sends_them() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    let sql = "SELECT 1.0 a, 1e300 b, 0.1+0.2 c, 9e999 d, -9e999 e, 9223372036854775807 f, 1e21 g, 'a'||char(0)||'b' h, CAST(x'ff41' AS TEXT) i, x'' j, NULL k";
    let reply = hearth.sql("shop", sql).await;
    let text = reply.text();
    let row = r#"{"a":1,"b":1e+300,"c":0.30000000000000004,"d":null,"e":null,"f":9223372036854775807,"g":1e+21,"h":"a\u0000b","i":"�A","j":[],"k":null}"#;
    assert!(text.contains(row), "{text}");
}

#[tokio::test]
async fn parameters_are_bound_as_d1_binds_them() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    for (param, kind, text) in [
        (json!(1), "real", json!("1.0")),
        (json!(true), "real", json!("1.0")),
        (json!(1.5), "real", json!("1.5")),
        (json!("1"), "text", json!("1")),
        (json!([65, 66]), "blob", json!("AB")),
        (Value::Null, "null", Value::Null),
    ] {
        let results = query(&hearth, json!({"sql": "SELECT typeof(?1) t, ?1||'' s", "params": [param.clone()]})).await;
        assert_eq!(results[0]["results"], json!([{"t": kind, "s": text}]), "{param}");
    }
}

#[tokio::test]
async fn a_refused_query_says_so_with_code_7500_and_an_empty_list() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    for (body, message) in [
        (json!({"sql": "SELECT * FROM nope"}), "no such table: nope: SQLITE_ERROR"),
        (json!({"sql": "SELEC 1"}), "near \"SELEC\": syntax error at offset 0: SQLITE_ERROR"),
        (json!({"sql": ""}), "No SQL statements detected."),
        (json!({"batch": []}), "No SQL statements detected."),
        (json!({"sql": "SELECT ?,?", "params": [1]}), "Wrong number of parameter bindings for SQL query."),
        (
            json!({"sql": "SELECT ?", "params": [{}]}),
            "Type 'object' not supported (expected null, a boolean, a number, a string or an array of bytes) for parameter 1",
        ),
    ] {
        for path in ["shop/query", "shop/raw"] {
            let reply = hearth.call("POST", &database(path), body.to_string()).await;
            assert_eq!((reply.status, reply.error()), (400, (7500, message.to_owned())), "{body}");
            assert_eq!((&reply.json()["result"], &reply.json()["retryable"]), (&json!([]), &json!(false)));
        }
    }
}

#[tokio::test]
async fn a_missing_database_is_a_404_on_every_route() {
    let hearth = Hearth::start().await;
    for (method, path, body) in [
        ("GET", "nope", ""),
        ("DELETE", "nope", ""),
        ("PATCH", "nope", r#"{"read_replication":{"mode":"auto"}}"#),
        ("POST", "nope/query", r#"{"sql":"SELECT 1"}"#),
        ("POST", "nope/raw", r#"{"sql":"SELECT 1"}"#),
        ("POST", "nope/import", r#"{"action":"init","etag":"d41d8cd98f00b204e9800998ecf8427e"}"#),
        ("POST", "nope/export", r#"{"output_format":"polling"}"#),
        ("GET", "6f1a2f5e-27e0-4a35-9d7a-1e0d0f5ac3b1", ""),
        ("GET", "a%2Fb", ""),
    ] {
        let reply = hearth.call(method, &database(path), body).await;
        assert_eq!((reply.status, reply.error().0), (404, 7404), "{method} {path}: {}", reply.text());
    }
}

#[tokio::test]
async fn time_travel_is_answered_with_a_code_that_wrangler_prints() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    for (method, path) in
        [("GET", "shop/time_travel/bookmark?timestamp=2026-12-01T11:43:47.000Z"), ("POST", "shop/time_travel/restore?bookmark=x")]
    {
        let reply = hearth.call(method, &database(path), "").await;
        assert_eq!((reply.status, reply.error().0, reply.header("x-should-retry")), (501, 7493, Some("false")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_result_arrives_whole() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    let sql = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 20000) SELECT x, hex(zeroblob(100)) h FROM c";
    let reply = hearth.sql("shop", sql).await;
    let results = reply.json();
    let rows = results["result"][0]["results"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[19_999]["x"], rows[19_999]["h"].as_str().unwrap().len()), (20_000, &json!(20_000), 200));
}

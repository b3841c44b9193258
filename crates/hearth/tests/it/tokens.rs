//! `hearth token` against a server.

use serde_json::json;

use crate::harness::Site;

#[test]
fn a_token_is_shown_once_does_what_it_may_and_ends() {
    let site = Site::start();
    site.run(&["d1", "create", "shop"]).ok();
    site.run(&["d1", "execute", "shop", "--command", "CREATE TABLE t(a)"]).ok();
    let output = site.run(&["token", "create", "--name", "ci", "--scope", "d1:shop:read", "--expires", "30d"]);
    assert!(output.stderr.contains("`ci`: d1:shop:read; expires 20"), "{output:?}");
    let secret = output.ok();
    let secret = secret.strip_suffix('\n').unwrap();
    assert!(secret.starts_with("hth_") && secret.len() == 44 && !secret.contains('\n'), "{secret}");

    let listed = site.run(&["token", "list"]).ok();
    assert!(!listed.contains(secret) && !site.server.stderr().contains(secret));
    let tokens = site.run(&["token", "list", "--json"]).json();
    assert_eq!((&tokens[0]["name"], &tokens[0]["status"]), (&json!("ci"), &json!("active")));
    let id = tokens[0]["id"].as_str().unwrap();

    let query = |sql: &str| site.run_as(secret, &["d1", "execute", "shop", "--command", sql]);
    query("SELECT * FROM t").ok();
    query("INSERT INTO t VALUES (1)").fails(1, &["error: "]);
    site.run_as(secret, &["d1", "create", "other"]).fails(1, &["[code: 9109]", "hint: use the owner's key"]);
    site.run_as(secret, &["token", "list"]).fails(1, &["[code: 9109]"]);
    let info = site.run_as(secret, &["d1", "info", "shop"]);
    assert!(info.stderr.contains("warning: without the figures"), "{info:?}");
    info.ok();
    assert_eq!(site.rows("shop", "SELECT count(*) AS n FROM t"), json!([{ "n": 0 }]));

    assert_eq!(site.run(&["token", "revoke", id]).ok(), format!("revoked\n{id}\n"));
    query("SELECT 1").fails(1, &["[code: 10000]", "hint: the key is not this server's"]);
    assert_eq!(site.run(&["token", "list", "--json"]).json()[0]["status"], "revoked");
    site.run(&["token", "revoke", "nope"]).fails(1, &["[code: 7492]", "hint: `hearth token list`"]);
}

#[test]
fn wrong_scopes_and_times_are_refused_before_anything_is_sent() {
    let site = Site::start();
    let create = |scope: &str, expires: &str| site.run(&["token", "create", "--name", "x", "--scope", scope, "--expires", expires]);
    create("d1:read", "30d").fails(2, &["not a scope (got `d1:read`"]);
    create("d1:*:read", "soon").fails(2, &["wrong --expires `soon`"]);
    create("d1:*:read", "2001-01-01T00:00:00Z").fails(1, &["lies in the past"]);
    assert_eq!(site.run(&["token", "list", "--json"]).json(), json!([]));
    let token = site.run(&["token", "create", "--json", "--name", "x", "--scope", "d1:*:read", "--scope", "account:*:read"]).json();
    assert_eq!((&token["scopes"], &token["expires_on"]), (&json!(["d1:*:read", "account:*:read"]), &json!(null)));
}

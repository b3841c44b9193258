use base::{Code, Ctx, Limits};
use d1::{ExportOptions, ImportInit, ImportState, TransferStatus};
use md5::{Digest, Md5};

use crate::{Home, code};

fn md5(text: &[u8]) -> String {
    Md5::digest(text).iter().map(|b| format!("{b:02x}")).collect()
}

async fn upload(home: &Home, ctx: &Ctx, name: &str, text: &[u8]) -> (String, String) {
    let etag = md5(text);
    let ImportInit::Upload { link, filename } = home.d1.import_init(ctx, name, &etag).await.unwrap() else { panic!("known already") };
    let mut sink = home.d1.upload_open(ctx, &link).await.unwrap();
    for chunk in text.chunks(70_000) {
        sink.write(chunk).await.unwrap();
    }
    assert_eq!(sink.finish().await.unwrap(), etag);
    (filename, etag)
}

async fn import(home: &Home, name: &str, text: &[u8]) -> ImportState {
    let (filename, etag) = upload(home, &home.ctx, name, text).await;
    let mut state = home.d1.import_ingest(&home.ctx, name, &filename, &etag).await.unwrap();
    while state.status == TransferStatus::Active {
        state = home.d1.import_poll(&home.ctx, name, &state.at_bookmark).await.unwrap();
    }
    state
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_is_one_unit_and_says_what_it_did() {
    let home = Home::new(Limits::d1_paid()).await;
    home.create("a").await;
    let mut text = String::from("CREATE TABLE t(a TEXT);\n");
    for i in 0..3_000 {
        text.push_str(&format!("INSERT INTO t VALUES('{i}');\n"));
    }
    let state = import(&home, "a", text.as_bytes()).await;
    let result = state.result.unwrap();
    assert_eq!((state.status, result.num_queries, result.meta.changes), (TransferStatus::Complete, 3_001, 3_000));
    assert_eq!(state.messages.last().unwrap(), "Processed 3001 queries.");
    assert_eq!(result.final_bookmark.len(), 59);

    let bad = format!(
        "{}INSERT INTO nope VALUES(1);\nINSERT INTO t VALUES('x');",
        text.replace("CREATE TABLE t(a TEXT);\n", "CREATE TABLE u(a);\n")
    );
    let state = import(&home, "a", bad.as_bytes()).await;
    assert_eq!((state.status, state.error.as_deref()), (TransferStatus::Error, Some("no such table: nope: SQLITE_ERROR")));
    assert!(state.messages.iter().any(|line| line.starts_with("Statement 3002 failed, at byte ")), "{:?}", state.messages);
    assert_eq!(home.count("a", "SELECT count(*) FROM t").await, 3_000);
    assert_eq!(home.count("a", "SELECT count(*) FROM sqlite_schema").await, 1);
    assert_eq!(std::fs::read_dir(home.dir.path().join("transfers")).unwrap().count(), 0, "no upload is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_good_once_for_an_hour_and_for_the_announced_bytes() {
    let home = Home::new(Limits { import_bytes_max: 1_000, ..Limits::d1_paid() }).await;
    home.create("a").await;
    home.create("b").await;
    assert_eq!(code(home.d1.import_init(&home.ctx, "a", "not an etag").await), Code::BadRequest);
    let text = b"CREATE TABLE t(a);";
    let ImportInit::Upload { link, filename } = home.d1.import_init(&home.ctx, "a", &md5(text)).await.unwrap() else { panic!() };
    assert_eq!(code(home.d1.import_ingest(&home.ctx, "a", &filename, &md5(text)).await), Code::Transfer);
    assert_eq!(code(home.d1.upload_open(&home.ctx, "0123").await.map(drop)), Code::LinkUnknown);
    // Other bytes than announced: their digest is told, nothing is kept, the link stays good.
    let mut sink = home.d1.upload_open(&home.ctx, &link).await.unwrap();
    assert_eq!(code(home.d1.upload_open(&home.ctx, &link).await.map(drop)), Code::LinkUnknown, "one upload at a time");
    sink.write(b"other").await.unwrap();
    assert_eq!(sink.finish().await.unwrap(), md5(b"other"));
    // Too many bytes.
    let mut sink = home.d1.upload_open(&home.ctx, &link).await.unwrap();
    sink.write(&[b' '; 1_000]).await.unwrap();
    assert_eq!(code(sink.write(b" ").await), Code::BodyTooLarge);
    drop(sink);
    // The right ones, once.
    let mut sink = home.d1.upload_open(&home.ctx, &link).await.unwrap();
    sink.write(text).await.unwrap();
    sink.finish().await.unwrap();
    assert_eq!(code(home.d1.upload_open(&home.ctx, &link).await.map(drop)), Code::LinkUnknown);
    assert_eq!(code(home.d1.import_ingest(&home.ctx, "b", &filename, &md5(text)).await), Code::Transfer, "another database's file");
    // A second init of the same file starts the import: nothing needs to be sent again.
    let ImportInit::Known(state) = home.d1.import_init(&home.ctx, "a", &md5(text)).await.unwrap() else { panic!("sent again") };
    assert_eq!(state.status, TransferStatus::Complete);
    let ImportInit::Upload { link, .. } = home.d1.import_init(&home.ctx, "a", &md5(text)).await.unwrap() else { panic!() };
    home.clock.forward(3_600_001);
    assert_eq!(code(home.d1.upload_open(&home.ctx, &link).await.map(drop)), Code::LinkUnknown);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_can_be_fetched_by_its_link_and_imports_again() {
    let home = Home::new(Limits::d1_paid()).await;
    home.create("a").await;
    home.create("b").await;
    let sql =
        "CREATE TABLE t(a); INSERT INTO t VALUES('x'),(X'00'); CREATE VIRTUAL TABLE f USING fts5(b); INSERT INTO f VALUES('hello world')";
    home.run("a", sql).await.unwrap();
    let mut state = home.d1.export_poll(&home.ctx, "a", ExportOptions::default(), None).await.unwrap();
    while state.status == TransferStatus::Active {
        state = home.d1.export_poll(&home.ctx, "a", ExportOptions::default(), Some(&state.at_bookmark)).await.unwrap();
    }
    let (filename, link) = state.result.clone().unwrap();
    assert!(filename.starts_with("a-") && filename.ends_with(".sql"), "{filename}");
    assert_eq!(
        code(home.d1.export_poll(&home.ctx, "b", ExportOptions::default(), Some(&state.at_bookmark)).await.map(drop)),
        Code::Transfer
    );
    assert_eq!(code(home.d1.export_open(&home.ctx, "0").await.map(drop)), Code::LinkUnknown);
    let (mut file, bytes, _) = home.d1.export_open(&home.ctx, &link).await.unwrap();
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut file, &mut text).unwrap();
    assert_eq!(text.len() as u64, bytes);
    assert_eq!(import(&home, "b", &text).await.status, TransferStatus::Complete);
    assert_eq!(home.count("b", "SELECT count(*) FROM f WHERE f MATCH 'hello'").await, 1);
    let wrong = ExportOptions { tables: vec!["nope".into()], ..ExportOptions::default() };
    let mut state = home.d1.export_poll(&home.ctx, "a", wrong.clone(), None).await.unwrap();
    while state.status == TransferStatus::Active {
        state = home.d1.export_poll(&home.ctx, "a", wrong.clone(), Some(&state.at_bookmark)).await.unwrap();
    }
    assert_eq!(state.error.as_deref(), Some("D1 Export error: no such table: nope"));
    home.clock.forward(3_600_001);
    assert_eq!(code(home.d1.export_open(&home.ctx, &link).await.map(drop)), Code::LinkUnknown);
}

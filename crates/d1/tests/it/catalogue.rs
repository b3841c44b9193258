use std::sync::Arc;

use base::{Clock, Code, Ctx, Grant, Limits, SystemRng};
use d1::NewDatabase;
use log::Disk;
use testkit::disk::LossyDisk;

use crate::{Home, Moved, code, open};

fn named(name: &str) -> NewDatabase {
    NewDatabase { name: name.to_owned(), ..NewDatabase::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_are_made_found_listed_changed_and_deleted() {
    let home = Home::new(Limits::d1_paid()).await;
    let a = home.create("alpha").await;
    home.clock.forward(1);
    let b = home.create("beta").await;
    assert_eq!(code(home.d1.create(&home.ctx, named("alpha")).await), Code::DatabaseExists);
    assert_eq!(home.d1.get(&home.ctx, "alpha").await.unwrap(), a);
    assert_eq!(home.d1.get(&home.ctx, &b.id.to_string()).await.unwrap(), b);
    let page = home.d1.list(&home.ctx, None, 2, 1).await.unwrap();
    assert_eq!((page.items.len(), page.items[0].name.as_str(), page.total), (1, "beta", 2));
    assert!(home.d1.list(&home.ctx, None, 3, 1).await.unwrap().items.is_empty(), "past the last page");
    assert!(home.d1.list(&home.ctx, None, u64::MAX, u64::MAX).await.unwrap().items.is_empty());
    assert_eq!(home.d1.list(&home.ctx, Some("et"), 1, 10).await.unwrap().items, std::slice::from_ref(&b));
    assert_eq!(home.d1.set_read_replication(&home.ctx, "beta", "auto").await.unwrap().read_replication, "auto");
    assert_eq!(code(home.d1.set_read_replication(&home.ctx, "beta", "on").await), Code::BadRequest);
    home.run("beta", "CREATE TABLE t(a); CREATE TABLE u(a)").await.unwrap();
    let stats = home.d1.stats(&home.ctx, b.id).await.unwrap();
    assert_eq!((stats.num_tables, stats.file_size), (2, 3 * 4096));
    home.d1.delete(&home.ctx, "alpha").await.unwrap();
    assert_eq!(code(home.run("alpha", "SELECT 1").await), Code::DatabaseNotFound);
    assert_eq!(home.d1.get(&home.ctx, "alpha").await.unwrap_err().message, "The database alpha could not be found");
    assert!(!log::layout::database_path(home.dir.path(), a.id).exists());
    let home = home.again(Limits::d1_paid()).await;
    assert_eq!(home.d1.list(&home.ctx, None, 1, 10).await.unwrap().total, 1);
    assert_eq!(home.d1.get(&home.ctx, "beta").await.unwrap().read_replication, "auto");
    assert_eq!(home.count("beta", "SELECT count(*) FROM t").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_options_that_are_not_allowed_are_refused() {
    let home = Home::new(Limits::d1_paid()).await;
    for name in ["", "-a", "a b", "a/b", "é", &"x".repeat(65)] {
        assert_eq!(code(home.d1.create(&home.ctx, named(name)).await), Code::BadRequest, "{name}");
    }
    home.create(&"x".repeat(64)).await;
    let with = |hint: Option<&str>, jurisdiction: Option<&str>| NewDatabase {
        name: "a".to_owned(),
        location_hint: hint.map(ToOwned::to_owned),
        jurisdiction: jurisdiction.map(ToOwned::to_owned),
        read_replication: None,
    };
    assert_eq!(code(home.d1.create(&home.ctx, with(Some("mars"), None)).await), Code::BadRequest);
    assert_eq!(code(home.d1.create(&home.ctx, with(None, Some("mars"))).await), Code::BadRequest);
    assert_eq!(home.d1.create(&home.ctx, with(Some("weur"), Some("eu"))).await.unwrap().location_hint.as_deref(), Some("weur"));
}

#[tokio::test(flavor = "multi_thread")]
async fn d1_01_the_profile_bounds_the_number_of_databases() {
    let home = Home::new(Limits { databases_max: 2, ..Limits::d1_paid() }).await;
    home.create("a").await;
    home.create("b").await;
    assert_eq!(code(home.d1.create(&home.ctx, named("c")).await), Code::DatabasesMax);
    home.d1.delete(&home.ctx, "a").await.unwrap();
    home.create("c").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_reaches_what_its_scopes_name_and_sees_no_more() {
    let home = Home::new(Limits::d1_paid()).await;
    home.create("mine").await;
    home.create("other").await;
    home.run("mine", "CREATE TABLE t(a)").await.unwrap();
    let ctx = home.with_grant(Grant::scoped(vec!["d1:mine:read".parse().unwrap()]));
    let listed = home.d1.list(&ctx, None, 1, 10).await.unwrap();
    assert_eq!(listed.items.iter().map(|info| info.name.as_str()).collect::<Vec<_>>(), ["mine"]);
    let run = |name: &'static str, sql: &'static str| home.d1.query(&ctx, name, d1::Batch::sql(sql));
    run("mine", "SELECT * FROM t").await.unwrap();
    assert_eq!(code(run("mine", "INSERT INTO t VALUES(1)").await), Code::ScopeMissing);
    // Whether a database is there that may not be read is not told.
    assert_eq!(code(run("other", "SELECT 1").await), Code::ScopeMissing);
    assert_eq!(code(run("nowhere", "SELECT 1").await), Code::ScopeMissing);
    assert_eq!(code(home.d1.delete(&ctx, "mine").await), Code::ScopeMissing);
    assert_eq!(code(home.d1.create(&ctx, named("new")).await), Code::ScopeMissing);
    assert_eq!(home.count("mine", "SELECT count(*) FROM t").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn use_is_counted_by_the_hour_and_kept_over_a_stop() {
    let home = Home::new(Limits::d1_paid()).await;
    let info = home.create("a").await;
    home.run("a", "CREATE TABLE t(a); INSERT INTO t VALUES(1),(2); SELECT * FROM t; SELECT * FROM t").await.unwrap();
    let home = home.again(Limits::d1_paid()).await;
    let hours = home.d1.hour_use(&home.ctx, info.id).await.unwrap();
    assert_eq!(hours.len(), 1);
    assert_eq!((hours[0].read_queries, hours[0].write_queries, hours[0].rows_read, hours[0].rows_written), (2, 2, 5, 4));
    home.clock.forward(25 * 3_600_000);
    assert!(home.d1.hour_use(&home.ctx, info.id).await.unwrap().is_empty());
}

/// Creates and deletes databases until the disk dies, and checks what is found afterwards.
async fn crash_round(disk: Arc<LossyDisk>, seed: u64, at: u64) -> Arc<LossyDisk> {
    let root = std::path::Path::new("/data");
    let clock = Arc::new(Moved::default());
    let ctx = Ctx::owner(Arc::clone(&clock) as Arc<dyn Clock>, Arc::new(SystemRng));
    disk.crash_at(disk.ops() + at);
    let (mut there, mut gone) = (Vec::new(), Vec::new());
    if let Ok(d1) = open(root, Arc::clone(&disk) as Arc<dyn Disk>, Limits::d1_paid(), Arc::clone(&clock)).await {
        for i in 0..6 {
            let name = format!("s{seed}-{at}-{i}");
            let Ok(info) = d1.create(&ctx, named(&name)).await else { break };
            if i % 3 == 2 {
                match d1.delete(&ctx, &name).await {
                    Ok(_) => gone.push(name),
                    Err(_) => break,
                }
                continue;
            }
            let wrote = d1.query(&ctx, &name, d1::Batch::sql("CREATE TABLE t(a); INSERT INTO t VALUES(1)")).await.is_ok();
            there.push((info, wrote));
        }
    }
    let after = disk.crash(seed ^ at);
    let d1 = open(root, Arc::clone(&after) as Arc<dyn Disk>, Limits::d1_paid(), clock).await.unwrap();
    for (info, wrote) in there {
        assert_eq!(d1.get(&ctx, &info.name).await.unwrap(), info, "seed {seed}, operation {at}");
        let rows = d1.query(&ctx, &info.name, d1::Batch::sql("SELECT a FROM t")).await;
        assert!(!wrote || rows.is_ok(), "seed {seed}, operation {at}: {rows:?}");
    }
    for name in gone {
        assert_eq!(code(d1.get(&ctx, &name).await), Code::DatabaseNotFound, "seed {seed}, operation {at}");
    }
    // Every file belongs to a database and every database has a file.
    for info in d1.list(&ctx, None, 1, 1_000).await.unwrap().items {
        d1.query(&ctx, &info.name, d1::Batch::sql("SELECT 1")).await.unwrap();
    }
    d1.shutdown().await;
    after
}

#[tokio::test(flavor = "multi_thread")]
async fn created_databases_survive_a_crash_at_every_operation_and_deleted_ones_stay_away() {
    for seed in 0..2 {
        let mut disk = LossyDisk::new(seed);
        for at in 1..150 {
            // A new disk now and then, so that the very first start is crashed at each operation too.
            if at % 3 == 0 {
                disk = LossyDisk::new(seed * 1000 + at);
            }
            disk = crash_round(disk, seed, at).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_without_its_catalogue_is_refused_and_unknown_files_are_kept() {
    let home = Home::new(Limits::d1_paid()).await;
    let info = home.create("a").await;
    home.run("a", "CREATE TABLE t(a); INSERT INTO t VALUES(7)").await.unwrap();
    home.d1.shutdown().await;
    let dir = home.dir;
    let file = log::layout::database_path(dir.path(), info.id);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::rename(dir.path().join("system"), dir.path().join("away")).unwrap();
    let start = |clock| open(dir.path(), Arc::new(log::LocalDisk), Limits::d1_paid(), clock);
    let error = start(Arc::new(Moved::default())).await.map(drop).unwrap_err();
    assert_eq!(error.code, Code::Corrupt);
    assert!(error.message.contains("system/system.db is missing and 1 database files are there"), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "nothing was changed");
    std::fs::rename(dir.path().join("away"), dir.path().join("system")).unwrap();

    // A file of an id that the catalogue never heard of, as after an older backup of it.
    let stranger = base::DatabaseId::random(&SystemRng);
    let path = log::layout::database_path(dir.path(), stranger);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::copy(&file, &path).unwrap();
    let d1 = start(Arc::new(Moved::default())).await.unwrap();
    assert!(!path.exists());
    assert_eq!(std::fs::read(dir.path().join("lost").join(format!("{stranger}.db"))).unwrap(), bytes);
    d1.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d5_07_bookmarks_sort_in_commit_order_over_restarts_and_name_what_was_seen() {
    let mut home = Home::new(Limits::d1_paid()).await;
    home.create("a").await;
    let mut last = String::new();
    for round in 0..3 {
        for sql in ["CREATE TABLE IF NOT EXISTS t(a)", "INSERT INTO t VALUES(1)", "INSERT INTO t VALUES(2)"] {
            let (_, read) = home.d1.query(&home.ctx, "a", d1::Batch::sql("SELECT 1")).await.unwrap();
            assert!(read.to_string() >= last, "{last} then {read}");
            let (_, wrote) = home.d1.query(&home.ctx, "a", d1::Batch::sql(sql)).await.unwrap();
            let grew = wrote.to_string() > read.to_string();
            assert!(grew || (round > 0 && sql.starts_with("CREATE")), "{read} then {wrote}");
            last = wrote.to_string();
        }
        home = home.again(Limits::d1_paid()).await;
    }
    let shape: Vec<usize> = last.split('-').map(str::len).collect();
    assert_eq!(shape, [8, 8, 8, 32]);
}

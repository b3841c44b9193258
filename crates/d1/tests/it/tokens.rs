use base::{Code, Grant, Limits, Scope, Service, Timestamp, TokenId};

use crate::{Home, code, walk};

fn scopes(list: &[&str]) -> Vec<Scope> {
    list.iter().map(|scope| scope.parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_works_until_it_is_revoked_or_ends_and_its_secret_is_nowhere_on_the_disk() {
    let home = Home::new(Limits::d1_paid()).await;
    let end = Timestamp(home.ctx.clock.now().0 + 1_000);
    let (info, secret) = home.d1.token_create(&home.ctx, " reader ", scopes(&["d1:*:read"]), Some(end)).await.unwrap();
    assert_eq!((info.name.as_str(), secret.len(), &secret[..4]), ("reader", 44, "hth_"));
    let (id, grant) = home.d1.token_grant(&home.ctx, &secret).await.unwrap().unwrap();
    assert_eq!(id, info.id);
    assert!(grant.allows(Service::D1, &["x"], base::Access::Read) && !grant.allows(Service::D1, &["x"], base::Access::Write));
    assert!(home.d1.token_grant(&home.ctx, &secret[..43]).await.unwrap().is_none());
    assert!(home.d1.token_grant(&home.ctx, "").await.unwrap().is_none());

    let home = home.again(Limits::d1_paid()).await;
    assert!(home.d1.token_grant(&home.ctx, &secret).await.unwrap().is_some(), "tokens outlive a stop");
    for entry in walk(home.dir.path()) {
        let bytes = std::fs::read(&entry).unwrap();
        assert!(!bytes.windows(40).any(|part| part == &secret.as_bytes()[4..]), "the secret stands in {}", entry.display());
    }
    home.clock.forward(1_000);
    assert!(home.d1.token_grant(&home.ctx, &secret).await.unwrap().is_none(), "the token has ended");

    let (info, secret) = home.d1.token_create(&home.ctx, "w", scopes(&["d1:a:write", "tokens:*:read"]), None).await.unwrap();
    assert!(home.d1.token_revoke(&home.ctx, &info.id).await.unwrap().revoked_at.is_some());
    assert!(home.d1.token_grant(&home.ctx, &secret).await.unwrap().is_none());
    assert_eq!(code(home.d1.token_revoke(&home.ctx, &TokenId("nope".into())).await), Code::TokenNotFound);
    let list = home.d1.token_list(&home.ctx, 1, 10).await.unwrap();
    assert_eq!((list.total, list.items[0].name.as_str()), (2, "w"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_cannot_make_one_that_may_more_than_itself() {
    let home = Home::new(Limits::d1_paid()).await;
    let maker = home.with_grant(Grant::scoped(scopes(&["tokens:*:create", "d1:mine:write"])));
    let create = |list: &'static [&'static str]| home.d1.token_create(&maker, "t", scopes(list), None);
    create(&["d1:mine:read"]).await.unwrap();
    for wider in [&["d1:*:read"][..], &["d1:other:read"], &["d1:mine:create"], &["tokens:*:write"]] {
        assert_eq!(code(create(wider).await), Code::ScopeMissing, "{wider:?}");
    }
    let now = home.ctx.clock.now();
    let mortal = home.with_grant(Grant::scoped(scopes(&["tokens:*:create", "d1:mine:write"])).ending(Some(Timestamp(now.0 + 5_000))));
    let until = |end: Option<i64>| home.d1.token_create(&mortal, "t", scopes(&["d1:mine:read"]), end.map(|ms| Timestamp(now.0 + ms)));
    until(Some(5_000)).await.unwrap();
    assert_eq!(code(until(Some(5_001)).await), Code::BadRequest);
    assert_eq!(code(until(None).await), Code::BadRequest);
    let reader = home.with_grant(Grant::scoped(scopes(&["d1:*:write"])));
    assert_eq!(code(home.d1.token_create(&reader, "t", scopes(&["d1:*:read"]), None).await), Code::ScopeMissing);
    assert_eq!(code(home.d1.token_list(&reader, 1, 10).await.map(|page| page.total)), Code::ScopeMissing);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_scopes_and_ends_that_are_not_allowed_are_refused() {
    let home = Home::new(Limits::d1_paid()).await;
    let now = home.ctx.clock.now();
    let one = scopes(&["d1:*:read"]);
    assert_eq!(code(home.d1.token_create(&home.ctx, " ", one.clone(), None).await), Code::BadRequest);
    assert_eq!(code(home.d1.token_create(&home.ctx, &"x".repeat(101), one.clone(), None).await), Code::BadRequest);
    assert_eq!(code(home.d1.token_create(&home.ctx, "t", Vec::new(), None).await), Code::BadRequest);
    assert_eq!(code(home.d1.token_create(&home.ctx, "t", vec![one[0].clone(); 101], None).await), Code::BadRequest);
    assert_eq!(code(home.d1.token_create(&home.ctx, "t", one, Some(now)).await), Code::BadRequest);
}

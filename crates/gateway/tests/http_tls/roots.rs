//! Roots in the file of clients' CAs that do not hold: nobody is let in by them.

use heatsink_access::Clients;
use rcgen::date_time_ymd;

use crate::certificates::Ca;
use crate::client::post;
use crate::identity::{Asking, answer};

#[tokio::test]
async fn a_root_out_of_its_days_lets_nobody_in() {
    let (ca, name) = (Ca::new(), ["spiffe://a/jobs"]);
    let past = Ca::with("past", |params| params.not_after = date_time_ymd(2026, 1, 1));
    let future = Ca::with("future", |params| params.not_before = date_time_ymd(2090, 1, 1));
    let server = Asking::new(&(ca.pem() + &past.pem() + &future.pem()), Clients::default()).await;
    for root in [&past, &future] {
        let told = answer(server.address, Some(&root.sign(&name))).await.unwrap_err();
        assert!(told.contains("CertificateExpired"), "{told}");
    }
    let get = post("GetItem", br#"{"TableName":"abc","Key":{"pk":{"S":"a"}}}"#);
    assert_eq!(server.ask(&ca.sign(&name), &get).await.status, 200);
}

//! A small project.

use serde_json::{Value, json};

fn asset(key: &str, more: Value) -> Value {
    let mut asset = json!({
        "key": key,
        "location": { "file": "shop/assets.py", "line": 3 },
        "function": format!("shop.assets:{}", key.replace('/', "_")),
    });
    asset.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    asset
}

/// A small project, as the SDK writes it.
pub fn project() -> Value {
    let daily = json!({ "kind": "daily", "span": { "start": "2013-01-01", "end": "2013-01-31" } });
    json!({
        "manifest_version": 1,
        "project": "shop",
        "assets": [
            asset("raw/orders", json!({ "description": "What was bought.", "group": "raw", "owners": ["ops@example.org"] })),
            asset("raw/days", json!({ "partitions": daily, "tags": { "team": "ops" } })),
            asset("raw/feed", json!({ "external": true, "function": null })),
            asset("shop/clean", json!({ "deps": [{ "asset": "raw/orders", "parameter": "orders" }], "quarantine": true })),
            asset("shop/report", json!({
                "deps": [{ "asset": "shop/clean", "parameter": "clean" }],
                "config": { "fields": [{ "name": "rate", "type": "int" }] },
            })),
            asset("shop/daily", json!({ "partitions": daily, "deps": [{ "asset": "raw/days", "parameter": "days" }] })),
            asset("shop/stubborn", json!({
                "retry": { "max_attempts": 3, "initial_delay_ms": 1, "max_delay_ms": 5, "multiplier_ppm": 1_000_000, "jitter_ppm": 0 },
            })),
        ],
    })
}

/// The same with an asset whose partitions are customers.
pub fn project_with_customers() -> Value {
    let mut manifest = project();
    let customers = json!({ "kind": "dynamic", "name": "customers" });
    let profiles = asset("crm/profiles", json!({ "partitions": customers }));
    manifest["assets"].as_array_mut().unwrap().push(profiles);
    manifest
}

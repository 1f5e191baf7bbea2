//! Requests to the provider: bounded, without redirects.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;

const WITHIN: Duration = Duration::from_secs(10);
/// Longest answer that is read.
const MOST: usize = 1 << 20;

/// The client that all requests to providers are made with.
pub(crate) fn client() -> Result<Client, String> {
    Client::builder()
        .timeout(WITHIN)
        .connect_timeout(WITHIN)
        // An answer cannot send this server somewhere else.
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| error.to_string())
}

/// Status and JSON of an answer.
pub(crate) async fn json<T: DeserializeOwned>(request: RequestBuilder) -> Result<(StatusCode, T), String> {
    let mut response = request.send().await.map_err(|error| plainly(&error))?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(|error| plainly(&error))? {
        if body.len() + part.len() > MOST {
            return Err("its answer is too long".to_owned());
        }
        body.extend_from_slice(&part);
    }
    let value = serde_json::from_slice(&body)
        .map_err(|_| format!("its answer, status {status}, is not as expected"))?;
    Ok((status, value))
}

/// The root cause, without the address, which may have a code in it.
fn plainly(error: &reqwest::Error) -> String {
    let mut bottom: &dyn std::error::Error = error;
    while let Some(below) = bottom.source() {
        bottom = below;
    }
    bottom.to_string()
}

//! HTTP on the simulated network: from the client of `servo-api` to the routes of a node.

use std::fmt;
use std::pin::pin;

use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use bytes::Bytes;
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{Either, select};
use servo_api::bearer;
use servo_api::client::{Transport, TransportError};
use tower_service::Service;

use super::{GIVEN_UP_AFTER, Link};
use crate::faults::Fault;
use crate::scenario::SECOND;

/// How many requests and answers in a thousand are lost, and how many requests come twice.
const LOST: u32 = 20;
const DOUBLED: u32 = 20;

/// A request on its way.
#[derive(Clone)]
struct Carried {
    method: Method,
    target: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Carried {
    fn of(request: &reqwest::Request) -> Self {
        let url = request.url();
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let mut headers = request.headers().clone();
        headers.insert(header::HOST, HeaderValue::from_static("localhost:8741"));
        let body = request.body().and_then(|body| body.as_bytes()).unwrap_or_default();
        Self {
            method: request.method().clone(),
            target: format!("{}{query}", url.path()),
            headers,
            body: Bytes::copy_from_slice(body),
        }
    }

    fn arrive(self) -> Request<Body> {
        let mut request = Request::new(Body::from(self.body));
        *request.method_mut() = self.method;
        *request.uri_mut() = self.target.parse().expect("the path of an address is one of a request");
        *request.headers_mut() = self.headers;
        request
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("cut_off", &self.is_cut_off()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for Link {
    async fn exchange(&self, request: reqwest::Request) -> Result<reqwest::Response, TransportError> {
        let lost = |how: &str| Err(TransportError(how.to_owned()));
        let (world, domain, faults) = (&self.cluster.world, self.cluster.domain, &self.cluster.faults);
        if !self.reaches().await {
            return lost("it timed out");
        }
        self.travel().await;
        if faults.injects(domain, Fault::Partition, LOST) {
            // Some connections are reset; of others nothing is heard.
            let silence = world.roll(domain, |rng| rng.chance(300)).then_some(GIVEN_UP_AFTER);
            world.sleep(domain, silence.unwrap_or_default()).await;
            return lost("the request was lost");
        }
        let request = Carried::of(&request);
        if faults.injects(domain, Fault::DuplicateWrite, DOUBLED) {
            let (link, again) = (self.clone(), request.clone());
            let delay = world.roll(domain, |rng| rng.within(0..90 * SECOND));
            world.after(domain, delay, move |_| drop(link.serve(again, false)));
        }
        let may_leave = world.roll(domain, |rng| rng.chance(500));
        let Some(answer) = self.serve(request, may_leave) else { return lost("nobody listens") };
        let response = match select(answer, world.sleep(domain, GIVEN_UP_AFTER)).await {
            Either::Left((Ok(response), _)) => response,
            Either::Left((Err(_), _)) => return lost("the connection was closed"),
            Either::Right(_) => return lost("it timed out"),
        };
        self.travel().await;
        if self.is_cut_off().is_some() || faults.injects(domain, Fault::Partition, LOST) {
            return lost("the answer was lost");
        }
        Ok(response.into())
    }
}

impl Link {
    async fn travel(&self) {
        let (world, domain) = (&self.cluster.world, self.cluster.domain);
        world.sleep(domain, world.roll(domain, |rng| rng.within(50..3_000))).await;
    }

    /// Hands a request to some node. If `may_leave`, the node notices that nobody waits for the answer any more, and
    /// drops the request wherever it is.
    fn serve(&self, request: Carried, may_leave: bool) -> Option<oneshot::Receiver<Response<Bytes>>> {
        let (process, mut routes) = self.cluster.http_node()?;
        if request.target.ends_with("/started")
            && let Some(token) = bearer(&request.headers)
        {
            self.cluster.queue.asked_to_begin(token);
        }
        let (mut sender, answer) = oneshot::channel();
        let serve = async move {
            let handled = async {
                let Ok(response) = routes.call(request.arrive()).await;
                let (parts, body) = response.into_parts();
                let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
                Response::from_parts(parts, body)
            };
            let response = if may_leave {
                match select(pin!(handled), sender.cancellation()).await {
                    Either::Left((response, _)) => response,
                    Either::Right(_) => return,
                }
            } else {
                handled.await
            };
            drop(sender.send(response));
        };
        self.cluster.world.spawn(process, "request", serve.boxed());
        Some(answer)
    }
}

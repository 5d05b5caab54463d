//! The door of the program that the gateway runs in: takes a request whole and gives its answer
//! whole, without a socket.
//!
//! The stages of a request around those of the service (`crate::service`): admit (whether it is
//! open), receive (the size of the body, room for it), admit to a place in progress and have it
//! carried out (`operate`), deliver (`deliver`). Who asks is this program, which may do all: its
//! signature is not looked at, and rights of clients do not hold for it.
//!
//! Not here: the traits of an SDK (`heatsink-connector`).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::future::{BoxFuture, Either, select};
use heatsink_dynamo::{Error, Outcome};
use heatsink_env::Env;
use http::{HeaderMap, HeaderValue, Response};
use hyper::body::Body;
use tokio::sync::Semaphore;

use super::answer::{self, Data};
use super::asked::asked;
use super::deliver::deliver;
use super::door::Shared;
use super::hosts::Hosts;
use super::live::{Live, Settings};
use super::operate::operate;
use super::receive::unread;
use super::{body, gzip, reply};
use crate::budget::Of;
use crate::metrics::Wire;
use crate::{Limits, Service};

const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/x-amz-json-1.0");

/// More calls than there can be at once.
const ALL: u32 = u32::MAX;

/// Answers the program that the gateway runs in.
pub struct InProcess {
    service: Arc<Service>,
    shared: Shared,
    closed: AtomicBool,
    /// A permit is a call that somebody waits for. Closed once there are no more answers.
    calls: Semaphore,
}

impl InProcess {
    pub(crate) fn new(service: Arc<Service>, limits: Limits, env: Arc<dyn Env>) -> Self {
        let live = Live::new(Settings::plain(Hosts::loopback(), &limits));
        let shared = Shared::new(limits, live, env, Arc::clone(service.budget()), Wire::new());
        let permits = usize::try_from(ALL).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
        InProcess { service, shared, closed: AtomicBool::new(false), calls: Semaphore::new(permits) }
    }

    /// The answer to one request as DynamoDB would give it: status, body, `x-amz-crc32` and
    /// `x-amzn-requestid`. Of the headers, the target and the encoding of the body count.
    ///
    /// Who drops the future is a client that has hung up: a read ends, everything else goes on in a
    /// task of its own.
    pub async fn answer<B>(&self, headers: &HeaderMap, body: B) -> Response<Bytes>
    where
        B: Body<Data = Bytes> + Send + Unpin,
    {
        let open = !self.closed.load(Ordering::Acquire);
        let answered = match open.then(|| self.calls.try_acquire()) {
            Some(Ok(_call)) => self.answer_open(headers, body).await,
            Some(Err(_)) | None => {
                let message = "The gateway in this program was stopped; start another one";
                Err(Error::unavailable(message, Outcome::NotDone))
            }
        };
        let reply =
            answered.unwrap_or_else(|error| reply::refusal(&*self.shared.env, Some(CONTENT_TYPE), &error));
        reply.map(|body| body.into_inner().map(Data::into_bytes).unwrap_or_default())
    }

    async fn answer_open<B>(&self, headers: &HeaderMap, body: B) -> Result<Response<answer::Body>, Error>
    where
        B: Body<Data = Bytes> + Send + Unpin,
    {
        let Shared { limits, budget, .. } = &self.shared;
        let mut held = budget.hold(Of::Requests);
        let received = async {
            let body = body::read(body, limits.body, limits.body_read, &mut held, &mut |_| {}).await?;
            gzip::read(headers, body, limits.body, &mut held).await
        };
        let body = received.await.map_err(|why| unread(&self.shared, why))?;
        let operation = asked(headers, &body, || Ok(()))?;
        let answered = operate((&self.service, &self.shared), operation, body, held, None).await?;
        deliver(&self.shared, headers, CONTENT_TYPE, answered).await
    }

    /// Refuses what is asked from now on.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Answers until `shutdown` resolves. Then it refuses what is asked, lets calls and writes that
    /// nobody waits for finish within [`Limits::drain`], and returns whether all of them did.
    pub(crate) async fn serve_until(&self, shutdown: BoxFuture<'_, ()>) -> bool {
        shutdown.await;
        self.close();
        self.service.stop_soon();
        let finished = async {
            // Who found it open a moment ago finds no permit; nor later, when these are given back.
            let all = self.calls.acquire_many(ALL).await;
            self.calls.close();
            drop(all);
            self.shared.in_flight.all_free().await;
        };
        let late = self.shared.env.sleep(self.shared.limits.drain);
        let drained = matches!(select(pin!(finished), late).await, Either::Left(_));
        self.calls.close();
        drained
    }
}

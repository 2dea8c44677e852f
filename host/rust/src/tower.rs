//! A layer for [`tower`](https://docs.rs/tower): the guarded service is called
//! for those requests whose message has not been processed.
//!
//! ```
//! use babelqueue_guard::tower::{GuardLayer, Guarded};
//! use babelqueue_guard::{Delivery, Guard, MemoryStore, Processed};
//! use tower::{Service, ServiceBuilder, ServiceExt};
//!
//! struct Message {
//!     body: Vec<u8>,
//!     headers: Vec<(String, String)>,
//! }
//!
//! async fn charge(guarded: Guarded<Message>) -> Result<usize, std::io::Error> {
//!     Ok(guarded.request.body.len())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let guard = Guard::new(MemoryStore::default())?;
//! let mut consumer = ServiceBuilder::new()
//!     .concurrency_limit(64)
//!     .layer(GuardLayer::new(guard, |message: &Message| {
//!         let headers = message.headers.iter().map(|(name, _)| name);
//!         Delivery::from_body(&message.body).with_headers(headers)
//!     }))
//!     .service_fn(charge);
//!
//! let message = || Message {
//!     body: br#"{"job":"urn:babel:orders:created","meta":{"id":"order-1042"}}"#.to_vec(),
//!     headers: Vec::new(),
//! };
//! let first = consumer.ready().await?.call(message()).await?;
//! assert!(matches!(first, Processed::Ran { value: 61, .. }));
//! let again = consumer.ready().await?.call(message()).await?;
//! assert!(matches!(again, Processed::Skipped { .. }));
//! # Ok(())
//! # }
//! ```

use crate::context::Context;
use crate::delivery::Delivery;
use crate::error::Error;
use crate::guard::Guard;
use crate::processed::Processed;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{self, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Puts a [`Guard`] in front of a service.
#[derive(Clone)]
pub struct GuardLayer<D> {
    guard: Guard,
    delivery: D,
}

impl<D> GuardLayer<D> {
    /// A layer for requests of type `R`; `delivery` says which delivery a
    /// request is.
    #[must_use]
    pub fn new<R>(guard: Guard, delivery: D) -> Self
    where
        D: for<'r> Fn(&'r R) -> Delivery<'r> + Clone,
    {
        Self { guard, delivery }
    }
}

impl<S, D: Clone> Layer<S> for GuardLayer<D> {
    type Service = GuardService<S, D>;

    fn layer(&self, inner: S) -> Self::Service {
        GuardService {
            inner,
            guard: self.guard.clone(),
            delivery: self.delivery.clone(),
        }
    }
}

/// A service behind a [`Guard`], made by a [`GuardLayer`].
///
/// It is ready when the guarded service is. Readiness that was gained for a
/// request which turns out to be skipped or parked is given back.
///
/// Its response says what has become of the delivery, the guarded service's
/// own errors included, as [`Guard::process`] does, and its futures may be
/// dropped like those of that function.
#[derive(Clone)]
pub struct GuardService<S, D> {
    inner: S,
    guard: Guard,
    delivery: D,
}

/// A request that is to be handled.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Guarded<R> {
    /// What can be known of the delivery.
    pub context: Context,
    /// The request.
    pub request: R,
}

/// Why a [`GuardService`] has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError<E> {
    /// The delivery could not be decided on. The guarded service was not
    /// called, and the delivery must not be acknowledged.
    #[error(transparent)]
    Undecided(Error),
    /// The guarded service is not ready, and will not be: it can handle no
    /// request any more.
    #[error("the guarded service handles no more requests: {0}")]
    NotReady(E),
}

impl<S, D, R> Service<R> for GuardService<S, D>
where
    R: Send + 'static,
    D: for<'r> Fn(&'r R) -> Delivery<'r>,
    S: Service<Guarded<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: Send,
    S::Error: Send,
{
    type Response = Processed<S::Response, S::Error>;
    type Error = ServiceError<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut task::Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner
            .poll_ready(context)
            .map_err(ServiceError::NotReady)
    }

    fn call(&mut self, request: R) -> Self::Future {
        // A clone is not ready because the original is: that one is used up
        // here, and the clone is asked next time.
        let clone = self.inner.clone();
        let mut ready = mem::replace(&mut self.inner, clone);
        let guard = self.guard.clone();
        let read = guard.read(&(self.delivery)(&request));
        Box::pin(async move {
            guard
                .handle(read, |context| ready.call(Guarded { context, request }))
                .await
                .map_err(ServiceError::Undecided)
        })
    }
}

impl<D> fmt::Debug for GuardLayer<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardLayer")
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

impl<S: fmt::Debug, D> fmt::Debug for GuardService<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardService")
            .field("inner", &self.inner)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

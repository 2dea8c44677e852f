//! Futures that run to their end even if nobody waits for them any more.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// A future that is handed to the runtime if it is dropped before it is
/// ready. Where it is ready at once, this costs two small allocations.
///
/// Without a tokio runtime it is dropped like any other.
pub(crate) struct Detach<T: Send + 'static> {
    future: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    abandoned: Abandoned,
}

/// Whether the one who waited for a [`Detach`] has gone away.
#[derive(Clone, Default)]
pub(crate) struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl<T: Send + 'static> Detach<T> {
    pub(crate) fn new<F>(future: impl FnOnce(Abandoned) -> F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        let abandoned = Abandoned::default();
        Self {
            future: Some(Box::pin(future(abandoned.clone()))),
            abandoned,
        }
    }
}

impl<T: Send + 'static> Future for Detach<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(future) = &mut self.future else {
            // Polled again after it was ready, which no caller may do.
            return Poll::Pending;
        };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.future = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Detach<T> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            self.abandoned.0.store(true, Ordering::Release);
            if let Ok(runtime) = Handle::try_current() {
                runtime.spawn(future);
            }
        }
    }
}

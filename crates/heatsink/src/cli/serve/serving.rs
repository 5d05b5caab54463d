//! Serves until it is told to stop: what runs beside the gateway meanwhile, and in which order all
//! of it ends.
//!
//! Not here: what has to be there before (`serve`), which signals there are (`signals`).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, join, select};
use heatsink::{Acts, Gateway, Store, carry};
use heatsink_env::Env;
use heatsink_gateway::Status;
use heatsink_gateway::http::{Listener, Live};
use heatsink_workers::EventQueue;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::admin::Admin;
use super::heat_history::HeatHistory;
use super::reload::Reload;
use super::signals::{Signals, StopSignal};
use super::webhook::ServedWebhook;
use super::{notify, record};
use crate::cli::operator_socket::OperatorSocket;
use crate::exit::Exit;

/// What there is once everything is opened and started.
pub(super) struct Started {
    pub(super) gateway: Gateway,
    /// For clients.
    pub(super) listener: Listener,
    /// What is in force there.
    pub(super) live: Live,
    pub(super) reload: Reload,
    pub(super) store: Arc<dyn Store>,
    /// How long the store's indexes may lag.
    pub(super) index_delay: Duration,
    /// What is done about heat.
    pub(super) acts: Arc<Acts>,
    /// The events that wait, and who is told of them.
    pub(super) webhook: (EventQueue, ServedWebhook),
    pub(super) history: Option<HeatHistory>,
    pub(super) recording: Option<record::Writer>,
    /// For commands.
    pub(super) socket: Option<OperatorSocket>,
    /// For operators.
    pub(super) admin: Option<Admin>,
    pub(super) env: Arc<dyn Env>,
}

/// Serves until a signal comes. After SIGTERM it serves on for `lame_duck`. Returns whether all
/// requests in flight finished in time.
///
/// # Errors
/// How the process ends at once, after a second signal.
pub(super) async fn until_stopped(
    started: Started,
    signals: Signals,
    lame_duck: Duration,
) -> Result<bool, Exit> {
    let Started {
        gateway,
        listener,
        live,
        reload,
        store,
        index_delay,
        acts,
        webhook: (events, webhook),
        history,
        recording,
        socket,
        admin,
        env,
    } = started;
    let (control, status) = (gateway.control().clone(), Arc::clone(gateway.status()));
    let reloading = tokio::spawn(reload.keep());
    let history = history.map(|history| KeptHistory::begin(history, &status, &env));
    let recording = recording.map(|writer| Task::spawn(|stopped| writer.keep(Arc::clone(&env), stopped)));
    let heat = Arc::clone(&status);
    let gateway_name = control.identity().1.to_owned();
    let telling = Task::spawn(|stopped| async move {
        events.deliver(&gateway_name, |event| webhook.send(event), stopped).await;
    });
    let carrying =
        Task::spawn(|stopped| carry(store, Arc::clone(&env), control, heat, acts, index_delay, stopped));
    let commands = socket.map(|OperatorSocket { listener, file, .. }| {
        Task::spawn(|stopped| {
            gateway.serve_operator(listener, async move {
                stopped.await;
                // Before the address is free for another server, which puts its own there.
                drop(file);
            })
        })
    });
    let operators = admin.map(|Admin { listener, access }| {
        Task::spawn(|stopped| gateway.serve_admin(listener, access, stopped))
    });
    let (stop, stopped) = until_dropped();
    let serving = gateway.serve_live(listener, live, stopped);
    notify::ready();
    // Commands work on the store as clients do: they end when clients do, before the gateway leaves
    // its store. Reshards are given back while requests are drained.
    let (stop_commands, commands) = commands.map(|task| (task.stop, task.running)).unzip();
    let stops = [stop_commands, Some(carrying.stop), Some(stop)];
    let told = stop_when_told(signals, lame_duck, &*env, &status, &reloading, stops);
    let ended = async {
        let drained = join(serving, carrying.running).await.0;
        // After the last reshard.
        telling.end().await;
        if let Some(commands) = commands {
            let _ = commands.await;
        }
        if let Some(history) = history {
            history.end(&status).await;
        }
        // After the last request.
        if let Some(recording) = recording {
            recording.end().await;
        }
        // They are told until the end how the gateway does.
        if let Some(operators) = operators {
            operators.end().await;
        }
        drained
    };
    match select(pin!(ended), pin!(told)).await {
        Either::Left((drained, _)) => Ok(drained),
        Either::Right((at_once, _)) => Err(at_once),
    }
}

/// Stops what serves, in the order of `stops`, when a signal comes. Resolves at the second one.
async fn stop_when_told(
    mut signals: Signals,
    lame_duck: Duration,
    env: &dyn Env,
    status: &Status,
    reloading: &JoinHandle<()>,
    stops: [Option<Stop>; 3],
) -> Exit {
    let signal = signals.next().await;
    notify::stopping();
    if signal == StopSignal::Terminate {
        status.stop_soon();
        if let Either::Left((second, _)) = select(pin!(signals.next()), env.sleep(lame_duck)).await {
            return second.at_once();
        }
    }
    // The registry is not compared with rules any more.
    reloading.abort();
    stops.into_iter().for_each(drop);
    signals.next().await.at_once()
}

/// Stops what waits for it when it is dropped.
type Stop = oneshot::Sender<()>;

/// A stop, and what resolves when it is dropped.
fn until_dropped() -> (Stop, BoxFuture<'static, ()>) {
    let (stop, stopped) = oneshot::channel();
    (stop, stopped.map(drop).boxed())
}

/// What runs beside the gateway until it is stopped.
struct Task<T> {
    stop: Stop,
    running: JoinHandle<T>,
}

impl<T: Send + 'static> Task<T> {
    /// Runs what ends when it is told that it is stopped.
    fn spawn<F>(task: impl FnOnce(BoxFuture<'static, ()>) -> F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        let (stop, stopped) = until_dropped();
        Task { stop, running: tokio::spawn(task(stopped)) }
    }

    /// Stops it, and waits for its end.
    async fn end(self) {
        drop(self.stop);
        let _ = self.running.await;
    }
}

/// A history of the heat, which is written each minute.
struct KeptHistory {
    history: HeatHistory,
    keeping: JoinHandle<()>,
}

impl KeptHistory {
    fn begin(history: HeatHistory, status: &Arc<Status>, env: &Arc<dyn Env>) -> Self {
        history.resume(status);
        let keeping = tokio::spawn(history.clone().keep(Arc::clone(status), Arc::clone(env)));
        KeptHistory { history, keeping }
    }

    /// Writes it for the last time.
    async fn end(self, status: &Status) {
        // Nothing may hold the store when this ends.
        self.keeping.abort();
        let _ = self.keeping.await;
        self.history.save(status).await;
    }
}

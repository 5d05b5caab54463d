//! Gateways, workers and clients around one store, on one thread and in virtual time.
//!
//! Gateways and workers are processes; clients, and whoever stops and kills processes, are tasks of
//! the world itself. The world lets everything run that can, and then moves on to the next event.
//! Nothing else decides what happens when, so a seed replays a run.
//!
//! Before half of the seeds the clocks of processes disagree: wall clocks are minutes apart and
//! jump, steady clocks begin anywhere and run a little fast or slow.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use futures::FutureExt;
use futures::channel::oneshot;
use futures::executor::LocalPool;
use futures::future::{BoxFuture, Either, select};
use futures::task::LocalSpawnExt;
use heatsink_control::reshard_intent::WantedLayout;
use heatsink_control::{Changer, Control, Fencing, Rules, StartError};
use heatsink_dynamo::{Error, Operation, Outcome};
use heatsink_env::{Env, Processes};
use heatsink_gateway::{Limits, Service};
use heatsink_store::Store;
use heatsink_workers::{
    Adoption, AdoptionOptions, AdoptionReport, AsItLies, Direction, Layouts, Reshard, Runner, Unwatched,
    WorkerError,
};
use serde_json::Value as Json;

use crate::book::Book;
use crate::carried;
use crate::clock::{Clock, ProcessEnv};
use crate::log::Log;
use crate::network::{Network, PAST};
use crate::process::{Alive, Process};
use crate::reshard::{Mishap, Phases};

/// A run that takes more virtual time than this hangs.
const LONGEST: Duration = Duration::from_secs(6 * 3600);

pub struct World {
    pub clock: Clock,
    pub log: Log,
    pub network: Arc<Network>,
    pub book: Book,
    seed: u64,
    gateways: RefCell<Vec<Gateway>>,
    workers: RefCell<Vec<Rc<Process>>>,
    /// Processes that were made, each with randomness of its own.
    made: Cell<u64>,
    /// Whether the clocks of processes disagree.
    odd_clocks: bool,
    /// Whether gateways that start from now on carry out what is asked for.
    carry: Cell<bool>,
    /// The processes that run. Gateways can tell of each other whether they do, before half of the
    /// seeds: they are on one machine.
    alive: Alive,
}

struct Gateway {
    rules: String,
    running: Option<(Rc<Process>, Option<Arc<Service>>)>,
}

impl World {
    pub fn new(seed: u64) -> Rc<World> {
        let clock = Clock::default();
        let log = Log::new(&clock);
        let network = Network::new(&clock, &log, seed);
        let book = Book::new(Arc::clone(&network), log.clone());
        let (gateways, workers, made) = (RefCell::default(), RefCell::default(), Cell::new(0));
        let mut odd = Rng::with_seed(seed.wrapping_add(0x0c10_c450));
        let (odd_clocks, alive, carry) = (odd.bool(), Alive::new(odd.bool()), Cell::new(false));
        Rc::new(World { clock, log, network, book, seed, gateways, workers, made, odd_clocks, carry, alive })
    }

    /// A gateway, as `heatsink serve` makes one. Every gateway of the simulation is made here,
    /// within its own process.
    async fn gateway(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: Rules,
        processes: Arc<dyn Processes>,
        carries: bool,
    ) -> Result<Arc<Service>, StartError> {
        let fencing = Fencing { processes, ..Fencing::shared(rules.fence(), "simulated") };
        let control = Control::join(Arc::clone(&store), Arc::clone(&env), rules, fencing).await?;
        let kept = control.clone();
        tokio::spawn(async move { kept.keep().await });
        if carries {
            let runner = Runner::new(Arc::clone(&store), Arc::clone(&env), control.clone());
            tokio::spawn(async move { runner.run(std::future::pending()).await });
        }
        Ok(Arc::new(Service::new(store, control, env, Limits::default(), "us-east-1")))
    }

    /// One run of `heatsink adopt`, within its own process.
    async fn worker(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: Rules,
        table: String,
        direction: Direction,
    ) -> Result<AdoptionReport, WorkerError> {
        let options = AdoptionOptions { concurrency: 2, exclusive: false };
        let prepare = || Adoption::prepare(Arc::clone(&store), Arc::clone(&env), &rules, &table, direction);
        let adoption = match prepare().await {
            // A table of that name is on record and is no more: this is another one, as the
            // operator knows.
            Err(WorkerError::Usage(why)) if why.contains("--records-from none") => {
                Adoption::prepare_anew(Arc::clone(&store), Arc::clone(&env), &rules, &table).await?
            }
            adoption => adoption?,
        };
        match adoption.run(options, &Unwatched).await {
            // Its items lie as its rules say, for a gateway wrote them that knew the table before
            // it.
            Err(WorkerError::Usage(why) | WorkerError::Stopped(why)) if why.contains("--as-it-lies") => {
                let fencing = Fencing::shared(rules.fence(), "adopt");
                let lies = AsItLies::prepare(store, env, Layouts::Of(&rules), &table, fencing).await?;
                let recorded = lies.run(false, &Unwatched).await?;
                Err(WorkerError::Usage(format!("{} items are on record as they lie", recorded.items)))
            }
            done => done,
        }
    }

    /// A registry that every gateway has noticed, as a store has it whose gateways run for longer
    /// than a minute.
    async fn settle_registry(&self) {
        let fencing = Fencing::exclusive(Rules::default().fence());
        Changer::beside(self.network.link(PAST), self.env(), fencing).freeze(false).await.unwrap();
    }

    /// Runs `heatsink freeze`, or thaws layouts again.
    pub async fn freeze(&self, frozen: bool) {
        let fencing = Fencing::shared(Rules::default().fence(), "freeze");
        Changer::beside(self.network.link(PAST), self.env(), fencing).freeze(frozen).await.unwrap();
        self.log.line(if frozen { "layouts are frozen" } else { "layouts are thawed" });
    }

    /// One run that takes a key to a layout without an intent, within its own process: what carries
    /// one out, by itself.
    async fn mover(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: Rules,
        (key, wanted): (&'static str, WantedLayout),
        phases: Arc<Phases>,
    ) -> Result<heatsink_workers::ReshardReport, WorkerError> {
        let (table, key) = (crate::TABLE, key.as_bytes());
        let prepared = Reshard::prepare(store, env, &rules, table, key, wanted, false).await?;
        let options = heatsink_workers::ReshardOptions { exclusive: false, rate: 100_000 };
        prepared.run(options, &*phases).await
    }

    /// Carries a script out to its end.
    pub fn run(self: &Rc<Self>, script: impl Future<Output = ()> + 'static) {
        let mut outside = LocalPool::new();
        let done = Rc::new(Cell::new(false));
        let ends = Rc::clone(&done);
        let world = Rc::clone(self);
        let script = async move {
            // Some stores have none at first.
            if !world.seed.is_multiple_of(4) {
                world.settle_registry().await;
            }
            script.await;
            ends.set(true);
        };
        outside.spawner().spawn_local(script).unwrap();
        loop {
            self.settle(&mut outside);
            if done.get() {
                return;
            }
            let event = self.clock.next().expect("the script waits for nothing");
            if Duration::from_nanos(self.clock.now().0) >= LONGEST {
                self.log.print_end();
                panic!("the script hangs");
            }
            event();
        }
    }

    /// Lets all run that can, until all wait. Tasks outside wake those of a process only by a
    /// message, so a round without one is the last.
    fn settle(&self, outside: &mut LocalPool) {
        loop {
            let before = self.book.messages.get();
            outside.run_until_stalled();
            let running: Vec<Rc<Process>> = self.processes();
            running.iter().for_each(|process| process.run());
            drop(running);
            outside.run_until_stalled();
            if self.book.messages.get() == before {
                return;
            }
        }
    }

    fn processes(&self) -> Vec<Rc<Process>> {
        let gateways = self.gateways.borrow();
        let gateways = gateways.iter().filter_map(|gateway| Some(Rc::clone(&gateway.running.as_ref()?.0)));
        gateways.chain(self.workers.borrow().iter().map(Rc::clone)).collect()
    }

    /// Whether gateways can tell of each other whether they run.
    pub fn are_together(&self) -> bool {
        self.alive.together
    }

    pub fn env(&self) -> Arc<ProcessEnv> {
        self.made.set(self.made.get() + 1);
        let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(self.made.get());
        let made = if self.odd_clocks { ProcessEnv::odd } else { ProcessEnv::new };
        Arc::new(made(&self.clock, seed))
    }

    /// Runs something within a process. Its answer is cancelled if the process is killed before.
    fn within<T: Send + 'static>(
        &self,
        process: &Process,
        work: impl Future<Output = T> + Send + 'static,
    ) -> (oneshot::Receiver<T>, tokio::task::JoinHandle<()>) {
        let (done, result) = oneshot::channel();
        self.book.message();
        let task = process.handle().spawn(async move { drop(done.send(work.await)) });
        (result, task)
    }

    /// Gateways that start from now on carry out what is asked for.
    pub fn carry(&self) {
        self.carry.set(true);
    }

    /// Adds a gateway that is not started yet. Returns its number.
    pub fn add_gateway(&self, rules: &str) -> usize {
        let mut gateways = self.gateways.borrow_mut();
        gateways.push(Gateway { rules: rules.to_owned(), running: None });
        gateways.len() - 1
    }

    pub fn gateways(&self) -> usize {
        self.gateways.borrow().len()
    }

    /// Gives a gateway other rules, from its next start on.
    pub fn set_rules(&self, gateway: usize, rules: &str) {
        self.gateways.borrow_mut()[gateway].rules = rules.to_owned();
    }

    /// Starts a gateway that does not run, and waits until it serves. `Err` with the reason if it
    /// ended before.
    pub async fn start(&self, gateway: usize) -> Result<(), String> {
        let process = Rc::new(Process::new(&self.alive));
        let name = name(gateway);
        let (store, env) = (self.network.link(&name), self.env());
        let rules = {
            let mut gateways = self.gateways.borrow_mut();
            gateways[gateway].running = Some((Rc::clone(&process), None));
            Rules::read("rules", &gateways[gateway].rules).expect("the rules are valid")
        };
        self.log.line(format!("{name} starts"));
        let carries = self.carry.get();
        let gateway_starts = World::gateway(store, env, rules, process.neighbours(), carries);
        let (started, _) = self.within(&process, gateway_starts);
        // Only the world holds it, so that it can be killed meanwhile.
        let weak = Rc::downgrade(&process);
        drop(process);
        let started = started.await.map_err(|_| "killed".to_owned()).and_then(|started| {
            started.map_err(|error| match error {
                StartError::Rules(why) => why,
                StartError::Store(why) => why.to_string(),
            })
        });
        let mut gateways = self.gateways.borrow_mut();
        let running = &mut gateways[gateway].running;
        let process = weak.upgrade().ok_or("killed")?;
        match started {
            Ok(service) => {
                *running = Some((process, Some(service)));
                self.log.line(format!("{name} serves"));
                Ok(())
            }
            Err(why) => {
                *running = None;
                self.log.line(format!("{name} does not start: {why}"));
                Err(why)
            }
        }
    }

    /// Starts a gateway that does not run, however often it takes.
    pub async fn start_surely(&self, gateway: usize) -> Result<(), String> {
        let mut failed = Ok(());
        for _ in 0..50 {
            if self.is_serving(gateway) {
                return Ok(());
            }
            self.kill(gateway);
            failed = self.start(gateway).await;
            if failed.is_err() {
                self.clock.sleep(Duration::from_secs(3)).await;
            }
        }
        failed
    }

    pub fn is_serving(&self, gateway: usize) -> bool {
        matches!(self.gateways.borrow()[gateway].running, Some((_, Some(_))))
    }

    /// Kills a gateway with all that it does.
    pub fn kill(&self, gateway: usize) {
        let killed = self.gateways.borrow_mut()[gateway].running.take();
        if killed.is_some() {
            self.log.line(format!("{} is killed", name(gateway)));
            self.book.message();
        }
    }

    /// Stops a gateway, as SIGSTOP does, or lets it go on.
    pub fn stop(&self, gateway: usize, stopped: bool) {
        if let Some((process, _)) = &self.gateways.borrow()[gateway].running {
            process.stop(stopped);
            self.log.line(format!("{} {}", name(gateway), if stopped { "is stopped" } else { "goes on" }));
            self.book.message();
        }
    }

    /// A client's request to a gateway. A client that has no answer after `patience` hangs up: a
    /// read then ends, anything else goes on.
    pub async fn ask(
        &self,
        gateway: usize,
        operation: Operation,
        body: &Json,
        patience: Duration,
    ) -> Result<Json, Error> {
        let running = self.gateways.borrow()[gateway].running.clone();
        let Some((process, Some(service))) = running else {
            return Err(Error::unavailable("connection refused", Outcome::NotDone));
        };
        let body = Bytes::from(body.to_string());
        let (answer, task) = self.within(&process, async move { service.call(operation, body).await });
        drop(process);
        match select(answer, self.clock.sleep(patience)).await {
            Either::Left((Ok(answer), _)) => {
                answer.map(|answer| serde_json::from_slice(&answer).expect("an answer is JSON"))
            }
            Either::Left((Err(_), _)) => Err(Error::unavailable("connection reset", Outcome::Unknown)),
            Either::Right(_) => {
                if operation.only_reads() {
                    task.abort();
                    self.book.message();
                }
                Err(Error::unavailable("the client hung up", Outcome::Unknown))
            }
        }
    }

    /// A request to the store that bypasses Heatsink.
    pub async fn past(&self, operation: Operation, body: &Json) -> Result<Json, Error> {
        let link = self.network.link(PAST);
        let answer = link.call(operation, Bytes::from(body.to_string())).await?;
        Ok(serde_json::from_slice(&answer).expect("an answer is JSON"))
    }

    /// Runs `heatsink adopt` for a table. It is killed after `life`, if it has not ended by then:
    /// `None`.
    pub async fn adopt(
        &self,
        rules: &str,
        direction: Direction,
        life: Duration,
    ) -> Option<Result<AdoptionReport, WorkerError>> {
        let process = Rc::new(Process::new(&self.alive));
        self.workers.borrow_mut().push(Rc::clone(&process));
        let (store, env) = (self.network.link("worker"), self.env());
        let rules = Rules::read("rules", rules).expect("the rules are valid");
        let table = crate::TABLE.to_owned();
        self.log.line(format!("adopt begins: {direction:?}"));
        let (done, _) = self.within(&process, World::worker(store, env, rules, table, direction));
        let done = match select(done, self.clock.sleep(life)).await {
            Either::Left((done, _)) => done.ok(),
            Either::Right(_) => None,
        };
        self.workers.borrow_mut().retain(|worker| !Rc::ptr_eq(worker, &process));
        self.log.line(match &done {
            None => "adopt is killed".to_owned(),
            Some(Ok(report)) => format!("adopt is done: {report:?}"),
            Some(Err(error)) => format!("adopt ends: {error}"),
        });
        done
    }

    /// Runs `heatsink reshard start` for the hot key. `None` if a mishap killed it.
    pub async fn reshard(
        &self,
        rules: &str,
        wanted: impl Into<WantedLayout>,
        phases: &Arc<Phases>,
        mishap: Option<Mishap>,
    ) -> Option<Result<heatsink_workers::ReshardReport, WorkerError>> {
        self.reshard_key(rules, (crate::KEY, wanted.into()), phases, mishap).await
    }

    /// The same for a key.
    pub async fn reshard_key(
        &self,
        rules: &str,
        (key, wanted): (&'static str, WantedLayout),
        phases: &Arc<Phases>,
        mishap: Option<Mishap>,
    ) -> Option<Result<heatsink_workers::ReshardReport, WorkerError>> {
        let env = self.env();
        let name = format!("run {:03}", self.made.get());
        self.log.line(format!("{name} begins: {key} to {}; {mishap:?}", wanted.in_words()));
        let rules = Rules::read("rules", rules).expect("the rules are valid");
        let (store, phases) = (self.network.link(&name), Arc::clone(phases));
        let run = match self.carry.get() {
            true => carried::here(store, env, rules, (key, wanted), phases).boxed(),
            false => World::mover(store, env, rules, (key, wanted), phases).boxed(),
        };
        self.run_of(&name, run, mishap).await
    }

    /// Runs `heatsink adopt`, by which all keys get so many shards, while clients use them. `None`
    /// if a mishap killed it.
    pub async fn turn(&self, shards: u16, mishap: Option<Mishap>) -> Option<Result<(), WorkerError>> {
        let env = self.env();
        let name = format!("run {:03}", self.made.get());
        self.log.line(format!("{name} begins: {shards} shards; {mishap:?}"));
        let run = crate::turning::turn(self.network.link(&name), env, shards);
        self.run_of(&name, run.boxed(), mishap).await
    }

    /// A run of a command, within its own process. `None` if a mishap killed it.
    async fn run_of<T: std::fmt::Debug + Send + 'static>(
        &self,
        name: &str,
        run: BoxFuture<'static, Result<T, WorkerError>>,
        mishap: Option<Mishap>,
    ) -> Option<Result<T, WorkerError>> {
        let process = Rc::new(Process::new(&self.alive));
        self.workers.borrow_mut().push(Rc::clone(&process));
        let happens =
            mishap.map(|mishap| self.network.sent(name, mishap.text, mishap.before, mishap.vanishes));
        let (mut run, _) = self.within(&process, run);
        let happened = match happens {
            None => false,
            Some(happens) => match select(&mut run, happens).await {
                Either::Left((ended, _)) => {
                    drop(run);
                    return self.ended(name, &process, ended.ok());
                }
                Either::Right((happened, _)) => happened.is_ok(),
            },
        };
        match mishap.and_then(|mishap| mishap.stops) {
            Some(pause) if happened => {
                self.log.line(format!("{name} is stopped"));
                process.stop(true);
                self.clock.sleep(pause).await;
                process.stop(false);
                self.log.line(format!("{name} goes on"));
                self.book.message();
            }
            None if happened => return self.ended(name, &process, None),
            _ => {}
        }
        let ended = run.await.ok();
        self.ended(name, &process, ended)
    }

    /// A run has ended; without a result it is killed.
    fn ended<T: std::fmt::Debug>(
        &self,
        name: &str,
        process: &Rc<Process>,
        ended: Option<Result<T, WorkerError>>,
    ) -> Option<Result<T, WorkerError>> {
        self.workers.borrow_mut().retain(|worker| !Rc::ptr_eq(worker, process));
        self.book.message();
        self.log.line(match &ended {
            None => format!("{name} is killed"),
            Some(Ok(report)) => format!("{name} is done: {report:?}"),
            Some(Err(error)) => format!("{name} ends: {error}"),
        });
        ended
    }
}

/// The name of a gateway in the log.
pub fn name(gateway: usize) -> String {
    format!("gateway {gateway}")
}

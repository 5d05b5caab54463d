//! Virtual time: what is to happen, in order. Time stands still while anything can run and jumps to
//! the next event when nothing can.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::BoxFuture;
use heatsink_env::{Env, MonotonicInstant};

/// So many seconds.
pub const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A time of at most so long.
pub fn up_to(rng: &mut Rng, most: Duration) -> Duration {
    Duration::from_micros(rng.u64(0..=most.as_micros() as u64))
}

/// What happens at a moment.
pub type Event = Box<dyn FnOnce() + Send>;

/// The clock of a simulation. Clones share it.
#[derive(Clone, Default)]
pub struct Clock(Arc<Mutex<Timeline>>);

#[derive(Default)]
struct Timeline {
    now: MonotonicInstant,
    /// Events at one moment happen in the order in which they were asked for.
    asked: u64,
    events: BTreeMap<(MonotonicInstant, u64), Event>,
}

impl Clock {
    pub fn now(&self) -> MonotonicInstant {
        self.0.lock().unwrap().now
    }

    /// Has something happen after that time.
    pub fn after(&self, pause: Duration, event: impl FnOnce() + Send + 'static) {
        let mut timeline = self.0.lock().unwrap();
        timeline.asked += 1;
        let at = (timeline.now + pause, timeline.asked);
        timeline.events.insert(at, Box::new(event));
    }

    pub fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        let (wake, woken) = oneshot::channel();
        self.after(pause, move || {
            // A sleeper that was dropped no longer listens.
            let _ = wake.send(());
        });
        woken.map(|_| ()).boxed()
    }

    /// Moves on to the next event and hands it out.
    pub fn next(&self) -> Option<Event> {
        let mut timeline = self.0.lock().unwrap();
        let ((now, _), event) = timeline.events.pop_first()?;
        timeline.now = now;
        Some(event)
    }
}

/// What one process sees of time, and its own randomness.
pub struct ProcessEnv {
    clock: Clock,
    rng: Mutex<Rng>,
    odd: Odd,
}

/// What clocks of a process show that others do not.
#[derive(Clone, Copy, Debug, Default)]
struct Odd {
    /// What its steady clock shows at the beginning, in nanoseconds.
    begin: u64,
    /// By how many millionths its steady clock runs fast, or slow.
    fast: i64,
    /// By how many milliseconds its wall clock is wrong.
    wrong: i64,
    /// When its wall clock jumps, and by how many milliseconds.
    jump: (MonotonicInstant, i64),
}

impl Odd {
    fn draw(rng: &mut Rng) -> Odd {
        Odd {
            begin: rng.u64(0..1 << 50),
            fast: rng.i64(-FAST..=FAST),
            wrong: rng.i64(-WRONG..=WRONG),
            jump: (MonotonicInstant(rng.u64(0..300) * 1_000_000_000), rng.i64(-JUMP..=JUMP)),
        }
    }

    /// What of a time a clock shows that is so fast, in nanoseconds.
    fn shown(&self, time: u64) -> u64 {
        let off = i128::from(time) * i128::from(self.fast) / 1_000_000;
        time.saturating_add_signed(off as i64)
    }
}

/// So fast or slow a steady clock is at most, in millionths: what a quartz may be. The fence takes
/// clocks to run at one rate, and waits long enough for this.
const FAST: i64 = 100;
/// So wrong is a wall clock at most, in milliseconds.
const WRONG: i64 = 10 * 60 * 1_000;
/// So far does a wall clock jump at most, in milliseconds.
const JUMP: i64 = 60 * 60 * 1_000;

impl ProcessEnv {
    pub fn new(clock: &Clock, seed: u64) -> ProcessEnv {
        ProcessEnv { clock: clock.clone(), rng: Mutex::new(Rng::with_seed(seed)), odd: Odd::default() }
    }

    /// The same, with clocks that agree with no other.
    pub fn odd(clock: &Clock, seed: u64) -> ProcessEnv {
        let odd = Odd::draw(&mut Rng::with_seed(seed.wrapping_add(1)));
        ProcessEnv { odd, ..ProcessEnv::new(clock, seed) }
    }
}

/// 2026-01-01T00:00:00Z, when every simulation begins.
const BEGIN: u64 = 1_767_225_600_000;

impl Env for ProcessEnv {
    fn now(&self) -> MonotonicInstant {
        MonotonicInstant(self.odd.begin + self.odd.shown(self.clock.now().0))
    }

    fn unix_millis(&self) -> u64 {
        let now = self.clock.now();
        let (at, jump) = self.odd.jump;
        let wrong = self.odd.wrong + if now >= at { jump } else { 0 };
        (BEGIN + now.0 / 1_000_000).saturating_add_signed(wrong)
    }

    fn random(&self) -> u64 {
        self.rng.lock().unwrap().u64(..)
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        // A fast clock wakes its process early. Never before the pause is over by that clock.
        let off =
            pause.as_nanos() as i128 * i128::from(self.odd.fast) / (1_000_000 + i128::from(self.odd.fast));
        let pause = pause.as_nanos() as u64;
        let odd = u64::from(self.odd.fast != 0);
        self.clock.sleep(Duration::from_nanos(pause.saturating_add_signed(-off as i64) + odd))
    }
}

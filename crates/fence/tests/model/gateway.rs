//! A gateway: looks at the head, applies what changed, acknowledges. The types of the crate decide;
//! here their caller is modelled.
//!
//! [`heatsink_fence::Gate`] is made of atomics, so what it does is said again in [`Known`] and [`Gateway::close`]: closed, nobody gets in,
//! and nobody inside may send or deliver; unclean while somebody is inside, or for the rest of the
//! bound after the last unanswered call.

use std::sync::Arc;

use heatsink_fence::{Epoch, Head, Member, Seen};

use crate::config::{Config, Rule, Start};
use crate::request::Request;
use crate::world::{Entry, Plan, Tick, World, at};

/// What a gateway knows of the table, and the gate of the requests that were planned so.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Known {
    pub plan: Plan,
    /// When the last call was sent that was never answered.
    pub unanswered: Option<Tick>,
}

/// A read of the head whose answer is not worked on yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Look {
    sent: Tick,
    head: Option<Arc<Head>>,
}

/// One gateway.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gateway {
    pub member: Member,
    pub look: Option<Look>,
    /// The newest epoch that was seen.
    pub seen: Epoch,
    pub known: Option<Known>,
    /// Until then calls may take effect whose gate is closed.
    pub unclean: Tick,
    /// When the last registration was written.
    pub beaten: Tick,
    /// The number of the last registration that was answered.
    pub answered_beat: u64,
    pub beats_lost: u8,
    pub request: Request,
    /// The next operation.
    pub op: u8,
    /// Its process has ended.
    pub ended: bool,
}

impl Gateway {
    pub fn begin(config: &Config, number: usize) -> Self {
        let mut member = Member::new(config.bounds_of(number));
        let mut known = None;
        if let Start::Registered(plan) = config.gateways[number].start {
            member.found_registry();
            member.registered(at(0));
            member.read(at(0), &Head::default());
            known = plan.map(|plan| Known { plan, unanswered: None });
        }
        Gateway {
            member,
            look: None,
            seen: 0,
            known,
            unclean: 0,
            beaten: 0,
            answered_beat: 0,
            beats_lost: 0,
            request: Request::Idle,
            op: 0,
            ended: false,
        }
    }

    /// Whether its clients want nothing more.
    fn is_over(&self, config: &Config, number: usize) -> bool {
        self.request == Request::Idle && usize::from(self.op) >= config.gateways[number].ops.len()
    }

    /// Takes away what is known of the table, and closes its gate.
    fn close(&mut self, config: &Config, now: Tick) {
        let Some(known) = self.known.take() else { return };
        let straggler = u8::try_from(config.bounds.straggler.as_secs()).expect("small");
        let until = match known.unanswered {
            _ if self.request.is_inside() => now + straggler,
            Some(sent) => sent + straggler,
            None => 0,
        };
        self.unclean = self.unclean.max(until);
        self.request.close();
    }
}

impl World {
    /// Sends a read of the head, which the store answers at once. What it says is worked on
    /// whenever.
    pub fn look(&mut self, config: &Config, number: usize) -> Option<()> {
        let (now, epoch) = (self.now, self.epoch());
        let gateway = self.gateways.get_mut(number)?;
        let early = !config.keeps(Rule::RegisterBeforeReading);
        let longer = at(now) + config.bounds_of(number).lease > gateway.member.lease().0;
        let news = longer
            || epoch > gateway.member.epoch()
            || gateway.member.is_watching() && self.registry.head.is_some();
        let over = gateway.is_over(config, number) && !config.heartbeats;
        if gateway.look.is_some()
            || !news
            || over && epoch == gateway.member.epoch()
            || gateway.member.is_unregistered() && !early
        {
            return None;
        }
        gateway.look = Some(Look { sent: now, head: self.registry.head.clone() });
        if !config.slow {
            self.looked(config, number)?;
            if config.beats_lost == 0 && !config.heartbeats {
                // To acknowledge later only lets others wait longer.
                let _ = self.beat(config, number, true);
            }
        }
        Some(())
    }

    /// A gateway whose clients want nothing more acknowledges at once: it can do no harm any more,
    /// and to acknowledge later only lets others wait longer.
    pub fn acknowledge_idle(&mut self, config: &Config) {
        if config.slow || config.heartbeats || config.beats_lost > 0 {
            return;
        }
        for number in 0..self.gateways.len() {
            let epoch = self.epoch();
            let gateway = &self.gateways[number];
            if gateway.is_over(config, number)
                && gateway.member.is_registered()
                && gateway.member.epoch() < epoch
            {
                let _ = self.look(config, number);
            }
        }
    }

    /// Works on the answer.
    pub fn looked(&mut self, config: &Config, number: usize) -> Option<()> {
        let now = self.now;
        let gateway = self.gateways.get_mut(number)?;
        if gateway.member.is_unregistered() && !config.keeps(Rule::RegisterBeforeReading) {
            // It registers while the answer is on its way.
            return None;
        }
        let look = gateway.look.take()?;
        let sent = if config.keeps(Rule::LeaseFromSending) { at(look.sent) } else { at(now) };
        let Some(head) = look.head else {
            gateway.member.found_none(sent);
            return Some(());
        };
        if gateway.member.is_watching() {
            gateway.member.found_registry();
            return Some(());
        }
        match gateway.member.read(sent, &head) {
            Seen::Nothing | Seen::Older => {}
            Seen::Changed(_) | Seen::Everything => {
                gateway.seen = gateway.seen.max(head.epoch);
                gateway.close(config, now);
                gateway.member.applied(sent, &head);
            }
        }
        Some(())
    }

    /// Its process ends: what it has sent may still land, and nobody gets the answer.
    pub fn end(&mut self, config: &Config, number: usize) -> Option<()> {
        let _ = self.give_up(config, number);
        let gateway = self.gateways.get_mut(number)?;
        (gateway.request, gateway.look, gateway.ended) = (Request::Idle, None, true);
        Some(())
    }

    /// Somebody who can tell notes that its process has ended.
    pub fn mark(&mut self, config: &Config, number: usize) -> Option<()> {
        let certain = self.gateways.get(number)?.ended || !config.keeps(Rule::EndedIsCertain);
        let entry = self.registry.list.get_mut(number)?.as_mut()?;
        (certain && !entry.ended).then(|| entry.ended = true)
    }

    /// Puts the gateway on the list.
    pub fn register(&mut self, config: &Config, number: usize) -> Option<()> {
        let now = self.now;
        let gateway = self.gateways.get_mut(number)?;
        let waiting = gateway.look.is_some() == config.keeps(Rule::RegisterBeforeReading);
        if !gateway.member.is_unregistered() || waiting {
            return None;
        }
        let beat = gateway.member.registration();
        let unclean = gateway.unclean.saturating_sub(now);
        let number_written = if config.keeps(Rule::BeatsDiffer) { beat.number } else { 0 };
        *self.registry.list.get_mut(number)? =
            Some(Entry { beat: number_written, epoch: beat.epoch, unclean, ended: false });
        gateway.member.registered(at(now));
        (gateway.beaten, gateway.answered_beat) = (if config.heartbeats { now } else { 0 }, 0);
        Some(())
    }

    /// Writes the registration: an acknowledgement where there is something to acknowledge, else a
    /// sign of life. `answered`: whether the gateway learns that it was written.
    pub fn beat(&mut self, config: &Config, number: usize, answered: bool) -> Option<()> {
        let now = self.now;
        let gateway = self.gateways.get_mut(number)?;
        let entry = self.registry.list.get_mut(number)?;
        let news = entry.is_none_or(|entry| entry.epoch < gateway.member.epoch());
        let due = config.heartbeats && gateway.beaten < now;
        if !news && !due {
            return None;
        }
        if !answered {
            if gateway.beats_lost == config.beats_lost || entry.is_none() {
                return None;
            }
            gateway.beats_lost += 1;
        }
        let mut beat = gateway.member.beat()?;
        let Some(entry) = entry.as_mut().filter(|entry| !entry.ended) else {
            gateway.member.removed();
            return Some(());
        };
        if !config.keeps(Rule::BeatsDiffer) {
            beat.number = gateway.answered_beat + 1;
        }
        let unclean = gateway.unclean.saturating_sub(now);
        let unclean = if config.keeps(Rule::UncleanCounted) { unclean } else { 0 };
        *entry = Entry { beat: beat.number, epoch: beat.epoch, unclean, ended: false };
        if answered {
            gateway.member.beaten(at(now));
            gateway.answered_beat = beat.number;
            if config.heartbeats {
                gateway.beaten = now;
            }
        }
        Some(())
    }
}

//! Requests that share a budget, with time that the tests move.

use futures::FutureExt;
use heatsink_env::ManualEnv;

use super::*;

const MB: usize = 1024 * 1024;

fn budget(memory: usize) -> (Arc<Budget>, Arc<ManualEnv>) {
    let env = Arc::new(ManualEnv::seeded(1));
    let limits = Limits { memory, memory_wait: Duration::from_secs(5), ..Limits::default() };
    (Budget::new(&limits, env.clone()), env)
}

#[test]
fn bodies_fill_half_and_are_given_back() {
    let (budget, _) = budget(20 * UNCOUNTED);
    let work = enter(&mut budget.share(), Stage::GoesOn, 10 * UNCOUNTED).unwrap();
    let [mut one, mut two, mut small] = [(); 3].map(|()| budget.hold(Of::Requests));
    assert!(one.reach(4 * UNCOUNTED) && one.reach(6 * UNCOUNTED));
    assert!(one.reach(UNCOUNTED + 1), "less than it has");
    assert!(!two.reach(5 * UNCOUNTED));
    assert!(two.reach(4 * UNCOUNTED));
    assert!(small.reach(UNCOUNTED) && !small.reach(UNCOUNTED + 1));
    drop(work);
    assert!(!two.reach(5 * UNCOUNTED), "half is theirs, whatever else is free");
    small.force(2 * UNCOUNTED);
    drop((one, two));
    assert_eq!(budget.used().bytes, 2 * UNCOUNTED);
    drop(small);
    assert_eq!(budget.used().bytes, 0);
}

/// A body in the name of a client, of four.
fn body(budget: &Arc<Budget>, id: &str, is_shown: bool) -> Held {
    let mut held = budget.hold(Of::Requests);
    held.claim(Claimant { id: id.into(), is_shown, clients: 4 });
    held
}

/// As many bodies of two units as somebody may have in the name of a client.
fn reached(budget: &Arc<Budget>, id: &str, is_shown: bool) -> Vec<Held> {
    let bodies = (0..40).map(|_| body(budget, id, is_shown));
    bodies.map_while(|mut held| held.reach(2 * UNCOUNTED).then_some(held)).collect()
}

#[test]
fn bodies_that_are_not_proven_leave_room_to_other_clients() {
    let (budget, _) = budget(80 * UNCOUNTED);
    // A share is five units, ten can be had besides, and ten more by who has shown a certificate.
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|id| reached(&budget, id, false));
    assert_eq!([a.len(), b.len(), c.len(), d.len()], [3; 4]);
    assert!(!body(&budget, "a", false).reach(2 * UNCOUNTED), "a has its share");
    drop(d);
    let d = reached(&budget, "d", true);
    assert_eq!(d.len(), 5, "more than who has shown nothing, and not all");
    assert!(budget.hold(Of::Requests).reach(12 * UNCOUNTED), "what is proven finds what is left");
    drop((b, c, d));
    let mut proven = a.into_iter().next().unwrap();
    proven.prove();
    assert_eq!(budget.used().bytes, 2 * UNCOUNTED, "what is proven is held still");
    let again = reached(&budget, "a", false);
    assert_eq!(again.len(), 3, "and counts as a's no more");
    drop((proven, again));
    assert_eq!(budget.used().bytes, 0);
}

#[test]
fn large_bodies_in_many_names_leave_each_client_its_share() {
    let (budget, _) = budget(80 * UNCOUNTED);
    let alone = |id| {
        let mut held = body(&budget, id, false);
        (2..=20).take_while(|units| held.reach(units * UNCOUNTED)).count();
        held
    };
    assert_eq!(alone("a").bytes, 20 * UNCOUNTED, "beside no other it may have more than its part");
    let mut other = budget.hold(Of::Requests);
    other.force(UNCOUNTED);
    let large = ["a", "b", "c"].map(alone);
    assert_eq!(large.each_ref().map(|held| held.bytes / UNCOUNTED), [14, 5, 5]);
    let mut last = body(&budget, "d", false);
    assert!(last.reach(5 * UNCOUNTED) && !last.reach(6 * UNCOUNTED));
    drop(last);
    let mut shown = body(&budget, "d", true);
    assert!(shown.reach(15 * UNCOUNTED), "whom a certificate shows is not held up by them");
}

fn enter(share: &mut Share, stage: Stage, bytes: usize) -> Option<Held> {
    share.enter(stage, bytes).now_or_never()?.ok()
}

#[test]
fn what_has_begun_and_what_is_small_has_room_that_others_wait_for() {
    let (budget, _) = budget(16 * MB);
    let [mut one, mut two, mut three] = [(); 3].map(|()| budget.share());
    let first = enter(&mut one, Stage::Begins, 12 * MB).unwrap();
    assert!(enter(&mut two, Stage::Begins, 2 * MB).is_none(), "three quarters are full");
    let _small = enter(&mut two, Stage::Begins, MB).unwrap();
    let _on = enter(&mut one, Stage::GoesOn, 3 * MB).unwrap();
    assert!(enter(&mut one, Stage::GoesOn, 2 * MB).is_none(), "all is full");
    assert!(enter(&mut three, Stage::Begins, MB).is_none());
    assert!(budget.enter_answer(MB).now_or_never().flatten().is_none());
    drop(first);
    assert!(enter(&mut three, Stage::Begins, 8 * MB).is_some());
}

#[test]
fn room_is_given_in_the_order_in_which_it_was_asked_for() {
    let (budget, _) = budget(16 * MB);
    let [mut one, mut two, mut three] = [(); 3].map(|()| budget.share());
    let first = enter(&mut one, Stage::Begins, 10 * MB).unwrap();
    let mut large = Box::pin(two.enter(Stage::Begins, 9 * MB));
    let mut little = Box::pin(three.enter(Stage::Begins, 2 * MB));
    assert!((&mut large).now_or_never().is_none() && budget.is_pressed());
    assert!((&mut little).now_or_never().is_none(), "there would be room, but it is not its turn");
    drop(first);
    assert!((&mut little).now_or_never().is_none());
    let large = (&mut large).now_or_never().unwrap().unwrap();
    let little = (&mut little).now_or_never().unwrap().unwrap();
    assert_eq!(budget.used().bytes, 11 * MB);
    drop((large, little));
    assert!(!budget.is_pressed());
}

#[test]
fn who_waits_too_long_goes_without_and_who_stops_waiting_holds_nobody_up() {
    let (budget, env) = budget(16 * MB);
    let [mut one, mut two, mut three, mut four] = [(); 4].map(|()| budget.share());
    let first = enter(&mut one, Stage::Begins, 12 * MB).unwrap();
    let mut late = Box::pin(two.enter(Stage::Begins, 9 * MB));
    let mut gone = Box::pin(three.enter(Stage::Begins, 9 * MB));
    let mut last = Box::pin(four.enter(Stage::Begins, 9 * MB));
    assert!((&mut late).now_or_never().is_none() && (&mut gone).now_or_never().is_none());
    env.advance(Duration::from_secs(4));
    assert!((&mut late).now_or_never().is_none() && (&mut last).now_or_never().is_none());
    env.advance(Duration::from_secs(1));
    assert!((&mut late).now_or_never().unwrap().is_err());
    drop(gone);
    drop(first);
    assert!((&mut last).now_or_never().unwrap().is_ok());
    drop((late, last));
    drop((one, two, three, four));
    let used = budget.used();
    assert_eq!((used.bytes, used.waiting, used.stuck, used.working), (0, 0, 0, 0));
}

#[test]
fn work_that_needs_more_than_there_is_goes_alone() {
    let (budget, _) = budget(16 * MB);
    let mut body = budget.hold(Of::Requests);
    assert!(body.reach(8 * MB));
    let [mut one, mut two] = [(); 2].map(|()| budget.share());
    let alone = enter(&mut one, Stage::Begins, 20 * MB).unwrap();
    assert!(enter(&mut two, Stage::Begins, MB).is_none());
    assert!(enter(&mut one, Stage::GoesOn, 20 * MB).is_some(), "it waits for nobody but itself");
    drop((alone, one));
    assert!(enter(&mut two, Stage::Begins, 20 * MB).is_some());
}

#[test]
fn where_all_that_have_begun_wait_one_of_them_goes_on() {
    let (budget, _) = budget(16 * MB);
    let [mut one, mut two, mut three] = [(); 3].map(|()| budget.share());
    let begun = [&mut one, &mut two].map(|share| enter(share, Stage::Begins, 6 * MB).unwrap());
    let mut first = Box::pin(one.enter(Stage::GoesOn, 5 * MB));
    let mut second = Box::pin(two.enter(Stage::GoesOn, 5 * MB));
    let mut newcomer = Box::pin(three.enter(Stage::Begins, 5 * MB));
    assert!((&mut first).now_or_never().is_none(), "the second is under way");
    assert!((&mut newcomer).now_or_never().is_none());
    assert!((&mut second).now_or_never().is_none());
    let first = (&mut first).now_or_never().unwrap().unwrap();
    assert!((&mut second).now_or_never().is_none(), "one at a time");
    assert!((&mut newcomer).now_or_never().is_none(), "and none that has not begun");
    drop((first, begun));
    assert!((&mut second).now_or_never().unwrap().is_ok());
}

#[test]
fn bytes_hold_what_they_carry_until_their_last_part_is_gone() {
    let (budget, _) = budget(16 * MB);
    let mut expected = enter(&mut budget.share(), Stage::GoesOn, 3 * MB).unwrap();
    let [one, two] = [2 * MB, 2 * MB].map(|bytes| expected.give(bytes).carried_by(vec![7; bytes].into()));
    assert_eq!(budget.used().bytes, 4 * MB, "what came beyond what was expected is counted too");
    drop(expected);
    let part = one.slice(MB..MB + 1);
    drop((one, two));
    assert_eq!((budget.used().bytes, &part[..]), (2 * MB, &[7][..]));
    drop(part);
    assert_eq!(budget.used().bytes, 0);
}

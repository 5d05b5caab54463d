//! Runs every remedy of a scenario.

use crate::advised::Advised;
use crate::compile::compile;
use crate::engine::Engine;
use crate::report::{Report, Run};
use crate::scenario::{Kind, Loaded, Remedy};
use crate::summary::summary;

/// Runs every remedy of a scenario. `progress` gets the share done, from 0 to 1.
pub fn simulate(loaded: &Loaded, progress: &mut dyn FnMut(f64)) -> Report {
    let scenario = &loaded.scenario;
    let remedies: Vec<Option<&Remedy>> =
        if scenario.remedy.is_empty() { vec![None] } else { scenario.remedy.iter().map(Some).collect() };
    let count = remedies.len() as f64;
    let runs = remedies
        .iter()
        .enumerate()
        .map(|(nth, remedy)| run(loaded, *remedy, true, &mut |share| progress((nth as f64 + share) / count)));
    Report {
        scenario: loaded.name.clone(),
        about: scenario.about.clone(),
        source: scenario.source.clone(),
        measured: scenario.measured.clone(),
        seconds: scenario.duration.as_seconds(),
        skipped_lines: loaded.skipped,
        late_lines: loaded.late,
        runs: runs.collect(),
    }
}

/// One remedy. `batches`: equal requests at once, which changes no count.
pub(crate) fn run(
    loaded: &Loaded,
    remedy: Option<&Remedy>,
    batches: bool,
    progress: &mut dyn FnMut(f64),
) -> Run {
    let advised =
        remedy.filter(|remedy| remedy.kind == Kind::Advised).map(|remedy| Advised::of(loaded, remedy));
    let remedy = advised.as_ref().map(|advised| &advised.remedy).or(remedy);
    let compiled = compile(loaded, remedy, advised.as_ref());
    let resources = compiled.resources.clone();
    let engine = Engine::new(compiled, loaded.scenario.seed, batches);
    let record = engine.run(loaded.scenario.duration.0, loaded.step(), resources.len(), progress);
    summary(loaded, remedy, &resources, &record)
}

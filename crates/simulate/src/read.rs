//! Reads a scenario, and the files that it names, and checks all of it.
//!
//! Sans-IO: text in, [`Loaded`] out. The caller reads the files.

use std::collections::HashMap;

use crate::bounds;
use crate::scenario::{Drawn, Fault, Keys, Loaded, Scenario, check, read_list, trace};

impl Loaded {
    /// Reads a scenario. `file` is its name, for messages; `open` gives the text of a file that it
    /// names, as it names it. `skip_bad`: leave out lines of traces that cannot be read, and count
    /// them.
    ///
    /// # Errors
    /// The first fault found: not TOML, a field that is unknown, missing or out of bounds, fields
    /// that contradict each other, a file that cannot be opened or (without `skip_bad`) read; what
    /// would take more than 4 GB of memory or about an hour.
    pub fn read(
        file: &str,
        text: &str,
        open: &mut dyn FnMut(&str) -> std::io::Result<String>,
        skip_bad: bool,
    ) -> Result<Loaded, Fault> {
        let scenario: Scenario = toml::from_str(text).map_err(|error| Fault::read(file, text, &error))?;
        check(&scenario, &|list, nth, name, problem| Fault::field(file, text, list, nth, name, problem))?;
        let stem = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let name = stem.strip_suffix(".toml").unwrap_or(stem).to_owned();
        let mut loaded = Loaded {
            name,
            scenario,
            lists: HashMap::new(),
            traces: HashMap::new(),
            skipped: 0,
            late: 0,
            taken: Vec::new(),
        };
        for (nth, workload) in loaded.scenario.workload.iter().enumerate() {
            let fault =
                |field: &str, problem: String| Fault::field(file, text, "workload", nth, field, problem);
            for (field, keys) in [("key", &workload.key), ("part", &workload.part)] {
                if let Some(Keys::Drawn(Drawn::File(list))) = keys {
                    let text = open(&list.path)
                        .map_err(|error| fault(field, format!("cannot read {}: {error}", list.path)))?;
                    loaded.lists.insert(list.path.clone(), read_list(&list.path, &text)?);
                }
            }
            if let Some(path) = &workload.trace
                && !loaded.traces.contains_key(path)
            {
                let text =
                    open(path).map_err(|error| fault("trace", format!("cannot read {path}: {error}")))?;
                let (trace, skipped) = trace::read(path, &text, skip_bad)?;
                let end = loaded.scenario.duration.0;
                let late = trace.iter().filter(|request| request.at >= end).count();
                if late == trace.len() {
                    return Err(fault(
                        "trace",
                        format!("all {late} requests of {path} come after the end of the run"),
                    ));
                }
                loaded.late += late;
                loaded.skipped += skipped;
                loaded.traces.insert(path.clone(), trace);
            }
            let trace = workload.trace.as_ref().and_then(|path| loaded.traces.get(path));
            let taken =
                trace.map_or(0, |trace| trace.iter().filter(|request| request.is_of(workload)).count());
            if trace.is_some() && taken == 0 {
                return Err(fault("trace", "no request of the trace is of this workload".to_owned()));
            }
            loaded.taken.push(taken);
        }
        bounds::check(&loaded, &|list, nth, name, problem| {
            Fault::field(file, text, list, nth, name, problem)
        })?;
        Ok(loaded)
    }
}

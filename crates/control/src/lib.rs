//! Which layout is in force: rules from configuration, the registry that records them, adoption of existing tables.

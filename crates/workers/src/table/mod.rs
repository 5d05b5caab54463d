//! Adoption of whole tables: a table that holds items comes under its rules, or back out.

pub(crate) mod adoption;
mod adoption_begin;
mod adoption_pass;
pub(crate) mod as_it_lies;
mod index_migration;
pub(crate) mod live;
mod prepare;
mod recipe;
pub(crate) mod recipe_observer;
pub(crate) mod report;
mod sharded;
pub(crate) mod survey;

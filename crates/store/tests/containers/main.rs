//! Python's containers: stores, tables, and arrays of objects, batches and lists.

#[path = "../../../../tests/common/mod.rs"]
mod common;

mod expressions;
mod gaps;
mod handles;
mod hostile;
mod limits;
mod pure;
mod python_objects;
mod python_stores;
mod python_table_writes;
mod python_tables;
mod store_writers;
mod stores;
mod table_appender;
mod table_blocks;
mod table_costs;
mod table_damage;
mod table_model;
mod table_order;
mod table_queries;
mod table_summaries;
mod table_writes;
mod tables;
mod untrusted_stores;

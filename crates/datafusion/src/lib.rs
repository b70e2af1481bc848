#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod arrays;
#[cfg(feature = "ballista")]
#[cfg_attr(docsrs, doc(cfg(feature = "ballista")))]
pub mod ballista;
#[cfg(feature = "proto")]
mod codec;
mod computed;
mod content;
mod format;
mod keys;
mod object;
mod opener;
mod prune;
mod sink;
mod source;
#[cfg(feature = "remote")]
mod stores;
mod table;

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::context::SessionContext;

#[cfg(feature = "proto")]
#[cfg_attr(docsrs, doc(cfg(feature = "proto")))]
pub use codec::{Blosc2Codec, Blosc2LogicalCodec};
pub use content::Member;
pub use format::{Blosc2Format, Blosc2FormatFactory};
use keys::GroupKeys;
pub use object::INDEX;
pub use source::Blosc2Source;
#[cfg(feature = "remote")]
#[cfg_attr(docsrs, doc(cfg(feature = "remote")))]
pub use stores::ObjectStores;
pub use table::Blosc2Table;
use table::ExternalTableFactory;

/// Registers the formats in a session, for `CREATE EXTERNAL TABLE ... STORED AS CTABLE` (tables) and `B2ND` (arrays).
///
/// The session's object stores read the files. Local files need no further step; a store for URLs such as `s3://` is
/// registered with [`SessionContext::register_object_store`]. If
/// [`enable_url_table`](SessionContext::enable_url_table) is called afterwards, queries can also name files:
/// `SELECT * FROM 'trips.b2z'`.
///
/// It also adds the optimizer rule `blosc2_group_keys`: in a query without a filter, the scan computes the keys of groups.
///
/// Calling it again has no effect.
///
/// # Errors
/// Fails if DataFusion refuses the format, which does not happen at present.
///
/// ```
/// use datafusion::prelude::SessionContext;
///
/// let context = SessionContext::new();
/// blosc2_datafusion::register(&context)?;
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
pub fn register(context: &SessionContext) -> Result<()> {
    // Only once, if it is called again.
    context.remove_optimizer_rule(GroupKeys::NAME);
    context.add_optimizer_rule(Arc::new(GroupKeys));
    let state = context.state_ref();
    let mut state = state.write();
    for factory in [
        Blosc2FormatFactory::tables(),
        Blosc2FormatFactory::arrays(),
        Blosc2FormatFactory::archives(),
    ] {
        state.register_file_format(Arc::new(factory), true)?;
    }
    for name in ["CTABLE", "B2ND"] {
        state.table_factories_mut().insert(name.to_owned(), Arc::new(ExternalTableFactory));
    }
    Ok(())
}

//! The statements of a query, and their execution.

use anyhow::{Result, bail};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{DFParser, Statement};

use crate::batches::Batches;
use crate::message::failed;
use crate::output::Output;
use crate::progress::Progress;
use crate::session::Session;

/// Runs the statements in order. As text, all results are printed; in other formats, the last. With `explain`, the plan
/// of the last statement takes the place of its result.
pub(crate) fn run(session: &Session, text: &str, output: &Output, explain: bool) -> Result<()> {
    let Session { context, runtime, .. } = session;
    let statements = DFParser::parse_sql(text).map_err(failed)?;
    let count = statements.len();
    for (statement, index) in statements.into_iter().zip(1..) {
        let is_last = index == count;
        let stream = runtime.wait(async {
            let started = match plan(context, statement, explain && is_last).await {
                Ok(plan) => execute(context, plan).await,
                Err(error) => Err(error),
            };
            started.map_err(|error| with_tables(context, error))
        })?;
        let has_rows = !stream.schema().fields().is_empty();
        let is_written = has_rows && (is_last || output.is_text());
        if is_last && !has_rows && !output.is_text() {
            bail!("the last statement has no result that could be written");
        }
        let progress = Progress::start(!is_written || output.is_apart_from_terminal());
        let mut batches = Batches::new(stream, runtime, progress);
        match is_written {
            true => output.write(&mut batches)?,
            false => while batches.next()?.is_some() {},
        }
    }
    Ok(())
}

async fn plan(
    context: &SessionContext,
    statement: Statement,
    explain: bool,
) -> Result<LogicalPlan, DataFusionError> {
    let plan = context.state().statement_to_plan(statement).await?;
    match explain {
        true => LogicalPlanBuilder::from(plan).explain(false, false)?.build(),
        false => Ok(plan),
    }
}

/// Starts a query. All queries of the program are executed here.
async fn execute(
    context: &SessionContext,
    plan: LogicalPlan,
) -> Result<SendableRecordBatchStream, DataFusionError> {
    context.execute_logical_plan(plan).await?.execute_stream().await
}

/// Converts an error. That of an unknown table names the tables.
fn with_tables(context: &SessionContext, error: DataFusionError) -> anyhow::Error {
    let error = failed(error);
    let text = error.to_string();
    if !text.starts_with("table '") || !text.ends_with("not found") {
        return error;
    }
    let state = context.state();
    let options = &state.config_options().catalog;
    let catalog = context.catalog(&options.default_catalog);
    let schema = catalog.and_then(|catalog| catalog.schema(&options.default_schema));
    let mut names = schema.map_or(Vec::new(), |schema| schema.table_names());
    names.sort();
    match names.is_empty() {
        true => anyhow::anyhow!("{text}; there are no tables: name files before the query"),
        false => anyhow::anyhow!("{text}; the tables are {}", names.join(", ")),
    }
}

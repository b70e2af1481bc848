//! Keys of groups that the scan computes.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ExprSchema};
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection, cast, ident};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::{Blosc2Format, Blosc2Table};

/// Moves the computation of the keys of groups from the aggregation to the scan, which computes them once for each
/// coordinate or for each string of a dictionary. Groups of dictionaries become groups of strings, which DataFusion
/// compares faster; the keys of the result are dictionaries again.
#[derive(Debug)]
pub(crate) struct GroupKeys;

impl GroupKeys {
    pub(crate) const NAME: &str = "blosc2_group_keys";
}

impl OptimizerRule for GroupKeys {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Aggregate(aggregate) if is_scan(&aggregate.input) => {
                let rewritten = rewritten(aggregate)?;
                Ok(rewritten.map_or(Transformed::no(plan), Transformed::yes))
            }
            _ => Ok(Transformed::no(plan)),
        }
    }
}

/// Whether the rows are those of a scan of this crate, without a filter.
fn is_scan(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => is_scan(&alias.input),
        LogicalPlan::TableScan(scan) => source_as_provider(&scan.source).is_ok_and(|provider| {
            let table = provider.downcast_ref::<Blosc2Table>().map(Blosc2Table::listing);
            let table = table.or_else(|| provider.downcast_ref::<ListingTable>());
            let format = table.map(|table| &table.options().format);
            format.is_some_and(|format| format.downcast_ref::<Blosc2Format>().is_some())
        }),
        _ => false,
    }
}

/// The expression that the scan computes for a key.
fn key(of: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    if let Expr::Column(column) = of {
        let field = schema.field_from_column(column)?;
        let DataType::Dictionary(_, value) = field.data_type() else { return Ok(None) };
        let is_text = matches!(value.as_ref(), DataType::Utf8 | DataType::LargeUtf8);
        return Ok(is_text.then(|| cast(of.clone(), DataType::Utf8View)));
    }
    let is_other = |of: &Expr| {
        use Expr::{Exists, GroupingSet, InSubquery, ScalarSubquery, SetComparison};
        Ok(matches!(
            of,
            Exists(_) | GroupingSet(_) | InSubquery(_) | ScalarSubquery(_) | SetComparison(_)
        ))
    };
    let is_of_one = of.column_refs().len() == 1 && !of.is_volatile() && !of.exists(is_other)?;
    Ok(is_of_one.then(|| of.clone().unalias()))
}

fn rewritten(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
    let keys = group_expr.iter().map(|of| key(of, input.schema()));
    let keys: Vec<Option<Expr>> = keys.collect::<Result<_>>()?;
    if keys.iter().all(Option::is_none) {
        return Ok(None);
    }
    let name = |at: usize| format!("__blosc2_key_{at}");
    let kept = group_expr.iter().zip(&keys).filter(|(_, key)| key.is_none());
    let used: HashSet<&Column> =
        kept.map(|(of, _)| of).chain(aggr_expr).flat_map(Expr::column_refs).collect();
    let columns = input.schema().columns().into_iter().filter(|column| used.contains(column));
    let named = keys.iter().enumerate().filter_map(|(at, key)| Some((at, key.clone()?)));
    let projected = columns.map(Expr::Column).chain(named.map(|(at, key)| key.alias(name(at))));
    let projection = Projection::try_new(projected.collect(), Arc::clone(input))?;

    let groups = group_expr.iter().zip(&keys).enumerate();
    let groups = groups.map(|(at, (of, key))| match key {
        Some(_) => ident(name(at)),
        None => of.clone(),
    });
    let input = Arc::new(LogicalPlan::Projection(projection));
    let grouped = Aggregate::try_new(input, groups.collect(), aggr_expr.clone())?;

    let outputs = schema.iter().enumerate().map(|(at, (qualifier, field))| {
        let Some(Some(key)) = keys.get(at) else {
            return Expr::Column(Column::new(qualifier.cloned(), field.name()));
        };
        let output = match key {
            Expr::Cast(_) if matches!(field.data_type(), DataType::Dictionary(..)) => {
                cast(ident(name(at)), field.data_type().clone())
            }
            _ => ident(name(at)),
        };
        output.alias_qualified(qualifier.cloned(), field.name())
    });
    let outputs = outputs.collect();
    let plan = Projection::try_new(outputs, Arc::new(LogicalPlan::Aggregate(grouped)))?;
    // The metadata of a field could be lost.
    Ok((plan.schema.fields() == schema.fields()).then_some(LogicalPlan::Projection(plan)))
}

//! Expressions of one column that are computed once for each distinct item: of coordinates and of dictionaries, which
//! repeat few items in many rows.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Int32Array, RecordBatch, RecordBatchOptions,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{FieldRef, Int32Type, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr_adapter::BatchAdapterFactory;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::PhysicalExpr;

/// An expression of one column of the files.
#[derive(Debug)]
pub(crate) struct Computed {
    expression: Arc<dyn PhysicalExpr>,
    /// The column, as the table declares it.
    input: SchemaRef,
}

/// Distinct items of a dictionary, and what is computed from them and from null: `None` if that fails.
pub(crate) type Distinct = Option<(ArrayRef, Option<ArrayRef>)>;

/// A projection of stored and computed columns.
pub(crate) struct Computing {
    /// The columns of the files, and then the computed ones.
    pub(crate) schema: SchemaRef,
    pub(crate) computed: Vec<Arc<Computed>>,
    /// The projection of the columns of `schema`, followed by those that the names of directories contain.
    pub(crate) projection: ProjectionExprs,
}

impl Computing {
    /// Computes nothing in the scan.
    pub(crate) fn nothing(projection: &ProjectionExprs, file_schema: &SchemaRef) -> Self {
        Self {
            schema: Arc::clone(file_schema),
            computed: Vec::new(),
            projection: projection.clone(),
        }
    }

    /// Finds what can be computed in a projection of the columns of files.
    pub(crate) fn new(projection: &ProjectionExprs, file_schema: &Schema) -> Result<Self> {
        let stored = file_schema.fields().len();
        let (mut fields, mut computed) = (file_schema.fields().to_vec(), Vec::new());
        let mut found = Vec::new();
        for projected in projection.iter() {
            let new = Computed::new(&projected.expr, file_schema)?;
            found.push(new.as_ref().map(|_| fields.len()));
            if let Some(new) = new {
                let mut name = projected.expr.to_string();
                while fields.iter().any(|field| *field.name() == name) {
                    name.push('_');
                }
                let field = new.expression.return_field(&new.input)?;
                fields.push(Arc::new(field.as_ref().clone().with_name(name)));
                computed.push(Arc::new(new));
            }
        }
        let mut found = found.into_iter();
        let projection = projection.clone().try_map_exprs(|expression| {
            if let Some(at) = found.next().flatten() {
                return Ok(Arc::new(Column::new(fields[at].name(), at)) as _);
            }
            let moved = expression.transform(|expression| {
                Ok(match expression.downcast_ref::<Column>() {
                    Some(column) if column.index() >= stored => {
                        let at = column.index() + computed.len();
                        Transformed::yes(Arc::new(Column::new(column.name(), at)) as _)
                    }
                    _ => Transformed::no(expression),
                })
            });
            moved.data()
        })?;
        Ok(Self { schema: Arc::new(Schema::new(fields)), computed, projection })
    }
}

impl Computed {
    fn new(expression: &Arc<dyn PhysicalExpr>, file_schema: &Schema) -> Result<Option<Self>> {
        let columns = collect_columns(expression);
        let mut columns = columns.iter();
        let (Some(column), None) = (columns.next(), columns.next()) else { return Ok(None) };
        let Some(field) = file_schema.fields().get(column.index()) else { return Ok(None) };
        if expression.downcast_ref::<Column>().is_some() || is_volatile(expression) {
            return Ok(None);
        }
        let input = Arc::new(Schema::new(vec![Arc::clone(field)]));
        let expression = reassign_expr_columns(Arc::clone(expression), &input)?;
        Ok(Some(Self { expression, input }))
    }

    /// The column, as the table declares it.
    pub(crate) fn input(&self) -> &FieldRef {
        &self.input.fields()[0]
    }

    /// The name of the column.
    pub(crate) fn column(&self) -> &str {
        self.input().name()
    }

    /// Computes the expression for items of the column, which has this field in the file. `None` means a file without
    /// the column.
    pub(crate) fn evaluate(
        &self,
        column: Option<(&FieldRef, ArrayRef)>,
        rows: usize,
    ) -> Result<ArrayRef> {
        let is_declared = column
            .as_ref()
            .is_some_and(|(field, _)| field.data_type() == self.input.field(0).data_type());
        // A dictionary is followed by null, also if no row is null.
        let nullable = |field: &FieldRef| field.as_ref().clone().with_nullable(true);
        let (fields, items): (Vec<_>, _) =
            column.map(|(field, items)| (nullable(field), items)).into_iter().unzip();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), items, &options)?;
        let batch = match is_declared {
            true => batch,
            false => {
                let factory = BatchAdapterFactory::new(Arc::clone(&self.input));
                factory.make_adapter(&schema)?.adapt_batch(&batch)?
            }
        };
        self.expression.evaluate(&batch)?.into_array(rows)
    }

    /// Computes the expression for items of the column. If they are strings of a dictionary, it is computed for each
    /// string once, and kept in `distinct`.
    pub(crate) fn evaluate_rows(
        &self,
        column: Option<(&FieldRef, ArrayRef)>,
        rows: usize,
        distinct: &mut Distinct,
    ) -> Result<ArrayRef> {
        let dictionary = column.as_ref().and_then(|(field, items)| {
            let dictionary = items.as_dictionary_opt::<Int32Type>()?;
            (dictionary.values().len() < rows).then_some((*field, dictionary))
        });
        let Some((field, dictionary)) = dictionary else { return self.evaluate(column, rows) };
        let values = dictionary.values();
        if !distinct.as_ref().is_some_and(|(of, _)| Arc::ptr_eq(of, values)) {
            let null = values.len();
            let keys: Int32Array = (0..null as i32).map(Some).chain([None]).collect();
            let all = DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(values))?;
            // It can fail for a string that is in no row.
            let computed = self.evaluate(Some((field, Arc::new(all))), null + 1).ok();
            *distinct = Some((Arc::clone(values), computed));
        }
        let Some((_, Some(computed))) = distinct else { return self.evaluate(column, rows) };
        let (keys, null) = (dictionary.keys(), values.len());
        Ok(match keys.null_count() == 0 || computed.is_null(null) {
            true => take(computed, keys, None)?,
            false => {
                let keys = keys.iter().map(|key| key.unwrap_or(null as i32));
                take(computed, &keys.collect::<Int32Array>(), None)?
            }
        })
    }
}

/// The columns that are made from record batches of a table.
pub(crate) struct Outputs {
    pub(crate) schema: SchemaRef,
    outputs: Vec<Output>,
}

struct Output {
    /// The column of the record batches, if the file has it.
    from: Option<usize>,
    computed: Option<Arc<Computed>>,
    distinct: Distinct,
}

impl Outputs {
    /// `fields` are the wanted columns. Columns that are not computed and that the file does not have are left out.
    pub(crate) fn new<'a>(
        fields: impl Iterator<Item = (&'a FieldRef, &'a Option<Arc<Computed>>)>,
        stored: &Schema,
    ) -> Self {
        let names = stored.fields().iter().enumerate();
        let names: std::collections::HashMap<&str, usize> =
            names.map(|(at, field)| (field.name().as_str(), at)).collect();
        let (mut all, mut outputs) = (Vec::new(), Vec::new());
        for (field, computed) in fields {
            let name = computed.as_ref().map_or(field.name().as_str(), |of| of.column());
            let from = names.get(name).copied();
            all.push(match (computed, from) {
                (Some(_), _) => Arc::clone(field),
                (None, Some(from)) => Arc::clone(&stored.fields()[from]),
                (None, None) => continue,
            });
            outputs.push(Output { from, computed: computed.clone(), distinct: None });
        }
        Self { schema: Arc::new(Schema::new(all)), outputs }
    }

    pub(crate) fn of(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let (schema, rows) = (batch.schema(), batch.num_rows());
        let mut columns = Vec::with_capacity(self.outputs.len());
        for Output { from, computed, distinct } in &mut self.outputs {
            let column = from.map(|from| (&schema.fields()[from], Arc::clone(batch.column(from))));
            columns.push(match (computed, column) {
                (Some(computed), column) => computed.evaluate_rows(column, rows, distinct)?,
                (None, Some((_, items))) => items,
                (None, None) => continue,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringViewArray;
    use datafusion::arrow::datatypes::{DataType, Field};
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{CastExpr, IsNullExpr, binary, lit};

    use super::*;

    fn words() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    }

    fn computed(of: impl Fn(Arc<dyn PhysicalExpr>, &Schema) -> Arc<dyn PhysicalExpr>) -> Computed {
        let numbers = Field::new("number", DataType::Int32, false);
        let schema = Schema::new(vec![numbers, Field::new("word", words(), true)]);
        let expression = of(Arc::new(Column::new("word", 1)), &schema);
        Computed::new(&expression, &schema).unwrap().unwrap()
    }

    #[test]
    fn an_expression_is_computed_once_for_each_string() {
        let cast = computed(|word, _| Arc::new(CastExpr::new(word, DataType::Utf8View, None)));
        let is_null = computed(|word, _| Arc::new(IsNullExpr::new(word)));
        // It fails for the first string, which no row has in the second case.
        let number = computed(|word, schema| {
            let text = Arc::new(CastExpr::new(word, DataType::Utf8View, None));
            let word: Arc<dyn PhysicalExpr> = Arc::new(CastExpr::new(text, DataType::Int64, None));
            binary(word, Operator::Plus, lit(ScalarValue::Int64(Some(1))), schema).unwrap()
        });
        let values: ArrayRef =
            Arc::new(datafusion::arrow::array::StringArray::from(vec!["x", "7"]));
        let rows = |keys: Vec<Option<i32>>| -> ArrayRef {
            let keys = Int32Array::from(keys);
            Arc::new(DictionaryArray::try_new(keys, Arc::clone(&values)).unwrap())
        };
        let field = Arc::new(Field::new("word", words(), false));
        let of = |computed: &Computed, items: &ArrayRef, distinct: &mut Distinct| {
            computed.evaluate_rows(Some((&field, Arc::clone(items))), items.len(), distinct)
        };

        let mut distinct = None;
        for keys in [vec![Some(1), None, Some(0), Some(1)], vec![Some(1); 5]] {
            let found = of(&cast, &rows(keys.clone()), &mut distinct).unwrap();
            let text = |key: Option<i32>| key.map(|key| ["x", "7"][key as usize]);
            let expected: StringViewArray = keys.iter().map(|key| text(*key)).collect();
            assert_eq!(found.as_string_view(), &expected);
            let of_strings = distinct.as_ref().unwrap().1.as_ref().unwrap();
            assert_eq!(of_strings.len(), 3, "two strings and null");
        }
        // Few rows.
        let mut distinct = None;
        let found = of(&cast, &rows(vec![Some(1)]), &mut distinct).unwrap();
        assert_eq!((found.as_string_view().value(0), distinct.is_none()), ("7", true));

        let items = rows(vec![Some(1), None, Some(0), None]);
        let found = of(&is_null, &items, &mut distinct).unwrap();
        let found: Vec<Option<bool>> = found.as_boolean().iter().collect();
        assert_eq!(found, [false, true, false, true].map(Some));
        assert!(distinct.is_some());

        let mut distinct = None;
        assert!(of(&number, &items, &mut distinct).is_err());
        let found = of(&number, &rows(vec![Some(1), None, Some(1)]), &mut distinct).unwrap();
        let found: Vec<_> =
            found.as_primitive::<datafusion::arrow::datatypes::Int64Type>().iter().collect();
        assert_eq!(found, [Some(8), None, Some(8)]);
        // The failure is kept for the next batch: a result for the strings would be used.
        assert!(matches!(&distinct, Some((of, None)) if Arc::ptr_eq(of, &values)));
        let none_is_computed = rows(vec![None, Some(1), Some(1)]);
        of(&number, &none_is_computed, &mut distinct).unwrap();
        assert!(matches!(distinct, Some((_, None))));
    }

    #[test]
    fn files_without_the_column_or_with_another_type_are_adapted() {
        let is_null = computed(|word, _| Arc::new(IsNullExpr::new(word)));
        let found = is_null.evaluate(None, 2).unwrap();
        assert_eq!(found.as_boolean().true_count(), 2);
        let cast = computed(|word, _| Arc::new(CastExpr::new(word, DataType::Utf8View, None)));
        let field = Arc::new(Field::new("word", DataType::Utf8, true));
        let texts: ArrayRef = Arc::new(datafusion::arrow::array::StringArray::from(vec!["a", "b"]));
        let found = cast.evaluate(Some((&field, texts)), 2).unwrap();
        assert_eq!(found.as_string_view(), &StringViewArray::from(vec!["a", "b"]));
    }
}

//! Errors of DataFusion as messages.

use anyhow::anyhow;
use datafusion::error::DataFusionError;

/// The error without the names of the layers that it passed.
pub(crate) fn of(error: &DataFusionError) -> String {
    use DataFusionError as E;
    match error {
        E::Context(text, inner) => format!("{text}: {}", of(inner)),
        E::Diagnostic(_, inner) => of(inner),
        E::Shared(inner) => of(inner),
        E::Collection(errors) => errors.iter().map(of).collect::<Vec<_>>().join("; "),
        E::External(inner) => match inner.downcast_ref::<DataFusionError>() {
            Some(inner) => of(inner),
            None => inner.to_string(),
        },
        E::ArrowError(inner, _) => inner.to_string(),
        E::SchemaError(inner, _) => inner.to_string(),
        E::SQL(inner, _) => inner.to_string(),
        E::ParquetError(inner) => inner.to_string(),
        E::ObjectStore(inner) => inner.to_string(),
        E::IoError(inner) => inner.to_string(),
        E::Plan(text)
        | E::Execution(text)
        | E::Configuration(text)
        | E::NotImplemented(text)
        | E::ResourcesExhausted(text) => {
            let end = text.find(DataFusionError::BACK_TRACE_SEP).unwrap_or(text.len());
            text[..end].to_owned()
        }
        other => other.strip_backtrace(),
    }
}

/// Converts an error of DataFusion.
pub(crate) fn failed(error: DataFusionError) -> anyhow::Error {
    anyhow!("{}", of(&error))
}

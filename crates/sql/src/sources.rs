//! Files as tables.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use blosc2_datafusion::{Blosc2Format, Blosc2Table, INDEX};
use blosc2_store::without_secrets;
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use url::Url;

use crate::UsageError;
use crate::message::failed;

/// The extension of stores in directories.
const DIRECTORY: &str = "b2d";

/// The extensions of files that can be read, with the names of their formats in DataFusion.
const FORMATS: [(&str, &str); 10] = [
    ("b2z", "b2z"),
    ("b2nd", "b2nd"),
    ("csv", "csv"),
    ("tsv", "csv"),
    ("json", "json"),
    ("ndjson", "json"),
    ("jsonl", "json"),
    ("parquet", "parquet"),
    ("arrow", "arrow"),
    (DIRECTORY, "b2z"),
];
const PATTERN: [char; 3] = ['*', '?', '['];

/// A file, a directory, a pattern or a URL, and the name of its table.
#[derive(Debug)]
pub(crate) struct Source {
    name: String,
    /// As it was given.
    text: String,
    url: ListingTableUrl,
}

/// Parses arguments of the form `FILE` or `NAME=FILE`.
pub(crate) fn parse(arguments: &[String]) -> Result<Vec<Source>> {
    let mut sources: Vec<Source> = Vec::new();
    for argument in arguments {
        let named = argument.split_once('=').filter(|_| !Path::new(argument).exists());
        let named = named.filter(|(name, _)| is_name(name));
        let (name, text) = match named {
            Some((name, text)) => (Some(name.to_ascii_lowercase()), text),
            None => (default_name(argument), argument.as_str()),
        };
        let shown = without_secrets(text);
        let url = locate(text).with_context(|| format!("cannot open ({shown})"))?;
        let name = name.ok_or_else(|| {
            UsageError(format!("`{shown}` has no name for a table: set one with NAME={shown}"))
        })?;
        if let Some(other) = sources.iter().find(|other| other.name == name) {
            let (one, two) = (other.location(), shown);
            let hint = format!("set another name with NAME={two}");
            return Err(
                UsageError(format!("{one} and {two} are both named `{name}`: {hint}")).into()
            );
        }
        sources.push(Source { name, text: text.to_owned(), url });
    }
    Ok(sources)
}

/// Prints the names of tables with their locations.
pub(crate) fn print(tables: &[(String, String)]) -> Result<()> {
    let shown: Vec<_> = tables.iter().map(|(name, location)| (shown(name), location)).collect();
    let width = shown.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut out = io::stdout().lock();
    for (name, location) in shown {
        writeln!(out, "{name:width$}  {location}")?;
    }
    Ok(())
}

/// The name of a table in SQL.
fn shown(name: &str) -> String {
    match is_name(name) && !name.contains(char::is_uppercase) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// Adds a table to a session.
fn register(context: &SessionContext, name: &str, table: Arc<dyn TableProvider>) -> Result<()> {
    let reference = TableReference::bare(name);
    if context.table_exist(reference.clone()).map_err(failed)? {
        let name = shown(name);
        return Err(UsageError(format!(
            "two tables are named {name}: open one of the stores with \
             CREATE EXTERNAL TABLE t STORED AS CTABLE LOCATION 'FILE' OPTIONS ('key' 'KEY')"
        ))
        .into());
    }
    context.register_table(reference, table).map_err(failed)?;
    Ok(())
}

/// Whether an argument is rather a file than a query.
pub(crate) fn is_file(argument: &str) -> bool {
    let has_space = argument.contains(char::is_whitespace);
    Path::new(argument).exists() || !has_space && extension(argument).is_some()
}

/// Whether a text is an identifier of SQL without quotes.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && text.chars().all(|each| each.is_alphanumeric() || each == '_')
}

pub(crate) fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// The name of the table of a file: its stem in lower case, with `_` for characters that SQL requires quotes for. A
/// pattern has the name before the first wildcard, or that of its directory.
fn default_name(text: &str) -> Option<String> {
    let is_separator = |each: char| each == '/' || !is_url(text) && std::path::is_separator(each);
    let is_pattern = |part: &str| part.contains(PATTERN);
    let absolute;
    let text = match text.trim_end_matches(is_separator) {
        "" | "." | ".." => {
            absolute = std::fs::canonicalize(text).ok()?;
            absolute.to_str()?
        }
        text => text,
    };
    let mut parts = text.rsplit(is_separator).filter(|part| !part.is_empty());
    let last = parts.next()?;
    let is_word = |each: char| each.is_alphanumeric() || each == '_';
    let stem = match last.find(PATTERN).filter(|_| !Path::new(text).exists()) {
        Some(at) => match last[..at].trim_matches(|each| !is_word(each)) {
            "" => parts.next().filter(|part| !is_pattern(part))?,
            start => start,
        },
        None => match extension(last) {
            Some(found) => &last[..last.len() - found.len() - 1],
            None => last,
        },
    };
    let name: String = stem.chars().map(|each| if is_word(each) { each } else { '_' }).collect();
    let name = name.to_ascii_lowercase();
    let name =
        if name.starts_with(|first: char| first.is_numeric()) { format!("_{name}") } else { name };
    is_name(&name).then_some(name)
}

/// The extension of a file that can be read, with that of its compression.
fn extension(path: &str) -> Option<&str> {
    let (format, compression) =
        ListingTableConfig::infer_file_extension_and_compression_type(path).ok()?;
    let is_known = FORMATS.iter().any(|(known, _)| format.eq_ignore_ascii_case(known));
    let len = format.len() + compression.map_or(0, |compression| compression.len() + 1);
    path.get(path.len().checked_sub(len + 1)?..)?.strip_prefix('.').filter(|_| is_known)
}

/// Finds what an argument names.
fn locate(text: &str) -> Result<ListingTableUrl> {
    if is_url(text) {
        #[cfg(not(feature = "remote"))]
        bail!("this build does not support URLs: build it with the feature `remote`");
        #[cfg(feature = "remote")]
        return locate_url(text);
    }
    let path = Path::new(text);
    let Ok(found) = path.metadata() else {
        if text.contains(PATTERN) {
            if extension(text.trim_end_matches('/')) == Some(DIRECTORY) {
                bail!(
                    "a pattern of directories (`.{DIRECTORY}`) cannot be read: name each directory"
                );
            }
            return ListingTableUrl::parse(text).map_err(failed);
        }
        bail!("there is no such file");
    };
    let absolute = std::path::absolute(path).map_err(|error| anyhow!("{error}"))?;
    let url = match found.is_dir() {
        true => {
            let ending = path.extension().and_then(|extension| extension.to_str());
            if ending == Some(DIRECTORY) {
                if !path.join(INDEX).is_file() {
                    bail!("it is a directory (`.{DIRECTORY}`) without a file `{INDEX}`");
                }
                return locate(&format!("{}/{INDEX}", text.trim_end_matches('/')));
            }
            if let Some(ending @ ("b2nd" | "b2frame")) = ending {
                bail!(
                    "it is a directory (`.{ending}`), which cannot be read: expected files (`.b2z`, `.b2nd`)"
                );
            }
            Url::from_directory_path(absolute)
        }
        false => Url::from_file_path(absolute),
    };
    let url = url.map_err(|()| anyhow!("the path is no URL"))?;
    // Resolves `..`.
    let url = Url::parse(url.as_str()).map_err(|error| anyhow!("{error}"))?;
    ListingTableUrl::try_new(url, None).map_err(failed)
}

/// Finds what a URL names.
#[cfg(feature = "remote")]
fn locate_url(text: &str) -> Result<ListingTableUrl> {
    let (start, pattern) = match text.find(['*', '[']) {
        Some(at) => text.split_at(text[..at].rfind('/').unwrap_or(at) + 1),
        None => (text, ""),
    };
    let mut url = Url::parse(start).map_err(|error| anyhow!("{error}"))?;
    if url.query().is_some() || url.fragment().is_some() {
        bail!("URLs with a query or a fragment cannot be read");
    }
    if extension(pattern.trim_end_matches('/')) == Some(DIRECTORY) {
        bail!("a pattern of directories (`.{DIRECTORY}`) cannot be read: name each directory");
    }
    let directory = url.path().trim_end_matches('/').to_owned();
    let is_directory = pattern.is_empty() && extension(&directory) == Some(DIRECTORY);
    if is_directory {
        url.set_path(&format!("{directory}/{INDEX}"));
    }
    let is_many = !pattern.is_empty() || url.path().ends_with('/') || is_directory;
    if matches!(url.scheme(), "http" | "https") && is_many {
        bail!("HTTP servers do not list their files: name each file");
    }
    let url = ListingTableUrl::try_new(url, None).map_err(failed)?;
    match pattern {
        "" => Ok(url),
        pattern => url.with_glob(pattern).map_err(failed),
    }
}

impl Source {
    /// The location, for messages.
    pub(crate) fn location(&self) -> String {
        without_secrets(&self.text)
    }

    /// Adds the table to a session, or the tables of a store, and returns the names. `dims` are the names of the axes of
    /// arrays.
    pub(crate) async fn add(
        &self,
        context: &SessionContext,
        is_of_cluster: bool,
        dims: Option<&[String]>,
    ) -> Result<Vec<String>> {
        let state = context.state();
        let store = context.runtime_env().object_store(&self.url).map_err(failed)?;
        let files = self.files(context, &store).await?;
        let is_directory = self.url.prefix().filename() == Some(INDEX);
        let found: BTreeSet<&str> = match is_directory {
            true => [DIRECTORY].into(),
            false => files.iter().filter_map(|file| extension(file.location.as_ref())).collect(),
        };
        let ending = match found.len() {
            _ if files.is_empty() => bail!("no file was found"),
            // DataFusion would not find them.
            _ if files.iter().all(|file| file.size == 0) => bail!("the file is empty"),
            1 => found.into_iter().next().unwrap_or_default(),
            0 => {
                let known = FORMATS.map(|(extension, _)| format!("`.{extension}`")).join(", ");
                bail!("there is no file with a known extension: expected {known}");
            }
            _ => bail!(
                "there are files with different extensions ({}): use a pattern such as '*.b2z'",
                found.into_iter().collect::<Vec<_>>().join(", ")
            ),
        };
        let (kind, compression) = ending.split_once('.').unwrap_or((ending, ""));
        let ending = if is_directory { "b2e" } else { ending };
        let kind = kind.to_ascii_lowercase();
        let format = FORMATS.iter().find(|(extension, _)| *extension == kind);
        let format = format.map_or("", |(_, format)| *format);
        let is_json_array =
            format == "json" && compression.is_empty() && is_array(&store, &files).await;
        let members = match &files[..] {
            [file] if format == "b2z" => {
                Blosc2Format::members(&store, file).await.map_err(failed)?
            }
            _ => Vec::new(),
        };
        let mut names = Vec::new();
        for table in members.iter().filter(|member| member.is_table) {
            let format = Arc::new(Blosc2Format::tables().with_key(&table.key));
            let found = self.table(context, format, ending, is_of_cluster).await?;
            let name = table.key.trim_matches('/');
            register(context, name, found)?;
            names.push(name.to_owned());
        }
        if !names.is_empty() && !members.iter().any(|member| member.is_array) {
            return Ok(names);
        }
        let mut options = HashMap::new();
        let mut set =
            |name: &str, value: &str| options.insert(format!("format.{name}"), value.to_owned());
        if !compression.is_empty() {
            set("compression", compression);
        }
        match (format, dims) {
            ("b2z" | "b2nd", Some(dims)) => drop(set("dims", &dims.join(","))),
            ("csv", _) if kind == "tsv" => drop(set("delimiter", "\t")),
            _ if is_json_array => drop(set("newline_delimited", "false")),
            _ => {}
        }
        let factory = state.get_file_format_factory(format);
        let factory = factory.ok_or_else(|| anyhow!("the format `{format}` is unknown"))?;
        let format = factory.create(&state, &options).map_err(failed)?;
        let mut table = self.table(context, format, ending, is_of_cluster).await?;
        if is_json_array {
            // DataFusion fails when it divides such a file among threads.
            let config = state.config().clone().with_repartition_file_scans(false);
            let context = SessionContext::new_with_config_rt(config, context.runtime_env());
            let frame = context.read_table(table).map_err(failed)?;
            table = frame.cache().await.map_err(failed)?.into_view();
        }
        register(context, &self.name, table)?;
        names.push(self.name.clone());
        Ok(names)
    }

    /// The files with this ending as a table.
    async fn table(
        &self,
        context: &SessionContext,
        format: Arc<dyn FileFormat>,
        ending: &str,
        is_of_cluster: bool,
    ) -> Result<Arc<dyn TableProvider>> {
        let state = context.state();
        let options = ListingOptions::new(format).with_file_extension(format!(".{ending}"));
        let mut config = ListingTableConfig::new(self.url.clone()).with_listing_options(options);
        if self.url.is_collection() {
            config = config.infer_partitions_from_path(&state).await.map_err(failed)?;
            // A cluster sends the values of dictionaries between machines.
            for (_, data_type) in
                config.options.iter_mut().flat_map(|options| &mut options.table_partition_cols)
            {
                if let DataType::Dictionary(_, values) = data_type
                    && is_of_cluster
                {
                    *data_type = values.as_ref().clone();
                }
            }
        }
        let config = config.infer_schema(&state).await.map_err(failed)?;
        let table = ListingTable::try_new(config).map_err(failed)?;
        let is_of_blosc2 = table.options().format.is::<Blosc2Format>();
        Ok(match is_of_blosc2 {
            // A cluster needs this type.
            true => Arc::new(Blosc2Table::from(table)),
            false => Arc::new(table),
        })
    }

    async fn files(
        &self,
        context: &SessionContext,
        store: &Arc<dyn ObjectStore>,
    ) -> Result<Vec<ObjectMeta>> {
        if self.url.scheme().starts_with("http") {
            // Without the list of a directory that DataFusion requests if there is no file.
            let file = store.head(self.url.prefix()).await;
            return Ok(vec![file.map_err(|error| failed(error.into()))?]);
        }
        let state = context.state();
        let files = self.url.list_all_files(&state, store, "").await.map_err(failed)?;
        files.try_collect().await.map_err(failed)
    }
}

/// Whether the first JSON file is an array of objects, and not one object in each line.
async fn is_array(store: &Arc<dyn ObjectStore>, files: &[ObjectMeta]) -> bool {
    let Some(file) = files.iter().find(|file| file.size > 0) else { return false };
    // If it cannot be read, opening the table fails with the reason. Not all servers support ranges.
    let Ok(response) = store.get(&file.location).await else { return false };
    let start = response.into_stream().try_next().await;
    start.is_ok_and(|start| start.is_some_and(|start| start.trim_ascii_start().starts_with(b"[")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables() {
        for (text, name) in [
            ("trips.b2z", Some("trips")),
            ("data/My-Trips.2024.b2z", Some("my_trips_2024")),
            ("a/b.csv.gz", Some("b")),
            ("2024.parquet", Some("_2024")),
            ("größe.B2ND", Some("größe")),
            ("s3://bucket/a/t.b2z", Some("t")),
            ("s3://bucket/a/", Some("a")),
            ("data/trips-*.b2z", Some("trips")),
            ("data/*.b2z", Some("data")),
            ("./data//", Some("data")),
            ("*.b2z", None),
            ("*/*.b2z", None),
            ("---.csv", Some("___")),
        ] {
            assert_eq!(default_name(text).as_deref(), name, "{text}");
        }
        let folder = std::fs::canonicalize(".").unwrap();
        assert_eq!(default_name("."), default_name(folder.to_str().unwrap()));
    }
}

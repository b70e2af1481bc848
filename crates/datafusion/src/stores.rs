//! Object stores for URLs.

use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use object_store::{ObjectStore, parse_url_opts};
use url::Url;

/// Creates a registry that opens local files and the URLs `s3://`, `http://` and `https://`, for
/// [`RuntimeEnvBuilder::with_object_store_registry`](datafusion::execution::runtime_env::RuntimeEnvBuilder::with_object_store_registry).
///
/// The object store of a bucket or server is created when it is first needed. The options of S3 are environment variables:
/// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT`, `AWS_ALLOW_HTTP` and
/// the others of the crate `object_store`. They are part of no plan and of no message. Stores that a program registers have
/// priority.
///
/// ```
/// use std::sync::Arc;
///
/// use datafusion::execution::runtime_env::RuntimeEnvBuilder;
/// use datafusion::prelude::{SessionConfig, SessionContext};
///
/// let runtime = RuntimeEnvBuilder::new()
///     .with_object_store_registry(Arc::new(blosc2_datafusion::ObjectStores::from_env()));
/// let context = SessionContext::new_with_config_rt(SessionConfig::new(), runtime.build_arc()?);
/// blosc2_datafusion::register(&context)?;
/// // Now: CREATE EXTERNAL TABLE trips STORED AS CTABLE LOCATION 's3://bucket/trips.b2z'
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
#[derive(Debug, Default)]
pub struct ObjectStores {
    known: DefaultObjectStoreRegistry,
}

impl ObjectStores {
    /// Creates a registry whose options are the environment variables.
    pub fn from_env() -> Self {
        Self::default()
    }
}

impl ObjectStoreRegistry for ObjectStores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.known.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.known.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let missing = match self.known.get_store(url) {
            Ok(store) => return Ok(store),
            Err(missing) => missing,
        };
        let options: Vec<(String, String)> = match url.scheme() {
            "s3" => variables("AWS_"),
            // The URL says that it is not encrypted.
            "http" => vec![("allow_http".to_owned(), "true".to_owned())],
            "https" => Vec::new(),
            _ => return Err(missing),
        };
        let (store, _) = parse_url_opts(url, options).map_err(|error| {
            let bucket = &url[..url::Position::AfterPort];
            DataFusionError::from(error).context(format!("open the object store of `{bucket}`"))
        })?;
        let store: Arc<dyn ObjectStore> = Arc::from(store);
        self.known.register_store(url, Arc::clone(&store));
        Ok(store)
    }
}

/// The environment variables whose names start with `prefix`.
fn variables(prefix: &str) -> Vec<(String, String)> {
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts
        .filter(|(name, _)| name.starts_with(prefix))
        .map(|(name, value)| (name.to_lowercase(), value))
        .collect()
}

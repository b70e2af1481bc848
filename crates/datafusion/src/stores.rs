//! Object stores for URLs.

use std::sync::Arc;
use std::time::Duration;

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use object_store::aws::AmazonS3Builder;
use object_store::http::HttpBuilder;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use url::{Position, Url};

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
        if let Ok(store) = self.known.get_store(url) {
            return Ok(store);
        }
        let bucket =
            format!("{}://{}", url.scheme(), &url[Position::BeforeHost..Position::AfterPort]);
        if !url.username().is_empty() || url.password().is_some() {
            return plan_err!("open `{bucket}`: expected a URL without user, found one");
        }
        let opened: object_store::Result<Arc<dyn ObjectStore>> = match url.scheme() {
            "s3" => AmazonS3Builder::from_env()
                .with_url(url.as_str())
                .build()
                .map(|s3| Arc::new(s3) as _),
            "http" | "https" => {
                // An `http` URL says that it is not encrypted.
                let client = ClientOptions::new().with_allow_http(url.scheme() == "http");
                let server = HttpBuilder::new()
                    .with_url(&bucket)
                    .with_client_options(client)
                    .with_retry(retry())
                    .build();
                server.map(|server| Arc::new(server) as _)
            }
            scheme => {
                return plan_err!(
                    "open `{bucket}`: expected the scheme `s3`, `http` or `https`, found `{scheme}`"
                );
            }
        };
        let store = opened.map_err(|error| {
            DataFusionError::from(error).context(format!("open the object store of `{bucket}`"))
        })?;
        self.known.register_store(url, Arc::clone(&store));
        Ok(store)
    }
}

/// Fewer repetitions than the default, which take three minutes.
fn retry() -> RetryConfig {
    let (max_retries, retry_timeout) = (6, Duration::from_secs(60));
    RetryConfig { max_retries, retry_timeout, ..Default::default() }
}

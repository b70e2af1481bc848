//! The object stores of URLs, which are created when they are needed.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use object_store::ObjectStore;
use url::Url;

/// The object stores of a session.
#[derive(Debug, Default)]
pub(crate) struct Stores(DefaultObjectStoreRegistry);

impl ObjectStoreRegistry for Stores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.0.register_store(url, store)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if let Ok(store) = self.0.get_store(url) {
            return Ok(store);
        }
        let store = create(url)?;
        self.0.register_store(url, Arc::clone(&store));
        Ok(store)
    }
}

/// Creates the store of a URL. Credentials and other options of S3 are in the environment.
#[cfg(feature = "remote")]
fn create(url: &Url) -> Result<Arc<dyn ObjectStore>> {
    use std::time::Duration;

    use datafusion::common::plan_err;
    use object_store::RetryConfig;
    use object_store::aws::AmazonS3Builder;
    use object_store::client::ClientOptions;
    use object_store::http::HttpBuilder;

    let retry = RetryConfig {
        max_retries: 6,
        retry_timeout: Duration::from_secs(60),
        ..Default::default()
    };
    match (url.scheme(), url.host_str()) {
        ("s3" | "s3a", Some(bucket)) => {
            let builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
            Ok(Arc::new(builder.build()?))
        }
        ("http" | "https", Some(_)) => {
            let site = &url[..url::Position::BeforePath];
            let options = ClientOptions::new().with_allow_http(true);
            let builder = HttpBuilder::new().with_url(site).with_retry(retry);
            Ok(Arc::new(builder.with_client_options(options).build()?))
        }
        (scheme, _) => plan_err!(
            "URLs with the scheme `{scheme}` are not supported: expected `s3`, `http` or `https`"
        ),
    }
}

/// Fails: this build has no support for URLs.
#[cfg(not(feature = "remote"))]
fn create(url: &Url) -> Result<Arc<dyn ObjectStore>> {
    let scheme = url.scheme();
    datafusion::common::plan_err!(
        "this build does not support URLs (`{scheme}`): build it with the feature `remote`"
    )
}

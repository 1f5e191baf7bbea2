//! Pictures that functions attached to what they made, `servo.plot`: files beside the data.
//!
//! Nothing else of that directory is given away: a picture is there if the record of the commit names it.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, header};
use serde::Deserialize;
use servo_core::MaterializationId;
use utoipa::{IntoParams, ToSchema};

use super::assets::{key, partition};
use crate::answer::{Problems, Wait};
use crate::app::Shared;
use crate::extract::{Path, Query};
use crate::problem::{Code, Problem};
use crate::views::has_picture;

/// Size limit of a picture that is shown.
const LARGEST: u64 = 16 << 20;
/// The beginning of the names of pictures, as the runner writes them.
const PREFIX: &str = "_plot-";
/// A picture may style itself, and do nothing else: an SVG that is opened by itself is a document.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'";
/// A materialization never changes; whoever may not see it any more is told so within the hour.
const KEPT: &str = "private, max-age=3600";

/// Bytes of a picture.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[allow(dead_code)]
pub(super) struct Picture(Vec<u8>);

/// Which partition.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PictureQuery {
    /// The partition of the materialization, as people write it; absent if its asset has none.
    partition: Option<String>,
}

/// A picture that was attached to a materialization: a PNG or an SVG of at most 16 MiB, by the name of its file.
#[utoipa::path(
    get, path = "/assets/{namespace}/{name}/materializations/{materialization_id}/files/{file}",
    operation_id = "get_picture", tag = "assets",
    params(
        ("namespace" = String, Path), ("name" = String, Path), ("materialization_id" = String, Path),
        ("file" = String, Path), PictureQuery, Wait
    ),
    responses((status = 200, content((Picture = "image/png"), (Picture = "image/svg+xml"))), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path((namespace, name, id, file)): Path<(String, String, MaterializationId, String)>,
    Query(query): Query<PictureQuery>,
) -> Result<Response<Body>, Problem> {
    let asset = key(&namespace, &name)?;
    let partition = match &query.partition {
        Some(text) => Some(partition(&app, &asset, text).await?),
        None => None,
    };
    let nothing = || {
        let most = LARGEST >> 20;
        let detail = format!("materialization {id} of {asset} has no picture {file:?} of at most {most} MiB");
        Problem::new(Code::NotFound, detail)
    };
    let media_type = media_type(&file).ok_or_else(nothing)?;
    let record = app.workspace().commit_record(&asset, partition.as_ref(), id).await?;
    let (_, record) = record.ok_or_else(nothing)?;
    if !has_picture(&record, &file).map_err(|error| Problem::internal(&error))? {
        return Err(nothing());
    }
    let found = app.workspace().committed_file(&asset, partition.as_ref(), id, &file, LARGEST).await?;
    let mut response = Response::new(Body::from(found.ok_or_else(nothing)?));
    // Letters of other scripts are no header; they say nothing that the page does not.
    let ascii = file.replace(|c: char| !c.is_ascii(), "-");
    let disposition = HeaderValue::from_str(&format!("inline; filename=\"{ascii}\""))
        .map_err(|error| Problem::internal(&error))?;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(KEPT));
    headers.insert(header::CONTENT_DISPOSITION, disposition);
    Ok(response)
}

/// The media type of a file by its name; none if no picture has such a name.
fn media_type(file: &str) -> Option<&'static str> {
    let (stem, extension) = file.strip_prefix(PREFIX)?.rsplit_once('.')?;
    let is_plain = stem.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    match extension {
        "png" if is_plain => Some("image/png"),
        "svg" if is_plain => Some("image/svg+xml"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_the_runner_gives_to_pictures_are_pictures() {
        assert_eq!(media_type("_plot-delays-by-hour.png"), Some("image/png"));
        assert_eq!(media_type("_plot-жду_1.svg"), Some("image/svg+xml"));
        let others = ["_commit.json", "_plot-a", "_plot-a.html", "_plot-../a.png", "_plot-a/b.svg"];
        for name in others.into_iter().chain([
            "",
            "data.parquet",
            "_plot-a\0.png",
            "_plot-..\\a.png",
            "_plot-a.b.png",
        ]) {
            assert_eq!(media_type(name), None, "{name}");
        }
    }
}

//! Routes of schedules, sensors and notification rules, as far as they are the same.

use axum::body::Body;
use axum::http::Response;
use servo_engine::{Caller, Change, ChangeNamed, Command, Named};

use crate::app::Shared;
use crate::etag::{IfNoneMatch, Tagged};
use crate::pages::{Page, PageQuery};
use crate::problem::Problem;
use crate::views::Accepted;

/// Lists those that are there, by name.
pub(super) async fn list<T: Named, V: for<'t> From<&'t T>>(
    app: &Shared,
    what: &str,
    query: &PageQuery,
    if_none_match: IfNoneMatch,
) -> Result<Tagged<Page<V>>, Problem> {
    let list = query.open(&app.api.keys, what.to_owned())?;
    let found = app.workspace().read(|state| {
        let after = list.after.as_deref();
        let rest = T::all(state).iter_live().filter(|it| after.is_none_or(|after| &*it.name > after));
        rest.take(list.wanted()).map(|it| (it.name.to_string(), V::from(it))).collect::<Vec<_>>()
    });
    let page = Page::of(found.await?, &list, |(name, _)| name.clone());
    Ok(if_none_match.answer(page.map(|(_, view)| view)))
}

/// One by its name or its id.
pub(super) async fn show<T: Named, V: for<'t> From<&'t T>>(
    app: &Shared,
    name: String,
    if_none_match: IfNoneMatch,
) -> Result<Tagged<V>, Problem> {
    let found = app.workspace().read(|state| T::all(state).live(&name).map(V::from)).await?;
    found.map(|view| if_none_match.answer(view)).ok_or_else(|| T::unknown(name).into())
}

/// The id of one that is there, or was: what came of it can be looked at for as long as somebody knows its name.
pub(super) async fn id<T: Named>(app: &Shared, name: String) -> Result<T::Id, Problem> {
    let id = app.workspace().read(|state| T::all(state).id(&name)).await?;
    id.ok_or_else(|| T::unknown(name).into())
}

/// Refuses a new definition under another name than the one it is for. `what` says what that is, with its article.
pub(super) async fn keeps_name<T: Named>(
    app: &Shared,
    what: &str,
    name: &str,
    new_name: &str,
) -> Result<(), Problem> {
    let known = app.workspace().read(|state| T::all(state).live(name).map(|it| it.name.clone())).await?;
    match known.filter(|known| **known != *new_name) {
        Some(_) => Err(Problem::invalid("name", format!("{what} keeps its name; create another one"))),
        None => Ok(()),
    }
}

/// Creates one or gives it another definition, once for each key of a request. Its assets are looked for in the code that
/// was saved before.
pub(super) async fn define<C>(
    app: &Shared,
    name: String,
    expected_state_version: Option<u64>,
    change: C,
    caller: Caller,
) -> Result<Response<Body>, Problem>
where
    ChangeNamed<C>: Command<Reply = Change>,
{
    let request = ChangeNamed { name, expected_state_version, change, caller };
    change_after(app, app.current_code(), request).await
}

/// Changes one, once for each key of a request. Does not wait for code: what is broken can be paused.
pub(super) async fn change<C>(
    app: &Shared,
    name: String,
    expected_state_version: Option<u64>,
    change: C,
    caller: Caller,
) -> Result<Response<Body>, Problem>
where
    ChangeNamed<C>: Command<Reply = Change>,
{
    let request = ChangeNamed { name, expected_state_version, change, caller };
    change_after(app, std::future::ready(Ok(())), request).await
}

async fn change_after<C>(
    app: &Shared,
    before: impl Future<Output = Result<(), Problem>>,
    request: ChangeNamed<C>,
) -> Result<Response<Body>, Problem>
where
    ChangeNamed<C>: Command<Reply = Change>,
{
    let caller = request.caller.clone();
    let work = async {
        before.await?;
        Ok(Accepted::from(app.workspace().change_named(request).await?))
    };
    app.once(caller, work, async |known| Ok(known.change().into())).await
}
